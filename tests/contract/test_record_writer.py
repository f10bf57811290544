"""The contract of every ``RecordWriter``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import RecordWriterContract

from .held_adapter import HeldAdapter
from .registry import RECORD_WRITERS, Held

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


@pytest.mark.parametrize("held", RECORD_WRITERS, ids=str)
class TestRecordWriter(HeldAdapter, RecordWriterContract):
    def test_the_adapter_is_that_of_the_registry(self, world: World, held: Held) -> None:
        """The world's client returns the registry's adapter."""
        assert type(world.sink_container().record_writer()) is held.adapter
