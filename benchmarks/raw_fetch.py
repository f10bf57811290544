"""Fetches over a plain socket, as the upper limit of any reader's speed."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final, Self, final

from kafka.protocol.consumer import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.domain.reading.ranges import OffsetRange

VERSION: Final = 11
"""The newest version with topic names and fixed-size lengths."""

PARTITION_BYTES: Final = 8 << 20
RECEIVE_BUFFER_BYTES: Final = 4 << 20

LENGTH: Final = Struct(">i")
ABORTED_BYTES: Final = 16
PARTITION_HEAD: Final = Struct(">ihqqq")
"""Partition, error, high watermark, last stable offset, the log's start."""

BATCH_HEAD: Final = Struct(">qi11xi")
"""Of a record batch: base offset, length, and last offset delta."""

LENGTH_END: Final = 12


@final
@dataclass(frozen=True, slots=True)
class Fetched:
    """The record batches of a response; the next one overwrites them."""

    records: memoryview
    next_offset: int


@final
class RawFetch:
    """A connection to the only broker of a cluster, the leader of every partition."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._correlation_id = 0
        self._buffer = bytearray(PARTITION_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def read(self, offset_range: OffsetRange) -> Iterator[Fetched]:
        """Yield the fetches of a range, up to the end of the batch with its last offset."""
        offset = offset_range.from_offset
        while offset < offset_range.until_offset:
            self._send(offset_range, offset)
            records = _records(self._receive(), offset_range)
            offset = next_offset(records, offset)
            yield Fetched(records, offset)

    def _send(self, offset_range: OffsetRange, offset: int) -> None:
        self._correlation_id += 1
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=offset_range.partition.partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=PARTITION_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=PARTITION_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[topic(topic=offset_range.partition.topic, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=VERSION,
        )
        request.with_header(correlation_id=self._correlation_id, client_id="benchmarks")
        self._socket.sendall(request.encode(version=VERSION, framed=True, header=True))

    def _receive(self) -> memoryview:
        head = bytearray(LENGTH.size)
        self._fill(memoryview(head))
        (length,) = LENGTH.unpack(head)
        if length > len(self._buffer):
            self._buffer = bytearray(length)
        response = memoryview(self._buffer)[:length]
        self._fill(response)
        return response

    def _fill(self, target: memoryview) -> None:
        received = 0
        while received < len(target):
            count = self._socket.recv_into(target[received:])
            if not count:
                raise ConnectionError("the broker closed the connection")
            received += count


def _records(response: memoryview, offset_range: OffsetRange) -> memoryview:
    """Return the records of a response with one topic and one partition."""
    # Before the partition: correlation, throttle, error, session, and the topic's name between
    # the numbers of topics and partitions.
    at = 4 + 4 + 2 + 4 + 4 + 2 + len(offset_range.partition.topic) + 4
    _, error, *_ = PARTITION_HEAD.unpack_from(response, at)
    if error:
        raise ConnectionError(f"the broker answered a fetch of {offset_range} with error {error}")
    at += PARTITION_HEAD.size
    (aborted,) = LENGTH.unpack_from(response, at)
    # After the aborted transactions comes the preferred replica.
    at += LENGTH.size + max(0, aborted) * ABORTED_BYTES + 4
    (length,) = LENGTH.unpack_from(response, at)
    at += LENGTH.size
    return response[at : at + length]


def next_offset(records: memoryview, offset: int) -> int:
    """Return the offset after the last complete batch."""
    at = 0
    while at + BATCH_HEAD.size <= len(records):
        first, length, delta = BATCH_HEAD.unpack_from(records, at)
        at += LENGTH_END + length
        if at > len(records):
            break
        offset = first + delta + 1
    return offset
