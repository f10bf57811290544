"""Every ``RecordWriter`` does what its port owes."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.record_writer import MemoryRecordWriter
from pyspark_kafka.testing import MemoryWorld, RecordWriterContract


class TestMemoryRecordWriter(RecordWriterContract):
    @pytest.fixture
    def world(self) -> MemoryWorld:
        """Give a cluster in memory."""
        return MemoryWorld()

    @pytest.fixture
    def writer(self, world: MemoryWorld) -> MemoryRecordWriter:
        """Give the writer to that cluster."""
        return MemoryRecordWriter(world.cluster)
