"""The rack of this process, which is looked up once."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from ...domain.reading.racks import RackNotFoundError
from ...domain.text import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...ports.reading import RackFinder

log = logging.getLogger("pyspark_kafka")

_racks: Final[dict[tuple[int, str], Future[str | None]]] = {}
"""The racks that were found, by process (a fork may have another environment) and place.

No lock is held while a finder looks: a fork would inherit it.
"""


def rack_of_process(place: str, make_finder: Callable[[], RackFinder]) -> str | None:
    """Return the rack of this process; ``None`` if its place, ``clientRackFrom``, has none.

    Other threads wait for the first call. The result is kept, and so is a failure.
    """
    key, asked = (os.getpid(), place), Future[str | None]()
    rack = _racks.setdefault(key, asked)
    if rack is asked:
        try:
            asked.set_result(_found(place, make_finder()))
        except BaseException as error:
            del _racks[key]
            asked.set_exception(error)
            raise
    return rack.result()


def _found(place: str, finder: RackFinder) -> str | None:
    try:
        return finder.find()
    except Exception as error:  # noqa: BLE001  # a query needs no rack
        known = isinstance(error, RackNotFoundError)
        log.warning(
            "clientRackFrom=%s: no rack was found, and this process reads from the leaders of "
            "partitions: %s",
            place,
            error if known else describe_error(error),
        )
        return None
