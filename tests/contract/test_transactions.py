"""Every ``Transactions`` does what its port owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import TransactionsContract

from .held_adapter import HeldAdapter
from .registry import TRANSACTIONS, Held

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


@pytest.mark.parametrize("held", TRANSACTIONS, ids=str)
class TestTransactions(HeldAdapter, TransactionsContract):
    def test_it_is_the_adapter_that_is_held(self, world: World, held: Held) -> None:
        """The world's client makes the adapter that the registry names."""
        assert type(world.sink_container().transactions()) is held.adapter
