"""Connections to brokers, which receive available bytes and never wait for the rest."""

from __future__ import annotations

import math
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest

from ...domain.cluster.response_times import ResponseTimes
from ...ports.clock import Deadline, still_waiting
from .responses import (
    MAX_FRAME_BYTES,
    TlsExpectedError,
    answered_partitions,
    asked_partitions,
    reading,
    require_all,
)
from .sockets import await_ready, is_ready, ready_numbers
from .wire import (
    BY_ID_VERSION,
    DIVERGING_VERSION,
    MAX_FETCH_VERSION,
    MAX_PRODUCE_VERSION,
    MIN_FETCH_VERSION,
    NO_TOPICS,
    FetchPosition,
    FetchResponse,
    FetchSettings,
    ProduceSettings,
    responses_of,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from kafka.protocol.broker_version_data import BrokerVersionData

    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.batch import Failure

_DEFAULT_FRAME_BYTES: Final = 4 * 1024 * 1024

_HEAD_BYTES: Final = 4
_TLS_ALERT: Final = b"\x15\x03"
"""The answer of a listener with TLS to a request without TLS (RFC 8446, section 5.1)."""

_ACTIONS: Final = {EVENT_READ: "answer", EVENT_WRITE: "take a request"}


class FrameTooLargeError(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A broker announces a response that is larger than anything it was asked for.

    The request is not retried: the response would be as large again.
    """

    def __init__(self, broker: str, size: int, max_size: int) -> None:
        super().__init__(
            f"{broker} announces a response of {size} bytes, more than the {max_size} that are "
            "accepted. If a record is that large, raise 'maxRecordBytes'; if not, something "
            "else answers in the broker's place"
        )


class UnansweredError(ConnectionResetError):
    """A broker closes a connection before it has answered a request."""


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """An authenticated socket to a broker, and the versions that the broker supports."""

    socket: socket.socket
    peer: str
    versions: BrokerVersionData
    expires_at: float = math.inf
    """When the broker is about to ask for authentication again, by ``time.monotonic``."""


class BrokerConnection:
    """A connection to one broker, for requests whose responses come in order. Not thread-safe.

    Sending and receiving raise ``OSError`` if the connection is lost, and ``KafkaProtocolError`` if
    the bytes are not a response to the oldest request.
    """

    def __init__(
        self, opened: Opened, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        """Take a connection that nothing else uses.

        Sending a request may take ``timeout_ms``, and so may receiving its whole response.
        """
        self.peer = opened.peer
        """The broker, for messages."""

        self._socket = opened.socket
        self._expires_at = opened.expires_at
        self._correlation_id = 0
        self._timeout_s = timeout_ms / 1_000
        self._max_frame_bytes = max_frame_bytes
        self._times = ResponseTimes(self._timeout_s)
        self._head = memoryview(bytearray(_HEAD_BYTES))
        self._frame: memoryview | None = None
        self._filled = 0
        self._has_answered = False

    @property
    def is_stale(self) -> bool:
        """Whether another connection is needed: brokers close those that are idle for minutes."""
        if time.monotonic() > self._expires_at:
            return True
        if self._times.is_awaited or isinstance(self._socket, ssl.SSLSocket):
            # TLS may receive its own messages.
            return False
        return is_ready(self._socket, EVENT_READ, 0)

    @property
    def is_overdue(self) -> bool:
        """Whether the response to the oldest request should be complete by now.

        The caller may have been busy: bytes that have come are received first.
        """
        self._times.look(time.monotonic())
        if self.seconds_left:
            return False
        is_there = self.has_decrypted or is_ready(self._socket, EVENT_READ, 0)
        return self._times.has_begun or not is_there

    @property
    def seconds_left(self) -> float:
        """How long the response to the oldest request may still take, at least 0."""
        return self._times.seconds_left(time.monotonic())

    @property
    def has_decrypted(self) -> bool:
        """Whether decrypted bytes wait in TLS: the socket is not readable for them."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def fileno(self) -> int:
        """Return the socket's file descriptor, so that a selector can wait for a response."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._socket.close()

    def _send(self, request: bytes, *, is_answered: bool = True) -> None:
        deadline = Deadline.after(self._timeout_s)
        unsent = memoryview(request)
        while unsent:
            try:
                unsent = unsent[self._socket.send(unsent) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(EVENT_WRITE, deadline)
            except ssl.SSLWantReadError:
                self._wait(EVENT_READ, deadline)
        if is_answered:
            self._times.sent(time.monotonic())

    def _receive_frame(
        self, allocate: Callable[[int], memoryview], deadline: Deadline
    ) -> memoryview:
        """Wait for a frame; return and raise as ``_poll_frame``.

        :raises TimeoutError: if it is not complete in time.
        """
        while (frame := self._poll_frame(allocate)) is None:
            self._wait(EVENT_READ, deadline)
        return frame

    def _poll_frame(self, allocate: Callable[[int], memoryview]) -> memoryview | None:
        """Receive available bytes, and return a frame without its length once it is complete.

        ``allocate`` returns memory of the size that it is given, and is not called for a frame that
        is too large.
        """
        self._times.look(time.monotonic())
        if self._frame is None:
            if not self._fill(self._head):
                return None
            self._frame = allocate(self._announced())
        if not self._fill(self._frame):
            return None
        frame, self._frame = self._frame, None
        self._has_answered = True
        self._times.complete()
        return frame

    def _announced(self) -> int:
        """Return the size of a frame that is about to come."""
        if not self._has_answered and bytes(self._head[:2]) == _TLS_ALERT:
            raise TlsExpectedError(f"{self.peer} expects TLS")
        size = int.from_bytes(self._head, "big", signed=True)
        if size < 0:
            raise kafka_errors.InvalidReceiveError(f"{self.peer}: a frame of {size} bytes")
        if size > self._max_frame_bytes:
            raise self._too_large(size)
        return size

    def _too_large(self, size: int) -> kafka_errors.KafkaError:
        return kafka_errors.InvalidReceiveError(f"{self.peer}: a frame of {size} bytes")

    def _fill(self, view: memoryview) -> bool:
        """Receive available bytes, and return whether the view is full."""
        while self._filled < len(view):
            try:
                received = self._socket.recv_into(view[self._filled :])
            except (BlockingIOError, ssl.SSLWantReadError):
                return False
            except ssl.SSLWantWriteError:
                self._wait(EVENT_WRITE, Deadline.after(self._timeout_s))
                continue
            except ConnectionResetError as error:
                raise self._closed() from error
            if not received:
                raise self._closed()
            self._times.begin(time.monotonic())
            self._filled += received
        self._filled = 0
        return True

    def _closed(self) -> ConnectionResetError:
        kind = ConnectionResetError if self._has_answered else UnansweredError
        return kind(f"{self.peer} closed the connection")

    def _wait(self, events: int, deadline: Deadline) -> None:
        text = f"{self.peer} did not {_ACTIONS[events]} in time"
        await_ready(self._socket, events, deadline, text)


def new_memory(size: int) -> memoryview:
    """Return memory that the operating system provides as it is written: not before bytes come."""
    return np.empty(size, np.uint8).data


@final
class ReceiveBuffer:
    """Memory for one response; a larger one gets its own."""

    def __init__(self) -> None:
        self._memory = np.empty(_DEFAULT_FRAME_BYTES, np.uint8)

    def view(self, size: int) -> memoryview:
        """Return memory for a frame; earlier content is overwritten."""
        if size > len(self._memory):
            return new_memory(size)
        return self._memory.data[:size]


@final
class FetchConnection(BrokerConnection):
    """Sends fetch requests to one broker, one at a time."""

    def __init__(self, opened: Opened, settings: FetchSettings, timeout_ms: int) -> None:
        """Take a connection that nothing else uses; a response may take ``timeout_ms``."""
        newest: int = opened.versions.api_version(FetchRequest, MIN_FETCH_VERSION, BY_ID_VERSION)
        self._takes_ids = newest == BY_ID_VERSION
        self._sent_version = self._version = min(newest, MAX_FETCH_VERSION)
        self.compares_epochs = self._version >= DIVERGING_VERSION
        """Whether the broker compares the epoch of the last record with its log at each fetch."""

        self._settings = settings
        self._topics: Mapping[UUID | None, str] = NO_TOPICS
        self.asks_by_id = False
        """Whether the last request had topic ids instead of names."""

        self.in_flight: Mapping[TopicPartition, FetchPosition] | None = None
        """The positions of the request in flight."""

        super().__init__(opened, timeout_ms, settings.max_frame_bytes)

    def send(
        self, positions: Mapping[TopicPartition, FetchPosition], *, with_rack: bool = True
    ) -> None:
        """Request the records of partitions, each from a position on.

        Topics are requested by id if all ids are known, and the broker takes ids.
        """
        self._correlation_id += 1
        self._topics = {each.topic_id: partition.topic for partition, each in positions.items()}
        self.asks_by_id = self._takes_ids and None not in self._topics
        self._sent_version = BY_ID_VERSION if self.asks_by_id else self._version
        request = self._settings.request(
            positions,
            version=self._sent_version,
            correlation_id=self._correlation_id,
            with_rack=with_rack,
        )
        self._send(request)
        self.in_flight = positions

    def receive(self, buffer: ReceiveBuffer) -> FetchResponse | None:
        """Receive available bytes; return the response once it is complete.

        Its records are in the buffer.

        :raises FrameTooLargeError: if the response is larger than requested.
        """
        frame = self._poll_frame(buffer.view)
        if frame is None:
            return None
        asked, self.in_flight = self.in_flight, None
        with reading(self.peer):
            response = FetchResponse.of(
                frame, self._sent_version, self._correlation_id, self._topics
            )
            if response.error is kafka_errors.NoError:
                require_all(response.partitions, asked or ())
        return response

    def _too_large(self, size: int) -> kafka_errors.KafkaError:
        return FrameTooLargeError(self.peer, size, self._max_frame_bytes)


@final
class ProduceConnection(BrokerConnection):
    """Sends produce requests to one broker, several before the first response."""

    def __init__(self, opened: Opened, settings: ProduceSettings, timeout_ms: int) -> None:
        """Take a connection that nothing else uses; a response may take ``timeout_ms``."""
        self._version: int = opened.versions.api_version(
            ProduceRequest, settings.min_version, MAX_PRODUCE_VERSION
        )
        self._settings = settings
        self._received = 0
        super().__init__(opened, timeout_ms)

    def send(
        self, batches: Mapping[TopicPartition, bytes | memoryview], transactional_id: str | None
    ) -> None:
        """Send one batch for each of some partitions."""
        self._correlation_id += 1
        request = self._settings.request(
            batches, transactional_id, version=self._version, correlation_id=self._correlation_id
        )
        self._send(request, is_answered=bool(self._settings.acks))

    def receive(self) -> Mapping[TopicPartition, Failure | None] | None:
        """Receive available bytes; return the failures of the oldest request, by partition.

        ``None`` until its response is complete.
        """
        frame = self._poll_frame(new_memory)
        if frame is None:
            return None
        # Brokers answer in the order of the requests, which are numbered from 1 on.
        self._received += 1
        with reading(self.peer):
            return responses_of(frame, self._version, self._received)


@final
class EncodedRequest:
    """One of kafka-python's requests, encoded once however often it is sent."""

    def __init__(self, request: Any) -> None:
        """Take the request."""
        self.request = request
        self._partitions = asked_partitions(request)
        self._encoded: dict[int, bytes] = {}
        self._response: Any = None

    def encode(self, version: int, correlation_id: int, client_id: str) -> bytes:
        """Return the bytes of the request, with their size before them."""
        encoded = self._encoded.get(version)
        if encoded is None:
            self.request.API_VERSION = version
            self.request.with_header(correlation_id=0, client_id=client_id)
            self._response = self.request.header.get_response_class()
            encoded = self.request.encode(version=version, framed=True, header=True)
            self._encoded[version] = encoded
        # The size, the type and the version come first.
        return encoded[:8] + correlation_id.to_bytes(4, "big") + encoded[12:]

    def decode(self, version: int, content: memoryview) -> Any:
        """Return the response that has a content.

        :raises KafkaProtocolError: if it leaves out a partition.
        :raises ValueError: or another error of ``INVALID`` if it cannot be read.
        """
        if len(content) > _MAX_KEPT_BYTES:
            decoded = _decode(self._response, version, content)
        else:
            decoded = _kept(self._response, version, bytes(content))
        if self._partitions:
            require_all(dict(answered_partitions(decoded)), self._partitions)
        return decoded


_MAX_KEPT_BYTES: Final = 500


def _decode(response: Any, version: int, content: bytes | memoryview) -> Any:
    return response.decode(bytes(4) + content, version=version, header=True)


@lru_cache(maxsize=64)
def _kept(response: Any, version: int, content: bytes) -> Any:
    """Return a response to a coordinator's request; nearly always it is the same as the last."""
    return _decode(response, version, content)


@final
class RequestConnection(BrokerConnection):
    """Sends requests of all kinds to a broker, several before the first response."""

    def __init__(
        self,
        opened: Opened,
        client_id: str,
        timeout_ms: int,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """Take a connection that nothing else uses; a response may take ``timeout_ms``."""
        self.opened = opened
        self._client_id = client_id
        self._in_flight: deque[tuple[int, EncodedRequest, int]] = deque()
        super().__init__(opened, timeout_ms, max_frame_bytes)

    @property
    def is_idle(self) -> bool:
        """Whether no response is waited for."""
        return not self._in_flight

    def send(self, request: EncodedRequest) -> None:
        """Send a request.

        :raises IncompatibleBrokerVersion: if the broker does not support it.
        """
        version = self.opened.versions.api_version(request.request)
        self._correlation_id += 1
        self._send(request.encode(version, self._correlation_id, self._client_id))
        self._in_flight.append((self._correlation_id, request, version))

    def receive(self) -> Any:
        """Receive available bytes; return the response to the oldest request once complete."""
        frame = self._poll_frame(new_memory)
        if frame is None:
            return None
        correlation_id, request, version = self._in_flight.popleft()
        with reading(self.peer):
            if frame[:4] != correlation_id.to_bytes(4, "big"):
                raise kafka_errors.CorrelationIdError("a response answers another request")
            return request.decode(version, frame[4:])


MAX_WAIT_S: Final = 1.0

Awaited: TypeAlias = tuple[BrokerConnection, Callable[[], bool]]
"""A connection with a request in flight, and the function that receives from it.

The function returns whether the next response is complete, or the connection is lost.
"""


def receive_ready(awaited: Sequence[Awaited], timeout_s: float) -> None:
    """Receive bytes until a response is complete, one is overdue, or the time is up.

    Returns after ``MAX_WAIT_S`` at the latest: the caller looks for overdue responses.
    """
    still_waiting()
    deadline = Deadline.after(
        min(timeout_s, MAX_WAIT_S, *(connection.seconds_left for connection, _ in awaited))
    )
    if not awaited:
        time.sleep(deadline.remaining)
        return
    while True:
        completed = [receive() for receive in _ready(awaited, deadline)]
        if any(completed) or deadline.has_passed:
            return


def _ready(awaited: Sequence[Awaited], deadline: Deadline) -> list[Callable[[], bool]]:
    """Wait, and return the receiving functions of the connections that are readable."""
    has_decrypted = any(connection.has_decrypted for connection, _ in awaited)
    numbers = [connection.fileno() for connection, _ in awaited]
    ready = ready_numbers(numbers, EVENT_READ, 0 if has_decrypted else deadline.remaining)
    return [
        receive
        for connection, receive in awaited
        if connection.fileno() in ready or connection.has_decrypted
    ]
