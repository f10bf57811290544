"""Every ``OffsetFetcher`` does what its port owes."""

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
    def test_it_is_the_adapter_that_is_held(self, world: World, held: Held) -> None:
        """The world's client makes the adapter that the registry names."""
        assert type(world.container().offset_fetcher()) is held.adapter
