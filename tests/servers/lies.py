"""Lies in answers, by what is wrong with them."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from tests.slowness import bound_s

from .honest_cluster import NUMBERS, TOPICS, field_of
from .hostile_broker import Lie, Line, framed

DAYS_MS: Final = 20 * 86_400_000
UNKNOWN_ERROR_CODE: Final = 32_000
NO_NODE: Final = 99
TRICKLE_S: Final = bound_s(0.1)
"""The pause between two bytes, which is shorter than any time-out."""


# Frames: bytes that are not the response's


def another_correlation(frame: bytes) -> bytes:
    return struct.pack(">i", struct.unpack_from(">i", frame)[0] + 1_000) + frame[4:]


def first_half(frame: bytes) -> bytes:
    """Return a frame that ends in the middle, and says so."""
    return frame[: 4 + (len(frame) - 4) // 2]


def filled_with(byte: bytes) -> Callable[[bytes], bytes]:
    """Return a function that sets all bytes behind the correlation id."""
    return lambda frame: frame[:4] + byte * (len(frame) - 4)


def with_size(size: int) -> Callable[[Line, bytes], None]:
    """Return a function that announces a frame of a size, and sends an honest one."""

    def send(line: Line, frame: bytes) -> None:
        line.send(struct.pack(">i", size) + frame)

    return send


def reset_within(line: Line, frame: bytes) -> None:
    line.send(framed(frame)[: 4 + len(frame) // 2])
    line.reset()


def close_within(line: Line, frame: bytes) -> None:
    line.send(framed(frame)[: 4 + len(frame) // 2])
    raise ConnectionAbortedError


def twice(line: Line, frame: bytes) -> None:
    line.send(framed(frame) * 2)


def trickled(line: Line, frame: bytes) -> None:
    line.trickle(framed(frame), TRICKLE_S)


_NO_API: Final = ""

FRAMES: Final = {
    "answers another request": Lie(_NO_API, frame=another_correlation),
    "is cut off": Lie(_NO_API, frame=first_half),
    "is only a correlation id": Lie(_NO_API, frame=lambda frame: frame[:4]),
    "has half a correlation id": Lie(_NO_API, frame=lambda frame: frame[:2]),
    "is empty": Lie(_NO_API, frame=lambda _: b""),
    "has negative sizes": Lie(_NO_API, frame=filled_with(b"\xff")),
    "has huge sizes": Lie(_NO_API, frame=filled_with(b"\x7f")),
    "announces a negative size": Lie(_NO_API, send=with_size(-2)),
    "is reset": Lie(_NO_API, send=reset_within),
    "ends with the connection": Lie(_NO_API, send=close_within),
    "comes twice": Lie(_NO_API, send=twice),
}
"""Lies about the frame of a response, of no API yet."""


def of_api(lie: Lie, api: str, *, once: bool = False) -> Lie:
    """Return a lie for responses of an API, always or only for the first of them."""
    return replace(lie, api=api, times=1) if once else replace(lie, api=api)


# Fields: a response of the protocol that is not true

_PARTITIONS: Final = ("partitions", "partition_responses", "results_by_partition")
_ERRORS: Final = ("error_code", "partition_error_code")


def _holders(response: Any) -> list[Any]:
    """Return what has topics: a response, or its groups."""
    return [response, *(getattr(response, "groups", None) or ())]


def _topics(response: Any) -> list[Any]:
    holders = ((holder, field_of(holder, TOPICS)) for holder in _holders(response))
    return [topic for holder, name in holders if name for topic in getattr(holder, name) or ()]


def _partitions(response: Any) -> list[Any]:
    return [
        partition
        for topic in _topics(response)
        for partition in getattr(topic, field_of(topic, _PARTITIONS))
    ]


def changed(api: str, change: Callable[[Any], None]) -> Lie:
    return Lie(api, answer=lambda _, response: change(response))


def _setting(
    api: str, messages: Callable[[Any], Iterable[Any]], values: Mapping[Sequence[str], Any]
) -> Lie:
    """Return a lie that sets fields of messages in a response, each the first of some names."""

    def change(response: Any) -> None:
        for message in messages(response):
            for names, value in values.items():
                if name := field_of(message, names):
                    setattr(message, name, value)

    return changed(api, change)


def with_fields(api: str, **fields: Any) -> Lie:
    """Return a lie that changes fields of a response itself."""
    return _setting(api, lambda response: [response], _named(fields))


def with_partition_fields(api: str, **fields: Any) -> Lie:
    """Return a lie that changes fields of each partition."""
    return _setting(api, _partitions, _named(fields))


def with_broker_fields(**fields: Any) -> Lie:
    """Return a lie that changes fields of each broker in the metadata."""
    return _setting("Metadata", lambda response: response.brokers, _named(fields))


def _named(fields: Mapping[str, Any]) -> dict[Sequence[str], Any]:
    return {(name,): value for name, value in fields.items()}


def without_topics(api: str) -> Lie:
    return _setting(api, _holders, {TOPICS: []})


def without_partitions(api: str) -> Lie:
    """Return a lie that leaves all partitions out, but not their topics."""
    return _setting(api, _topics, {_PARTITIONS: []})


def of_another_topic(api: str) -> Lie:
    return _setting(api, _topics, {("name", "topic"): "other", ("topic_id",): UUID(int=NO_NODE)})


def of_another_partition(api: str, number: int = 7) -> Lie:
    return _setting(api, _partitions, {NUMBERS: number})


def with_partitions_twice(api: str) -> Lie:
    def change(response: Any) -> None:
        for topic in _topics(response):
            name = field_of(topic, _PARTITIONS)
            setattr(topic, name, list(getattr(topic, name)) * 2)

    return changed(api, change)


def with_unknown_error(api: str) -> Lie:
    """Return a lie with an error code that there is not, of each partition or of the response."""

    def erring(response: Any) -> list[Any]:
        return _partitions(response) or [response]

    return _setting(api, erring, {_ERRORS: UNKNOWN_ERROR_CODE})


def without_coordinator(error_code: int) -> Lie:
    """Return a lie about the coordinators of groups and transactions, in each version."""

    def found(response: Any) -> list[Any]:
        return [response, *(response.coordinators or ())]

    return _setting("FindCoordinator", found, {("error_code",): error_code})


def with_versions(api_key: int | None, lowest: int, highest: int) -> Lie:
    """Return a lie about the versions of one API, or of all."""

    def change(response: Any) -> None:
        for each in response.api_keys:
            if api_key in (None, each.api_key):
                each.min_version, each.max_version = lowest, highest

    return changed("ApiVersions", change)
