"""The contract of every ``StreamClient``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import StreamClientContract

from .held_adapter import HeldAdapter
from .registry import STREAM_CLIENTS, Held

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


@pytest.mark.parametrize("held", STREAM_CLIENTS, ids=str)
class TestStreamClient(HeldAdapter, StreamClientContract):
    def test_the_adapter_is_that_of_the_registry(self, world: World, held: Held) -> None:
        """The world's client returns the registry's adapter."""
        assert type(world.stream_client(None)) is held.adapter
