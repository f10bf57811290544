"""Fetch requests and responses.

kafka-python's own ``FetchResponse`` copies what was fetched several times on its way. Here the
records stay where they were received.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partialmethod
from types import MappingProxyType
from typing import Final, final
from uuid import UUID

from kafka import errors as kafka_errors

from ...domain.topic_partition import TopicPartition
from ..kafka_format.aborted_transactions import AbortedTransaction
from .transports import MAX_FRAME_BYTES
from .wire_text import NO_TAGS, encode_count, encode_text

MIN_VERSION: Final = 4
"""The first version with isolation levels, and the oldest that a Kafka 4 speaks (KIP-896)."""

MAX_VERSION: Final = 11
"""The last version without compact fields; later ones bring nothing that a range read uses."""

BY_ID_VERSION: Final = 13
"""The version with topic ids for names (KIP-516): a topic that was deleted and created again is not
taken for the old one."""

NO_REPLICA: Final = -1
_FETCH: Final = 1
_MAX_VARINT_SHIFT: Final = 28

NO_TOPIC_IDS: Final[Mapping[TopicPartition, UUID]] = MappingProxyType({})
NO_TOPICS: Final[Mapping[UUID, str]] = MappingProxyType({})


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
    max_batch_bytes: int = MAX_FRAME_BYTES
    """The largest first batch, which a broker sends whole whatever ``max_bytes`` is (KIP-74)."""

    @property
    def max_frame_bytes(self) -> int:
        """How large a response may be."""
        return self.max_bytes + self.max_batch_bytes

    def request(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        version: int,
        correlation_id: int,
        topic_ids: Mapping[TopicPartition, UUID] = NO_TOPIC_IDS,
    ) -> bytes:
        """Return the bytes of a request for the records of partitions, each from an offset on.

        Brokers fill a response in the order of its partitions. ``BY_ID_VERSION`` needs the ids of
        all topics.
        """
        is_compact = version >= BY_ID_VERSION
        end = NO_TAGS if is_compact else b""
        by_topic: dict[bytes, list[tuple[int, int]]] = {}
        for partition, offset in offsets.items():
            topic = topic_ids[partition].bytes if is_compact else encode_text(partition.topic)
            by_topic.setdefault(topic, []).append((partition.partition, offset))
        limits = (NO_REPLICA, self.max_wait_ms, self.min_bytes, self.max_bytes)
        parts = [
            struct.pack(">hhi", _FETCH, version, correlation_id),
            encode_text(self.client_id),
            end,
            struct.pack(">iiiib", *limits, self.isolation_level),
            # A session (KIP-227) would save little: a reader has few partitions.
            struct.pack(">ii", 0, -1) if version >= 7 else b"",
            encode_count(len(by_topic), is_compact=is_compact),
        ]
        for topic, positions in by_topic.items():
            parts += [topic, encode_count(len(positions), is_compact=is_compact)]
            parts += [self._position(version, *position) for position in positions]
            parts.append(end)
        if version >= 7:
            # Partitions that leave the session.
            parts.append(encode_count(0, is_compact=is_compact))
        if version >= 11:
            parts.append(encode_text(self.rack, is_compact=is_compact))
        parts.append(end)
        size = sum(map(len, parts))
        return b"".join((struct.pack(">i", size), *parts))

    def _position(self, version: int, number: int, offset: int) -> bytes:
        # -1 is no leader epoch, which the broker need not check: a former leader refuses the
        # request in any case. The others are a follower's.
        limit = self.partition_bytes
        if version >= BY_ID_VERSION:
            return struct.pack(">iiqiqi", number, -1, offset, -1, -1, limit) + NO_TAGS
        if version >= 9:
            return struct.pack(">iiqqi", number, -1, offset, -1, limit)
        if version >= 5:
            return struct.pack(">iqqi", number, offset, -1, limit)
        return struct.pack(">iqi", number, offset, limit)


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
    def of(
        cls,
        frame: memoryview,
        version: int,
        correlation_id: int,
        topics: Mapping[UUID, str] = NO_TOPICS,
    ) -> FetchResponse:
        """Read a response's frame, without its length; ``topics`` are those of the request, by id.

        :raises KafkaProtocolError: if it is not the response to that request.
        """
        try:
            return _response(_Fields(frame, version), correlation_id, topics)
        except (struct.error, ValueError, LookupError) as error:
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


def _response(fields: _Fields, correlation_id: int, topics: Mapping[UUID, str]) -> FetchResponse:
    answered = fields.int32()
    if answered != correlation_id:
        raise kafka_errors.CorrelationIdError(f"{answered} answers {correlation_id}")
    fields.skip_tags()
    throttle_s = fields.int32() / 1_000
    error_code = 0
    if fields.version >= 7:
        error_code = fields.int16()
        fields.skip(4)  # the session
    partitions: dict[TopicPartition, FetchedData] = {}
    for _ in range(fields.count()):
        topic = topics[UUID(bytes=bytes(fields.bytes(16)))] if fields.is_compact else fields.text()
        for _ in range(fields.count()):
            partition = TopicPartition(topic, fields.int32())
            partitions[partition] = _fetched_data(fields, error_code)
        fields.skip_tags()
    fields.skip_tags()
    return FetchResponse(kafka_errors.for_code(error_code), throttle_s, partitions)


def _fetched_data(fields: _Fields, error_code: int) -> FetchedData:
    partition_error = fields.int16()
    # High watermark, last stable offset, and from version 5 on where the log begins.
    fields.skip(24 if fields.version >= 5 else 16)
    aborted = tuple(_aborted(fields) for _ in range(fields.count()))
    replica = fields.int32() if fields.version >= 11 else NO_REPLICA
    records = fields.bytes(fields.count())
    fields.skip_tags()
    error = kafka_errors.for_code(error_code or partition_error)
    return FetchedData(error, replica, aborted, records)


def _aborted(fields: _Fields) -> AbortedTransaction:
    producer_id, first_offset = fields.int64(), fields.int64()
    fields.skip_tags()
    return AbortedTransaction(producer_id=producer_id, first_offset=first_offset)


@final
class _Fields:
    """Reads the fields of a frame in order."""

    def __init__(self, frame: memoryview, version: int) -> None:
        self._frame = frame
        self._position = 0
        self.version = version
        self.is_compact = version >= BY_ID_VERSION

    def count(self) -> int:
        """Read the size of an array or of bytes, 0 for null."""
        return max(self._varint() - 1 if self.is_compact else self.int32(), 0)

    def skip_tags(self) -> None:
        if self.is_compact:
            for _ in range(self._varint()):
                self._varint()
                self.bytes(self._varint())

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._frame[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MAX_VARINT_SHIFT:
                raise ValueError("a number is too large")

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
