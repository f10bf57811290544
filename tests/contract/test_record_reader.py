import pytest

from pyspark_kafka.testing import RecordReaderContract

from .held_adapter import HeldAdapter
from .registry import RECORD_READERS


@pytest.mark.parametrize("held", RECORD_READERS, ids=str)
class TestRecordReader(HeldAdapter, RecordReaderContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.container().record_reader()) is held.adapter
