"""Requests to brokers over connections that stay open, and new connections for other uses."""

from __future__ import annotations

import random
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import errors as kafka_errors

from ...domain.cluster.backoff import Address, BackoffSettings, ReconnectBackoff
from ...domain.cluster.broker_choice import BrokerChoice
from ...domain.cluster.cluster_view import ClusterView
from ...domain.errors import MAX_NAMED, BrokerUnreachableError
from ...domain.options.option import server_list
from ...domain.options.servers import server_address
from ...domain.security.errors import TlsError, TlsFailure
from ...ports.clock import Deadline
from ..call_deadline import MIN_ATTEMPT_S
from ..name_resolution import canonical_servers
from .connecting import ConnectionSettings
from .connecting import connect as connect_to
from .connections import EncodedRequest, RequestConnection, UnansweredError, receive_ready
from .failures import RETRIABLE_ERRORS, RefusedError, is_hangup, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from .connections import Opened
    from .failures import ErrorMapper

T = TypeVar("T")

_PROBE_S: Final = 2.0
_CANONICAL: Final = "resolve_canonical_bootstrap_servers_only"


class BrokerRequests:
    """Sends requests in the thread that calls; connects at first use.

    Methods raise ``KafkaError`` if no response comes in time, or a broker is not known.
    """

    def __init__(self, config: Mapping[str, Any], errors: ErrorMapper) -> None:
        """Connect to nothing yet; ``config`` is complete."""
        self.view = ClusterView()
        """The cluster by the last metadata: see ``learn``."""

        self._errors = errors
        self._settings = ConnectionSettings(
            client_id=config["client_id"],
            socket_options=config["socket_options"],
            proxy=config["proxy_url"] or config["socks5_proxy"] or "",
            tls=config["ssl_context"],
            login=config["login"],
            kerberos_host=config["sasl_kerberos_domain_name"] or "",
            broker_version=config["api_version"] or (),
        )
        self._timeout_ms: int = min(config["request_timeout_ms"], errors.timeout_ms)
        self._max_frame_bytes: int = config["receive_message_max_bytes"]
        self._max_idle_s: float = config["connections_max_idle_ms"] / 1_000
        backoff = BackoffSettings(
            config["reconnect_backoff_ms"] / 1_000,
            config["reconnect_backoff_max_ms"] / 1_000,
            config["socket_connection_setup_timeout_ms"] / 1_000,
            config["socket_connection_setup_timeout_max_ms"] / 1_000,
        )
        self._backoff = ReconnectBackoff(backoff, random.random)
        found = map(server_address, server_list(errors.bootstrap_servers))
        self._servers = [each for each in found if each is not None]
        self._has_names = config["client_dns_lookup"] != _CANONICAL
        self._choice = BrokerChoice(self._servers, random.random)
        self._connections: dict[Address, RequestConnection] = {}
        self._used_at: dict[Address, float] = {}
        self._has_answered = False

    def learn(self, view: ClusterView) -> None:
        """Use the brokers of new metadata from now on."""
        self.view = view
        self._choice.learn((each.host, each.port) for each in view.brokers.values())
        for address in self._connections.keys() - {*self._choice.candidates}:
            self._drop(address)

    def ask_last(self, address: Address | None) -> None:
        """Ask a broker after all others from now on."""
        if address is not None:
            self._choice.ask_last(address)

    def ask_any(
        self, request: Any, check: Callable[[Any], object] = lambda _: None
    ) -> tuple[Address, Any]:
        """Return the response of any broker, and which one it was.

        Another broker is asked if ``check`` raises an error of ``RETRIABLE_ERRORS``.

        :raises KafkaProtocolError: if a broker's answer is not a response.
        :raises KafkaTimeoutError: if none answers in time, with the last reason of each.
        :raises RefusedError: if the login or TLS is refused, or something else listens there.
        """
        encoded, begun = EncodedRequest(request), time.monotonic()
        failures: dict[Address, Exception] = {}
        with self._errors.one_deadline() as deadline:
            if not self._has_names:
                names = canonical_servers(self._servers, deadline)
                self._choice, self._has_names = BrokerChoice(names, random.random), True
            while True:
                address = self._choice.next(self._connections, self._seconds_left)
                try:
                    asked = (address, self.view.node_at(address), encoded)
                    [answer] = self._exchange([asked], self._share(deadline))
                    check(answer)
                except RETRIABLE_ERRORS as error:
                    if not deadline.has_passed or address not in failures:
                        # The error of an attempt that is cut short explains less than the one
                        # before.
                        failures[address] = error
                    if address in self._connections:
                        # The broker has answered, and does not know enough yet.
                        self._drop(address)
                        self._backoff.failed(address, time.monotonic(), reason_of(error))
                    self._note_unanswered(address, error, begun)
                    self._choice.ask_last(address)
                    if deadline.has_passed:
                        raise _unanswered(failures.values()) from error
                else:
                    return address, answer

    def send(self, request: Any, node: int | None = None) -> Any:
        """Return the response of a broker, or of any."""
        return self.ask_any(request)[1] if node is None else self.send_all({node: request})[node]

    def send_all(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Return the responses of several brokers, which are asked at the same time."""
        with self._errors.one_deadline() as deadline:
            asked = [
                (self._address(node), node, EncodedRequest(request))
                for node, request in requests.items()
            ]
            with _lost_connections():
                return dict(zip(requests, self._exchange(asked, deadline), strict=True))

    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """Return the versions of requests that a connected broker supports.

        :raises LookupError: if none is connected.
        """
        connection = next(iter(self._connections.values()))
        found: Mapping[int, tuple[int, int]] = connection.opened.versions.api_versions
        return found

    def connect(self, node: int, make: Callable[[Opened], T], *, waits: bool = True) -> T:
        """Return the result of ``make`` for a new connection to a broker; the caller closes it.

        With ``waits``, it first waits if the last attempt has just failed.

        :raises NodeNotReadyError: if it does not wait, with the reason of the last failed attempt.
        """
        address = self._address(node)
        if not waits and self._seconds_left(address):
            raise kafka_errors.NodeNotReadyError(self._backoff.reason(address))
        with self._errors.one_deadline() as deadline, _lost_connections():
            try:
                opened = self._open(address, node, deadline)
                with ExitStack() as failing:
                    failing.callback(opened.socket.close)
                    made = make(opened)
                    failing.pop_all()
            except Exception as error:
                self._backoff.failed(address, time.monotonic(), reason_of(error))
                raise
        self._backoff.succeeded(address)
        return made

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._connections):
            self._drop(address)

    # One attempt

    def _exchange(
        self, asked: Collection[tuple[Address, int | None, EncodedRequest]], deadline: Deadline
    ) -> list[Any]:
        """Send one request to each of some brokers, and return the responses in this order."""
        # Brokers behind a proxy may have the same address.
        left: dict[Address, deque[int]] = {}
        answers: dict[int, Any] = {}
        try:
            for number, (address, node, request) in enumerate(asked):
                left.setdefault(address, deque()).append(number)
                self._connected(address, node, deadline).send(request)
            while left:
                self._receive(left, answers, deadline)
        except Exception as error:
            for address in left:
                self._backoff.failed(address, time.monotonic(), reason_of(error))
            raise
        finally:
            for address in left:
                self._drop(address)
        return [answers[number] for number in range(len(asked))]

    def _receive(
        self, left: dict[Address, deque[int]], answers: dict[int, Any], deadline: Deadline
    ) -> None:
        """Wait for responses until one is complete."""

        def receive(address: Address) -> bool:
            answer = self._connections[address].receive()
            if answer is None:
                return False
            answers[left[address].popleft()] = answer
            if not left[address]:
                del left[address]
                self._has_answered = True
                self._used_at[address] = time.monotonic()
                self._backoff.succeeded(address)
            return True

        awaited = [(self._connections[each], partial(receive, each)) for each in left]
        for connection, _ in awaited:
            if deadline.has_passed or connection.is_overdue:
                raise TimeoutError(f"{connection.peer} did not answer in time")
        receive_ready(awaited, deadline.remaining)

    def _connected(
        self, address: Address, node: int | None, deadline: Deadline
    ) -> RequestConnection:
        kept = self._connections.get(address)
        if kept is not None:
            idle_s = time.monotonic() - self._used_at[address]
            if kept.is_stale or idle_s > self._max_idle_s:
                self._drop(address)
        if address not in self._connections:
            opened = self._open(address, node, deadline)
            self._used_at[address] = time.monotonic()
            self._connections[address] = RequestConnection(
                opened, self._settings.client_id, self._timeout_ms, self._max_frame_bytes
            )
        return self._connections[address]

    def _drop(self, address: Address) -> None:
        kept = self._connections.pop(address, None)
        if kept is not None:
            kept.close()

    def _open(self, address: Address, node: int | None, deadline: Deadline) -> Opened:
        time.sleep(min(self._seconds_left(address), deadline.remaining))
        if deadline.has_passed:
            reason = self._backoff.reason(address) or f"{address[0]}:{address[1]} was not asked"
            raise kafka_errors.KafkaTimeoutError(reason)
        if refused := self._errors.refusals.at(time.monotonic()):
            raise RefusedError(refused)
        within = min(deadline, Deadline.after(self._backoff.setup_s(address)))
        try:
            return connect_to(*address, self._settings, within, node)
        except Exception as error:
            refused = self._errors.refused(error)
            if self._is_plain(address, error):
                reason = "the listener answers without TLS"
                refused = TlsError(self._errors.bootstrap_servers, TlsFailure.NOT_TLS, reason)
            if refused is None:
                raise
            self._errors.refusals.remember(refused, time.monotonic())
            raise RefusedError(refused) from error

    def _is_plain(self, address: Address, error: Exception) -> bool:
        """Return whether a listener hangs up on TLS, and answers without it."""
        if self._settings.tls is None or self._has_answered or not is_hangup(error):
            return False
        plain = replace(self._settings, tls=None, login=None)
        try:
            connect_to(*address, plain, Deadline.after(_PROBE_S)).socket.close()
        except (OSError, kafka_errors.KafkaError):
            return False
        return True

    # Which broker

    def _address(self, node: int) -> Address:
        address = self.view.address(node)
        if address is None:
            raise kafka_errors.UnknownBrokerIdError(node)
        return address

    def _seconds_left(self, address: Address) -> float:
        return self._backoff.seconds_left(address, time.monotonic())

    def _share(self, deadline: Deadline) -> Deadline:
        """Return the deadline of one attempt: there is time left for another broker."""
        if len(self._choice.candidates) == 1:
            return deadline
        return min(deadline, Deadline.after(max(deadline.remaining / 2, MIN_ATTEMPT_S)))

    def _note_unanswered(self, address: Address, error: Exception, begun: float) -> None:
        """Raise an error if no listener ever answers, and all close each connection at once."""
        if self._has_answered or not isinstance(error, UnansweredError):
            return
        if self._choice.closed_unanswered(address):
            cause = f"{error} before its first answer"
            seconds = round(time.monotonic() - begun, 1)
            servers = self._errors.bootstrap_servers
            hung_up = BrokerUnreachableError(servers, seconds, cause, is_hung_up=True)
            raise RefusedError(hung_up) from error


@contextmanager
def _lost_connections() -> Iterator[None]:
    """Raise the errors of connections as kafka-python's, which are mapped where they end a call."""
    try:
        yield
    except TimeoutError as error:
        raise kafka_errors.KafkaTimeoutError(str(error)) from error
    except OSError as error:
        raise kafka_errors.KafkaConnectionError(str(error)) from error


def _unanswered(failures: Iterable[Exception]) -> kafka_errors.KafkaError:
    """Return the error of a request that no broker has answered, by the last failure of each."""
    for failure in failures:
        if isinstance(failure, kafka_errors.KafkaProtocolError):
            return failure
    text = "; ".join([reason_of(failure) for failure in failures][-MAX_NAMED:])
    return kafka_errors.KafkaTimeoutError(text)
