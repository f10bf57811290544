"""The contract of every ``RecordReader``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import RecordReaderContract

from .held_adapter import HeldAdapter
from .registry import RECORD_READERS, Held

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


@pytest.mark.parametrize("held", RECORD_READERS, ids=str)
class TestRecordReader(HeldAdapter, RecordReaderContract):
    def test_the_adapter_is_that_of_the_registry(self, world: World, held: Held) -> None:
        """The world's client returns the registry's adapter."""
        assert type(world.container().record_reader()) is held.adapter
