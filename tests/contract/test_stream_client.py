import pytest

from pyspark_kafka.testing import StreamClientContract

from .held_adapter import HeldAdapter
from .registry import STREAM_CLIENTS


@pytest.mark.parametrize("held", STREAM_CLIENTS, ids=str)
class TestStreamClient(HeldAdapter, StreamClientContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.stream_client(None)) is held.adapter
