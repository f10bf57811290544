"""Fetch requests and responses.

kafka-python's own ``FetchResponse`` copies what was fetched several times on its way. Here the
records stay where they were received.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partialmethod
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors

from ...domain.topic_partition import TopicPartition
from ..kafka_format.aborted_transactions import AbortedTransaction
from .wire_text import encode_text

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_VERSION: Final = 4
"""The first version with isolation levels, and the oldest that a Kafka 4 speaks (KIP-896)."""

MAX_VERSION: Final = 11
"""The last version without compact fields; later ones bring nothing that a range read uses."""

NO_REPLICA: Final = -1
_FETCH: Final = 1


@final
@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The fields that are the same in every request of a reader."""

    client_id: str
    rack: str
    isolation_level: int
    min_bytes: int
    max_bytes: int
    partition_bytes: int
    max_wait_ms: int

    def request(
        self, offsets: Mapping[TopicPartition, int], *, version: int, correlation_id: int
    ) -> bytes:
        """Return the bytes of a request for the records of partitions, each from an offset on.

        Brokers fill a response in the order of its partitions.
        """
        by_topic: dict[str, list[tuple[int, int]]] = {}
        for partition, offset in offsets.items():
            by_topic.setdefault(partition.topic, []).append((partition.partition, offset))
        limits = (NO_REPLICA, self.max_wait_ms, self.min_bytes, self.max_bytes)
        parts = [
            struct.pack(">hhi", _FETCH, version, correlation_id),
            encode_text(self.client_id),
            struct.pack(">iiiib", *limits, self.isolation_level),
            # A session (KIP-227) would save little: a reader has few partitions.
            struct.pack(">ii", 0, -1) if version >= 7 else b"",
            struct.pack(">i", len(by_topic)),
        ]
        for topic, positions in by_topic.items():
            parts += [encode_text(topic), struct.pack(">i", len(positions))]
            parts += [self._position(version, *position) for position in positions]
        if version >= 7:
            parts.append(struct.pack(">i", 0))  # partitions that leave the session
        if version >= 11:
            parts.append(encode_text(self.rack))
        size = sum(map(len, parts))
        return b"".join((struct.pack(">i", size), *parts))

    def _position(self, version: int, number: int, offset: int) -> bytes:
        # -1 is no leader epoch, which the broker need not check: a former leader refuses the
        # request in any case. The other is where a follower's log begins.
        if version >= 9:
            return struct.pack(">iiqqi", number, -1, offset, -1, self.partition_bytes)
        if version >= 5:
            return struct.pack(">iqqi", number, offset, -1, self.partition_bytes)
        return struct.pack(">iqi", number, offset, self.partition_bytes)


@final
@dataclass(frozen=True, slots=True)
class FetchedData:
    """What a broker sent of one partition."""

    error: type[kafka_errors.KafkaError]
    preferred_replica: int
    aborted: tuple[AbortedTransaction, ...]
    records: memoryview


@final
@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A broker's response, by partition; the records are parts of the frame."""

    error: type[kafka_errors.KafkaError]
    """An error of the whole request, which is that of each partition too."""

    throttle_s: float
    partitions: Mapping[TopicPartition, FetchedData]

    @classmethod
    def of(cls, frame: memoryview, version: int, correlation_id: int) -> FetchResponse:
        """Read a response's frame, without its length.

        :raises KafkaProtocolError: if it is not the response to that request.
        """
        try:
            return _response(_Fields(frame), version, correlation_id)
        except (struct.error, ValueError) as error:
            raise kafka_errors.KafkaProtocolError(
                f"a fetch response is truncated: {error}"
            ) from error

    def of_partition(self, partition: TopicPartition) -> FetchedData:
        """Return what was sent of a partition; an error if it was left out."""
        found = self.partitions.get(partition)
        if found is not None:
            return found
        error = self.error
        if error is kafka_errors.NoError:
            error = kafka_errors.UnknownError
        return FetchedData(error, NO_REPLICA, (), memoryview(b""))


def _response(fields: _Fields, version: int, correlation_id: int) -> FetchResponse:
    answered = fields.int32()
    if answered != correlation_id:
        raise kafka_errors.CorrelationIdError(f"{answered} answers {correlation_id}")
    throttle_s = fields.int32() / 1_000
    error_code = 0
    if version >= 7:
        error_code = fields.int16()
        fields.skip(4)  # the session
    partitions: dict[TopicPartition, FetchedData] = {}
    for _ in range(fields.int32()):
        topic = fields.text()
        for _ in range(fields.int32()):
            partition = TopicPartition(topic, fields.int32())
            partitions[partition] = _fetched_data(fields, version, error_code)
    return FetchResponse(kafka_errors.for_code(error_code), throttle_s, partitions)


def _fetched_data(fields: _Fields, version: int, error_code: int) -> FetchedData:
    partition_error = fields.int16()
    # High watermark, last stable offset, and from version 5 on where the log begins.
    fields.skip(24 if version >= 5 else 16)
    aborted = tuple(
        AbortedTransaction(producer_id=fields.int64(), first_offset=fields.int64())
        for _ in range(max(fields.int32(), 0))
    )
    replica = fields.int32() if version >= 11 else NO_REPLICA
    records = fields.bytes(max(fields.int32(), 0))
    error = kafka_errors.for_code(error_code or partition_error)
    return FetchedData(error, replica, aborted, records)


@final
class _Fields:
    """Reads the fields of a frame in order."""

    def __init__(self, frame: memoryview) -> None:
        self._frame = frame
        self._position = 0

    def skip(self, size: int) -> None:
        if size < 0:
            raise ValueError("a negative size")
        self._position += size

    def bytes(self, size: int) -> memoryview:
        start, end = self._position, self._position + size
        if end > len(self._frame):
            raise ValueError(f"{size} bytes are announced")
        self._position = end
        return self._frame[start:end]

    def text(self) -> str:
        size = self.int16()
        if size < 0:
            raise ValueError("a negative size")
        return str(self.bytes(size), "utf-8")

    def _number(self, form: str) -> int:
        number: int = struct.unpack_from(form, self._frame, self._position)[0]
        self._position += struct.calcsize(form)
        return number

    int16 = partialmethod(_number, ">h")
    int32 = partialmethod(_number, ">i")
    int64 = partialmethod(_number, ">q")
