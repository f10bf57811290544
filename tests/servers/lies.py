"""Lies that answers may tell, by what is wrong with them."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from .hostile_broker import Lie, Line, framed

DAYS_MS: Final = 20 * 86_400_000
UNKNOWN_ERROR_CODE: Final = 32_000
NO_NODE: Final = 99
TRICKLE_S: Final = 0.1
"""The pause between two bytes, which is shorter than any time-out."""


# Frames: bytes that are not the response's


def another_correlation(frame: bytes) -> bytes:
    """Return an answer as one to another request."""
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
    """Reset the connection in the middle of a frame."""
    line.send(framed(frame)[: 4 + len(frame) // 2])
    line.reset()


def close_within(line: Line, frame: bytes) -> None:
    """End the connection in the middle of a frame."""
    line.send(framed(frame)[: 4 + len(frame) // 2])
    raise ConnectionAbortedError


def twice(line: Line, frame: bytes) -> None:
    """Send an answer two times."""
    line.send(framed(frame) * 2)


def trickled(line: Line, frame: bytes) -> None:
    """Send one byte after the other."""
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
    """Return a lie that responses of an API tell, always or only the first of them."""
    return replace(lie, api=api, times=1) if once else replace(lie, api=api)


# Fields: a response of the protocol that is not true

_TOPICS: Final = ("topics", "responses", "results_by_topic_v3_and_below")
_PARTITIONS: Final = ("partitions", "partition_responses", "results_by_partition")
_NUMBERS: Final = ("partition_index", "index")
_ERRORS: Final = ("error_code", "partition_error_code")


def _name(message: Any, names: Iterable[str]) -> str | None:
    return next((name for name in names if name in message._struct.fields), None)


def _topics(response: Any) -> list[Any]:
    """Return the topics of a response, also those in its groups."""
    holders = [response, *(getattr(response, "groups", None) or ())]
    names = ((holder, _name(holder, _TOPICS)) for holder in holders)
    return [topic for holder, name in names if name for topic in getattr(holder, name) or ()]


def _partitions(response: Any) -> list[Any]:
    return [
        partition
        for topic in _topics(response)
        for partition in getattr(topic, _name(topic, _PARTITIONS) or "")
    ]


def changed(api: str, change: Callable[[Any], None]) -> Lie:
    """Return a lie that changes a response."""
    return Lie(api, answer=lambda _, response: change(response))


def with_fields(api: str, **fields: Any) -> Lie:
    """Return a lie that changes fields of a response itself."""

    def change(response: Any) -> None:
        for name, value in fields.items():
            setattr(response, name, value)

    return changed(api, change)


def with_partition_fields(api: str, **fields: Any) -> Lie:
    """Return a lie that changes fields of each partition."""

    def change(response: Any) -> None:
        for partition in _partitions(response):
            for name, value in fields.items():
                setattr(partition, name, value)

    return changed(api, change)


def with_broker_fields(**fields: Any) -> Lie:
    """Return a lie that changes fields of each broker in the metadata."""

    def change(response: Any) -> None:
        for broker in response.brokers:
            for name, value in fields.items():
                setattr(broker, name, value)

    return changed("Metadata", change)


def without_topics(api: str) -> Lie:
    """Return a lie that leaves all topics out."""

    def change(response: Any) -> None:
        for holder in (response, *(getattr(response, "groups", None) or ())):
            name = _name(holder, _TOPICS)
            if name:
                setattr(holder, name, [])

    return changed(api, change)


def without_partitions(api: str) -> Lie:
    """Return a lie that leaves all partitions out, but not their topics."""

    def change(response: Any) -> None:
        for topic in _topics(response):
            setattr(topic, _name(topic, _PARTITIONS) or "", [])

    return changed(api, change)


def of_another_topic(api: str) -> Lie:
    """Return a lie that names another topic."""

    def change(response: Any) -> None:
        for topic in _topics(response):
            setattr(topic, _name(topic, ("name", "topic")) or "", "other")
            if _name(topic, ("topic_id",)):
                topic.topic_id = UUID(int=NO_NODE)

    return changed(api, change)


def of_another_partition(api: str, number: int = 7) -> Lie:
    """Return a lie that names another partition."""

    def change(response: Any) -> None:
        for partition in _partitions(response):
            setattr(partition, _name(partition, _NUMBERS) or "", number)

    return changed(api, change)


def with_partitions_twice(api: str) -> Lie:
    """Return a lie that has each partition two times."""

    def change(response: Any) -> None:
        for topic in _topics(response):
            name = _name(topic, _PARTITIONS) or ""
            setattr(topic, name, list(getattr(topic, name)) * 2)

    return changed(api, change)


def with_unknown_error(api: str) -> Lie:
    """Return a lie with an error code that there is not, of each partition or of the response."""

    def change(response: Any) -> None:
        for message in _partitions(response) or (response,):
            setattr(message, _name(message, _ERRORS) or "", UNKNOWN_ERROR_CODE)

    return changed(api, change)


def without_coordinator(error_code: int) -> Lie:
    """Return a lie about the coordinators of groups and transactions, in each version."""

    def change(response: Any) -> None:
        for found in (response, *(response.coordinators or ())):
            found.error_code = error_code

    return changed("FindCoordinator", change)


def with_versions(api_key: int | None, lowest: int, highest: int) -> Lie:
    """Return a lie about the versions of one API, or of all."""

    def change(response: Any) -> None:
        for each in response.api_keys:
            if api_key in (None, each.api_key):
                each.min_version, each.max_version = lowest, highest

    return changed("ApiVersions", change)
