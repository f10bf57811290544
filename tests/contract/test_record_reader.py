"""Every ``RecordReader`` does what its port owes."""

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
    def test_it_is_the_adapter_that_is_held(self, world: World, held: Held) -> None:
        """The world's client makes the adapter that the registry names."""
        assert type(world.container().record_reader()) is held.adapter
