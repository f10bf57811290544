"""Checks of brokers' responses that kafka-python does not make."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from kafka import errors as kafka_errors

from ...domain.errors import PysparkKafkaError
from ...domain.topic_partition import TopicPartition

K = TypeVar("K")
V = TypeVar("V")

MAX_FRAME_BYTES: Final = 100_000_000
"""Kafka's own limit for requests; only a response to a fetch may be larger."""

NO_OFFSET: Final = -1
"""The offset of a time that no record reaches (``ListOffsetsResponse``), and of a group that has
committed none (``OffsetFetchResponse``)."""

INVALID: Final = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
)
"""The errors of reading a response that is truncated or has an invalid field."""


class TlsExpectedError(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A listener answers a request without TLS with an alert of TLS."""


@contextmanager
def reading(broker: str = "") -> Iterator[None]:
    """Raise ``KafkaProtocolError``, which names a broker, if its response cannot be read."""
    prefix = f"{broker}: " if broker else ""
    try:
        yield
    except PysparkKafkaError:
        # Some are a ``LookupError`` or a ``ValueError`` too.
        raise
    except kafka_errors.KafkaProtocolError as error:
        raise type(error)(f"{prefix}{'; '.join(map(str, error.args))}") from error
    except INVALID as error:
        raise kafka_errors.KafkaProtocolError(
            f"{prefix}a response cannot be read: {error!r}"
        ) from error


def unique(items: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Return a mapping of keys to values.

    :raises KafkaProtocolError: if a key occurs twice: the right value is not known.
    """
    found: dict[K, V] = {}
    for key, value in items:
        if key in found:
            raise kafka_errors.KafkaProtocolError(f"the response has {key} twice")
        found[key] = value
    return found


def require_all(answered: Iterable[K], asked: Iterable[K]) -> None:
    """Check that a response answers for all that was asked for.

    :raises KafkaProtocolError: naming the first that it leaves out.
    """
    missing = set(asked).difference(answered)
    if missing:
        raise kafka_errors.KafkaProtocolError(f"the response leaves out {min(missing, key=str)}")


def asked_partitions(request: Any) -> list[TopicPartition]:
    """Return the partitions that a request of kafka-python names, none for many requests."""
    topics = getattr(request, "topics", None) or getattr(request, "v3_and_below_topics", None)
    return [
        TopicPartition(topic.name, getattr(each, "partition_index", each))
        for topic in topics or ()
        if hasattr(topic, "name")
        for each in getattr(topic, "partition_indexes", ()) or getattr(topic, "partitions", ())
    ]


def answered_partitions(response: Any) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield the partitions that a response of kafka-python names, each with its fields."""
    topics = getattr(response, "topics", None)
    topics = topics or getattr(response, "results_by_topic_v3_and_below", None)
    for topic in topics or ():
        for each in getattr(topic, "results_by_partition", None) or topic.partitions:
            yield TopicPartition(topic.name, each.partition_index), each


def check_topics(described: Iterable[Any]) -> None:
    """Check the topics of a ``MetadataResponse``.

    :raises KafkaProtocolError: if the partitions of one are invalid.
    """
    for topic in described:
        found = [0] if topic.error_code else [each.partition_index for each in topic.partitions]
        if topic.name is None or min(found, default=-1) < 0:
            raise kafka_errors.KafkaProtocolError(
                f"topic '{topic.name}' has the partitions {found[:5]}"
            )


def check_offsets(
    offsets: Mapping[TopicPartition, int], asked: Iterable[TopicPartition], min_offset: int = 0
) -> None:
    """Check the offsets of partitions.

    :raises KafkaProtocolError: if one is missing, or is less than ``min_offset``.
    """
    require_all(offsets, asked)
    for partition, offset in offsets.items():
        if offset < min_offset:
            raise kafka_errors.KafkaProtocolError(f"the offset of {partition} is {offset}")


def check_response(answer: Any) -> Any:
    """Return a response, unless it has an error to raise.

    :raises KafkaProtocolError: if it lacks a field that every response has.
    """
    with reading():
        codes = [getattr(answer, "error_code", 0)]
        for _, each in answered_partitions(answer):
            code = getattr(each, "partition_error_code", None)
            codes.append(each.error_code if code is None else code)
    # OPERATION_NOT_ATTEMPTED is set where another partition has the actual error.
    codes.sort(key=lambda code: code == kafka_errors.OperationNotAttemptedError.errno)
    for code in codes:
        if code:
            raise kafka_errors.for_code(code)
    return answer
