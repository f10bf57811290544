"""The contract of every ``OffsetFetcher``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import OffsetFetcherContract

from .held_adapter import HeldAdapter
from .registry import OFFSET_FETCHERS, Held

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


@pytest.mark.parametrize("held", OFFSET_FETCHERS, ids=str)
class TestOffsetFetcher(HeldAdapter, OffsetFetcherContract):
    def test_the_adapter_is_that_of_the_registry(self, world: World, held: Held) -> None:
        """The world's client returns the registry's adapter."""
        assert type(world.container().offset_fetcher()) is held.adapter
