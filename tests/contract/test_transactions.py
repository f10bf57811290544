"""Every ``Transactions`` does what its port owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import TransactionsContract

from .registry import TRANSACTIONS, Held

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.testing import World


class TestTransactions(TransactionsContract):
    @pytest.fixture(params=TRANSACTIONS, ids=str)
    def held(self, request: pytest.FixtureRequest) -> Held:
        """Give each adapter in turn."""
        made: Held = request.param
        return made

    @pytest.fixture
    def world(self, open_world: Callable[[Held], World], held: Held) -> World:
        """Give the adapter's world."""
        return open_world(held)

    def test_it_is_the_adapter_that_is_held(self, world: World, held: Held) -> None:
        """The world's client makes the adapter that the registry names."""
        assert type(world.sink_container().transactions()) is held.adapter
