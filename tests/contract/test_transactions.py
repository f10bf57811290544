import pytest

from pyspark_kafka.testing import TransactionsContract

from .held_adapter import HeldAdapter
from .registry import TRANSACTIONS


@pytest.mark.parametrize("held", TRANSACTIONS, ids=str)
class TestTransactions(HeldAdapter, TransactionsContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.sink_container().transactions()) is held.adapter
