import pytest

from pyspark_kafka.testing import RecordWriterContract

from .held_adapter import HeldAdapter
from .registry import RECORD_WRITERS


@pytest.mark.parametrize("held", RECORD_WRITERS, ids=str)
class TestRecordWriter(HeldAdapter, RecordWriterContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.sink_container().record_writer()) is held.adapter
