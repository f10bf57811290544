"""The contract suite of ``RackFinder``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from ..domain.reading.racks import RackNotFoundError
from .fixtures import required_fixture

if TYPE_CHECKING:
    from ..ports.reading import RackFinder

_THREADS: Final = 4
_MAX_LENGTH: Final = 255


class RackPlace(ABC):
    """The place that names the rack of a finder's host, or a stand-in for it."""

    finder: RackFinder
    """The finder under test."""

    @abstractmethod
    def put(self, rack: str | None) -> None:
        """Name this rack from now on: a zone with a region before a hyphen; or none at all."""


class RackFinderContract:
    """The contract of ``RackFinder``; a subclass overrides the fixture ``place``."""

    place = required_fixture("Return the place of the racks that the finder under test finds.")

    def test_the_rack_is_found(self, place: RackPlace) -> None:
        """Each call returns the rack that the host has then."""
        for rack in ("region-1", "other-region-2a"):
            place.put(rack)
            assert place.finder.find() == rack

    def test_a_host_without_a_rack_is_told(self, place: RackPlace) -> None:
        """A host may have no rack; the error names the place that was searched, and is not kept."""
        place.put(None)
        with pytest.raises(RackNotFoundError, match=r".: ."):
            place.finder.find()
        place.put("region-1")
        assert place.finder.find() == "region-1"

    def test_a_rack_may_be_long(self, place: RackPlace) -> None:
        """A rack has up to 255 characters."""
        rack = f"{'r' * (_MAX_LENGTH - 2)}-1"
        place.put(rack)
        assert place.finder.find() == rack

    @pytest.mark.parametrize("text", ["", "a b-1", "a-1\nb", "a-\x1b[0m1", f"{'r' * 254}-1"])
    def test_another_text_is_no_rack(self, place: RackPlace, text: str) -> None:
        """An empty or long text, spaces and unprintable characters are refused."""
        place.put(text)
        with pytest.raises(RackNotFoundError):
            place.finder.find()

    def test_threads_share_a_finder(self, place: RackPlace) -> None:
        """Several threads at once find the rack."""
        place.put("region-1")
        with ThreadPoolExecutor(_THREADS) as pool:
            waiting = [pool.submit(place.finder.find) for _ in range(_THREADS)]
            assert {each.result(timeout=60) for each in waiting} == {"region-1"}
