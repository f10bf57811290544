from __future__ import annotations

import threading
from typing import Final

from pyspark_kafka.domain.reading.racks import RackNotFoundError, checked_rack
from pyspark_kafka.ports.reading import RackFinder
from pyspark_kafka.testing import RackFinderContract as Suite
from pyspark_kafka.testing import RackPlace

from .adapter import Faults, suite_with


class Place(RackPlace):
    rack: str | None = None

    def __init__(self, adapter: type[Asking]) -> None:
        self.finder = adapter(self)

    def put(self, rack: str | None) -> None:
        self.rack = rack


class Asking(RackFinder):
    """Asks the place at each call."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def find(self) -> str:
        if self.place.rack is None:
            raise RackNotFoundError("the place", "it has no rack")
        return checked_rack("the place", self.place.rack)


def _suite(adapter: type[Asking]) -> type:
    return suite_with(Suite, place=lambda: Place(adapter))


wrong: Final = Faults(Asking, _suite)


@wrong(Suite.test_the_rack_is_found)
class KeepsRack(Asking):
    """Returns its first rack for ever."""

    _rack: str | None = None

    def find(self):
        self._rack = self._rack or super().find()
        return self._rack


@wrong(Suite.test_a_host_without_a_rack_is_told, "find")
def returns_no_text_if_there_is_no_rack(self):
    return self.place.rack and Asking.find(self)


@wrong(Suite.test_a_host_without_a_rack_is_told, "find")
def does_not_say_where_it_looked(self):
    try:
        return Asking.find(self)
    except RackNotFoundError:
        raise RackNotFoundError("", "no rack") from None


@wrong(Suite.test_a_rack_may_be_long, "find")
def cuts_a_long_rack(self):
    return Asking.find(self)[:250]


@wrong(Suite.test_another_text_is_no_rack, "find")
def returns_any_text(self):
    if self.place.rack is None:
        raise RackNotFoundError("the place", "it has no rack")
    return self.place.rack


@wrong(Suite.test_threads_share_a_finder)
class KnowsOneThread(Asking):
    """Serves the thread that made it only."""

    def __init__(self, place):
        super().__init__(place)
        self._thread = threading.get_ident()

    def find(self):
        if threading.get_ident() != self._thread:
            raise RuntimeError("another thread")
        return super().find()
