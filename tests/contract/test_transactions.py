"""The contract of every ``Transactions``."""

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
    def test_the_adapter_is_that_of_the_registry(self, world: World, held: Held) -> None:
        """The world's client returns the registry's adapter."""
        assert type(world.sink_container().transactions()) is held.adapter
