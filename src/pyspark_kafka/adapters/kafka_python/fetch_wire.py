"""Fetch requests and responses, as far as a read of one partition needs them.

kafka-python's own ``FetchResponse`` copies what was fetched several times on its way. Here the
records stay where they were received.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partialmethod
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest

from ..kafka_format.aborted_transactions import AbortedTransaction

if TYPE_CHECKING:
    from ...domain.topic_partition import TopicPartition

MIN_VERSION: Final = 4
"""The first version with isolation levels, and the oldest that a Kafka 4 speaks (KIP-896)."""

MAX_VERSION: Final = 11
"""The last version without compact fields; later ones bring nothing that a range read uses."""

NO_REPLICA: Final = -1


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
        self, partition: TopicPartition, offset: int, *, version: int, correlation_id: int
    ) -> bytes:
        """Return the bytes of a request for the records from an offset on."""
        topic = FetchRequest.FetchTopic
        wanted = topic.FetchPartition(
            partition=partition.partition,
            # Not checked by the broker: a former leader refuses the request in any case.
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=self.partition_bytes,
        )
        request = FetchRequest(
            max_wait_ms=self.max_wait_ms,
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            isolation_level=self.isolation_level,
            topics=[topic(topic=partition.topic, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id=self.rack,
            max_version=MAX_VERSION,
            # One partition a request: there is nothing that a fetch session (KIP-227) would save.
            session_id=0,
            session_epoch=-1,
        )
        request.API_VERSION = version
        request.with_header(correlation_id=correlation_id, client_id=self.client_id)
        encoded: bytes = request.encode(version=version, framed=True, header=True)
        return encoded


@final
@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A broker's response for one partition."""

    error: type[kafka_errors.KafkaError]
    throttle_s: float
    preferred_replica: int
    aborted: tuple[AbortedTransaction, ...]
    records: memoryview

    @classmethod
    def of(cls, frame: memoryview, version: int, correlation_id: int) -> FetchResponse:
        """Read a response's frame, without its length; the records are a part of it.

        :raises KafkaProtocolError: if it is not the response to that request.
        """
        try:
            return _response(_Fields(frame), version, correlation_id)
        except (struct.error, ValueError) as error:
            raise kafka_errors.KafkaProtocolError(
                f"a fetch response is truncated: {error}"
            ) from error


def _response(fields: _Fields, version: int, correlation_id: int) -> FetchResponse:
    answered = fields.int32()
    if answered != correlation_id:
        raise kafka_errors.CorrelationIdError(f"{answered} answers {correlation_id}")
    throttle_s = fields.int32() / 1_000
    error_code = 0
    if version >= 7:
        error_code = fields.int16()
        fields.skip(4)  # the session
    if fields.int32() != 1:
        # A top-level error comes without the partition.
        return FetchResponse(
            kafka_errors.for_code(error_code or -1), throttle_s, NO_REPLICA, (), fields.rest(0)
        )
    fields.skip(fields.int16())  # the topic's name
    fields.skip(8)  # the number of partitions, which is one, and that one's number
    partition_error = fields.int16()
    # High watermark, last stable offset, and from version 5 on where the log begins.
    fields.skip(24 if version >= 5 else 16)
    aborted = tuple(
        AbortedTransaction(producer_id=fields.int64(), first_offset=fields.int64())
        for _ in range(max(fields.int32(), 0))
    )
    replica = fields.int32() if version >= 11 else NO_REPLICA
    records = fields.rest(max(fields.int32(), 0))
    error = kafka_errors.for_code(error_code or partition_error)
    return FetchResponse(error, throttle_s, replica, aborted, records)


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

    def rest(self, size: int) -> memoryview:
        if self._position + size > len(self._frame):
            raise ValueError(f"{size} bytes are announced")
        return self._frame[self._position : self._position + size]

    def _number(self, form: str) -> int:
        number: int = struct.unpack_from(form, self._frame, self._position)[0]
        self._position += struct.calcsize(form)
        return number

    int16 = partialmethod(_number, ">h")
    int32 = partialmethod(_number, ">i")
    int64 = partialmethod(_number, ">q")
