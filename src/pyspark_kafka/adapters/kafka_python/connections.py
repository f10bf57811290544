"""Connections that kafka-python opened, for requests of our own."""

from __future__ import annotations

import math
import selectors
import ssl
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest

from ...ports.clock import Deadline
from .responses import answered_partitions, asked_partitions, reading, require_all
from .transports import MAX_FRAME_BYTES
from .wire import (
    BY_ID_VERSION,
    DIVERGING_VERSION,
    MAX_FETCH_VERSION,
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

    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.batch import Failure

SESSION_PART: Final = 0.85
"""How much of an authenticated session is used, as by the Java client's
``SaslClientAuthenticator``: the broker closes the connection at its end (KIP-368)."""

_DEFAULT_FRAME_BYTES: Final = 4 * 1024 * 1024

_GRACE_PART: Final = 0.1
"""How much of a time-out there is at least to receive a response that has begun to come."""

# Makes no system call to register a socket. Windows has no poll(); select() elsewhere takes no
# sockets with numbers from 1,024 on.
Selector: Final[type[selectors.BaseSelector]] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)

_ACTIONS: Final = {EVENT_READ: "answer", EVENT_WRITE: "take a request"}


class FrameTooLargeError(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A broker announces a response that is larger than anything it was asked for.

    It is not retried: a record that is too large stays so.
    """

    def __init__(self, broker: str, size: int, max_size: int) -> None:
        super().__init__(
            f"{broker} announces a response of {size} bytes, more than the {max_size} that are "
            "accepted. If a record is that large, raise 'maxRecordBytes'; if not, something "
            "else answers in the broker's place"
        )


class RawConnection:
    """Uses the socket of a connection that kafka-python opened.

    kafka-python connects, authenticates and negotiates versions. ``recv_into`` then reads several
    times as fast as kafka-python's transport, which receives 4,096 bytes at a time, and requests
    are copied once.
    """

    def __init__(
        self, connected: Any, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        """Take a ``KafkaConnection`` that nothing else uses.

        A request may take ``timeout_ms`` to be sent, and its whole response as long to come.
        """
        self._socket, address = _taken_from(connected)
        self._peer = f"broker {connected.node_id} at {address}"
        # A time-out of the socket would count for each of its calls.
        self._socket.setblocking(False)
        session_ms: float = connected._reauth.session_lifetime_ms or math.inf  # noqa: SLF001
        self._expires = time.monotonic() + SESSION_PART * session_ms / 1_000
        self._correlation_id = 0
        self._timeout_s = timeout_ms / 1_000
        self._max_frame_bytes = max_frame_bytes
        self._sent: deque[float] = deque()

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask for authentication again."""
        return time.monotonic() > self._expires

    @property
    def is_stale(self) -> bool:
        """Whether another connection is needed: brokers close those that are idle for minutes."""
        if self.is_expired:
            return True
        if self._sent or isinstance(self._socket, ssl.SSLSocket):
            # TLS may receive messages of its own.
            return False
        return self._is_ready(EVENT_READ, 0)

    @property
    def is_overdue(self) -> bool:
        """Whether the response to the oldest request should have come, and nothing of it is there.

        The caller may have had other things to do meanwhile.
        """
        if not self._sent or time.monotonic() <= self._sent[0] + self._timeout_s:
            return False
        return not self.has_decrypted and not self._is_ready(EVENT_READ, 0)

    @property
    def has_decrypted(self) -> bool:
        """Whether bytes wait that TLS has decrypted, for which the socket is not readable."""
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
            self._sent.append(time.monotonic())

    def _receive_frame(
        self, allocate: Callable[[int], memoryview], deadline: Deadline
    ) -> memoryview:
        """Receive a frame without its length, in memory of the size that ``allocate`` is given.

        :raises OSError: if the connection is lost, or the frame is not complete in time.
        :raises KafkaProtocolError: if what comes is no frame.
        :raises FrameTooLargeError: if it would be too large; no memory is taken for it.
        """
        size = int.from_bytes(self._fill(memoryview(bytearray(4)), deadline), "big", signed=True)
        if size < 0:
            raise kafka_errors.InvalidReceiveError(f"{self._peer}: a frame of {size} bytes")
        if size > self._max_frame_bytes:
            raise FrameTooLargeError(self._peer, size, self._max_frame_bytes)
        frame = self._fill(allocate(size), deadline)
        if self._sent:
            self._sent.popleft()
        return frame

    @property
    def response_deadline(self) -> Deadline:
        """When the response to the oldest request must be complete.

        If the caller had other things to do, there is some time left to receive it.
        """
        grace_s = _GRACE_PART * self._timeout_s
        sent = self._sent[0] if self._sent else time.monotonic()
        return Deadline(max(sent + self._timeout_s, time.monotonic() + grace_s))

    def _fill(self, view: memoryview, deadline: Deadline) -> memoryview:
        filled = 0
        while filled < len(view):
            try:
                received = self._socket.recv_into(view[filled:])
            except (BlockingIOError, ssl.SSLWantReadError):
                self._wait(EVENT_READ, deadline)
                continue
            except ssl.SSLWantWriteError:
                self._wait(EVENT_WRITE, deadline)
                continue
            if not received:
                raise ConnectionResetError("the broker closed the connection")
            filled += received
        return view

    def _wait(self, events: int, deadline: Deadline) -> None:
        if deadline.has_passed or not self._is_ready(events, deadline.remaining):
            raise TimeoutError(f"{self._peer} did not {_ACTIONS[events]} in time")

    def _is_ready(self, events: int, timeout_s: float) -> bool:
        with Selector() as selector:
            selector.register(self, events)
            return bool(selector.select(timeout_s))


def _taken_from(connected: Any) -> tuple[socket.socket, str]:
    """Return the socket of kafka-python's transport, which no longer reads from it, and its peer.

    :raises KafkaConnectionError: if the broker has closed the connection as soon as it was made.
    """
    transport, network = connected.transport, connected.net
    if transport is None:
        raise kafka_errors.KafkaConnectionError("the broker closed the connection")
    address, _, _ = transport.host_port().partition("<-")
    transport.pause_reading()
    if transport._read_task is not None:  # noqa: SLF001  # left waiting by pause_reading
        network.cancel(transport._read_task)  # noqa: SLF001
    connected._reauth.cancel()  # noqa: SLF001  # it would write to the socket later
    return transport.take_socket(), address


def _new_memory(size: int) -> memoryview:
    """Return memory that the operating system provides as it is written: not before bytes come."""
    return np.empty(size, np.uint8).data


@final
class ReceiveBuffer:
    """Memory for one response; a larger one gets its own."""

    def __init__(self) -> None:
        self._memory = np.empty(_DEFAULT_FRAME_BYTES, np.uint8)

    def view(self, size: int) -> memoryview:
        """Return memory for a frame; what it held before is overwritten."""
        if size > len(self._memory):
            return _new_memory(size)
        return self._memory.data[:size]


@final
class FetchConnection(RawConnection):
    """Sends fetch requests to one broker, one at a time."""

    def __init__(self, connected: Any, settings: FetchSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nothing else uses; a response may take ``timeout_ms``."""
        self._version: int = connected.broker_version_data.api_version(
            FetchRequest, min_version=MIN_FETCH_VERSION, max_version=MAX_FETCH_VERSION
        )
        self._by_id_version = _by_id_version(connected.broker_version_data)
        self._settings = settings
        self._sent_version = self._version
        self._topics: Mapping[UUID, str] = NO_TOPICS
        self.in_flight: Mapping[TopicPartition, FetchPosition] | None = None
        """The positions of the request in flight."""

        super().__init__(connected, timeout_ms, settings.max_frame_bytes)

    @property
    def compares_epochs(self) -> bool:
        """Whether the broker compares the epoch of what was read with its log at each fetch."""
        return self._version >= DIVERGING_VERSION

    @property
    def takes_ids(self) -> bool:
        """Whether the broker takes topic ids for names: Kafka 3.1 or newer."""
        return self._by_id_version is not None

    @property
    def asks_by_id(self) -> bool:
        """Whether the last request had topic ids for names."""
        return bool(self._sent_version == BY_ID_VERSION)

    def send(
        self, positions: Mapping[TopicPartition, FetchPosition], *, with_rack: bool = True
    ) -> None:
        """Request the records of partitions, each from a position on.

        Topics are requested by id if all ids are known, and the broker takes ids.

        :raises OSError: if the connection is lost.
        """
        self._correlation_id += 1
        topics = {
            position.topic_id: partition.topic
            for partition, position in positions.items()
            if position.topic_id is not None
        }
        has_ids = all(position.topic_id is not None for position in positions.values())
        is_by_id = self.takes_ids and has_ids
        self._sent_version = BY_ID_VERSION if is_by_id else self._version
        self._topics = topics if is_by_id else NO_TOPICS
        request = self._settings.request(
            positions,
            version=self._sent_version,
            correlation_id=self._correlation_id,
            with_rack=with_rack,
        )
        self._send(request)
        self.in_flight = positions

    def receive(self, buffer: ReceiveBuffer, deadline: Deadline | None = None) -> FetchResponse:
        """Wait for the response to the request; its records are in the buffer.

        ``deadline`` may be earlier than the one of the response.

        :raises OSError: if the connection is lost, or the response is not complete in time.
        :raises KafkaProtocolError: if something else is received.
        :raises FrameTooLargeError: if the response is larger than what was asked for.
        """
        own = self.response_deadline
        frame = self._receive_frame(buffer.view, min(own, deadline or own))
        asked, self.in_flight = self.in_flight, None
        with reading(self._peer):
            response = FetchResponse.of(
                frame, self._sent_version, self._correlation_id, self._topics
            )
            if response.error is kafka_errors.NoError:
                require_all(response.partitions, asked or ())
        return response


def _by_id_version(broker: Any) -> int | None:
    try:
        version: int = broker.api_version(
            FetchRequest, min_version=BY_ID_VERSION, max_version=BY_ID_VERSION
        )
    except kafka_errors.IncompatibleBrokerVersion:
        return None
    return version


@final
class ProduceConnection(RawConnection):
    """Sends produce requests to one broker, several before the first response."""

    def __init__(self, connected: Any, settings: ProduceSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nothing else uses; a response may take ``timeout_ms``."""
        self._version = settings.version(connected.broker_version_data)
        self._settings = settings
        self._received = 0
        super().__init__(connected, timeout_ms)

    def send(
        self, batches: Mapping[TopicPartition, bytes | memoryview], transactional_id: str | None
    ) -> None:
        """Send one batch for each of some partitions.

        :raises OSError: if the connection is lost.
        """
        self._correlation_id += 1
        request = self._settings.request(
            batches, transactional_id, version=self._version, correlation_id=self._correlation_id
        )
        self._send(request, is_answered=bool(self._settings.acks))

    def receive(self) -> Mapping[TopicPartition, Failure | None]:
        """Wait for the response to the oldest request, and return what failed for each partition.

        :raises OSError: if the connection is lost, or the response is not complete in time.
        :raises KafkaProtocolError: if something else is received.
        :raises FrameTooLargeError: if the response is larger than any.
        """
        frame = self._receive_frame(_new_memory, self.response_deadline)
        # Brokers answer in the order of the requests, which are numbered from 1 on.
        self._received += 1
        with reading(self._peer):
            return responses_of(frame, self._version, self._received)


@final
class CoordinatorRequest:
    """One of kafka-python's requests, encoded once however often it is sent."""

    def __init__(self, request: Any, response: Any) -> None:
        """Take the request, and the class of its response."""
        self.request = request
        self.response = response
        self._partitions = asked_partitions(request)
        self._encoded: dict[int, bytes] = {}

    def encode(self, version: int, correlation_id: int, client_id: str) -> bytes:
        """Return the bytes of the request, with their size before them."""
        encoded = self._encoded.get(version)
        if encoded is None:
            self.request.API_VERSION = version
            self.request.with_header(correlation_id=0, client_id=client_id)
            encoded = self.request.encode(version=version, framed=True, header=True)
            self._encoded[version] = encoded
        # The size, the type and the version come first.
        return encoded[:8] + correlation_id.to_bytes(4, "big") + encoded[12:]

    def decode(self, version: int, content: bytes) -> Any:
        """Return the response that has a content.

        :raises KafkaProtocolError: if it leaves out a partition.
        :raises ValueError: or another error of ``INVALID`` if it cannot be read.
        """
        decoded = _decoded(self.response, version, content)
        require_all(answered_partitions(decoded), self._partitions)
        return decoded


@final
class CoordinatorConnection(RawConnection):
    """Sends requests to a coordinator, several before the first response."""

    def __init__(self, connected: Any, client_id: str, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nothing else uses; a response may take ``timeout_ms``."""
        self._broker = connected.broker_version_data
        self._client_id = client_id
        self._versions: dict[Any, int] = {}
        self._in_flight: deque[tuple[int, CoordinatorRequest, int]] = deque()
        super().__init__(connected, timeout_ms)

    @property
    def is_idle(self) -> bool:
        """Whether no response is waited for."""
        return not self._in_flight

    def send(self, request: CoordinatorRequest) -> None:
        """Send a request.

        :raises OSError: if the connection is lost.
        :raises IncompatibleBrokerVersion: if the broker does not support it.
        """
        version = self._versions.get(request.response)
        if version is None:
            version = self._versions[request.response] = self._broker.api_version(request.request)
        self._correlation_id += 1
        self._send(request.encode(version, self._correlation_id, self._client_id))
        self._in_flight.append((self._correlation_id, request, version))

    def receive(self) -> Any:
        """Wait for the response to the oldest request.

        :raises OSError: if the connection is lost, or the response is not complete in time.
        :raises KafkaProtocolError: if something else is received.
        :raises FrameTooLargeError: if the response is larger than any.
        """
        frame = bytes(self._receive_frame(_new_memory, self.response_deadline))
        correlation_id, request, version = self._in_flight.popleft()
        with reading(self._peer):
            if frame[:4] != correlation_id.to_bytes(4, "big"):
                raise kafka_errors.CorrelationIdError("a response answers another request")
            return request.decode(version, frame[4:])


@lru_cache(maxsize=64)
def _decoded(response: Any, version: int, content: bytes) -> Any:
    """Return a response; nearly always it has the same content as the last one."""
    return response.decode(bytes(4) + content, version=version, header=True)


MAX_WAIT_S: Final = 1.0

Awaited: TypeAlias = tuple[RawConnection, Callable[[], None]]
"""A connection with a request in flight, and what receives the next response."""


def receive_ready(awaited: Sequence[Awaited], timeout_s: float) -> None:
    """Wait until there are responses, or in time, and receive them.

    Returns after ``MAX_WAIT_S`` at the latest: the caller looks for overdue responses. The
    connections change often, so that they are registered each time: this is a list, and no system
    call.
    """
    timeout_s = min(timeout_s, MAX_WAIT_S)
    if not awaited:
        time.sleep(timeout_s)
        return
    with Selector() as selector:
        for connection, _ in awaited:
            selector.register(connection, EVENT_READ)
            if connection.has_decrypted:
                timeout_s = 0.0
        ready = {key.fd for key, _ in selector.select(timeout_s)}
    for connection, receive in awaited:
        if connection.fileno() in ready or connection.has_decrypted:
            receive()
