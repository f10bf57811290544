"""Making a connection to a broker: socket, TLS, versions and login, before one deadline."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from ...domain.security.secrets import HIDDEN
from ...version import __version__
from .connections import BrokerConnection, Opened, new_memory
from .responses import reading
from .sockets import encrypted, open_socket

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from ...domain.security.login import Login
    from ...ports.clock import Deadline
    from ..security.tls_context import CurrentContext
    from .sasl import Messages
    from .sockets import SocketOption

SESSION_PART: Final = 0.85
"""How much of an authenticated session is used, as by the Java client's
``SaslClientAuthenticator``: the broker closes the connection at its end (KIP-368)."""

_MAX_FRAME_BYTES: Final = 1_000_000
_SOFTWARE: Final = "pyspark-kafka"
_VERSIONS_VERSIONS: Final = (3, 0)
"""The first version with a client's name (KIP-511), and the version that every broker has."""

_FIRST_VERSIONS: Final = BrokerVersionData((0, 10, 0))
"""The versions to use until a broker names its own."""

_HANDSHAKE_VERSION: Final = 1
"""The first whose messages have headers: brokers then explain a refused login (KIP-152)."""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConnectionSettings:
    """The settings that are the same for all brokers of a cluster."""

    client_id: str = "pyspark-kafka"
    socket_options: Sequence[SocketOption] = ()
    proxy: str = field(default="", repr=False)
    """The proxy's URL, ``""`` without one."""

    tls: CurrentContext | None = None
    login: Login | None = None
    kerberos_host: str = ""
    """The host of the brokers' service principal, ``""`` for that of each broker."""

    broker_version: tuple[int, ...] = ()
    """The brokers' version if they must not be asked for it, such as ``(2, 1)``."""


def connect(
    host: str, port: int, settings: ConnectionSettings, deadline: Deadline, node: int | None = None
) -> Opened:
    """Return a connection that is ready for requests.

    :raises KafkaConnectionError: if the broker cannot be reached, or does not answer in time.
    :raises OSError: if it closes the connection.
    :raises KafkaError: if it refuses the login, or supports no version of a request.
    """
    peer = f"broker {node} at {host}:{port}" if node is not None else f"{host}:{port}"
    try:
        opened = open_socket(host, port, settings.socket_options, settings.proxy, deadline)
        if settings.tls is not None:
            opened = encrypted(opened, host, settings.tls, deadline)
    except kafka_errors.KafkaConnectionError as error:
        raise type(error)(f"{peer}: {error.args[0]}") from error.__cause__
    try:
        return _Setup(opened, peer, settings, deadline).ready(host)
    except BaseException:
        opened.close()
        raise


@final
class _Hidden(bytes):
    """A message of a login, whose ``repr`` hides it: variables of a traceback may be shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


@final
class _Setup(BrokerConnection):
    """Sends the first requests of a connection, one at a time."""

    def __init__(
        self, opened: socket, peer: str, settings: ConnectionSettings, deadline: Deadline
    ) -> None:
        self._settings = settings
        self._deadline = deadline
        self._opened = Opened(opened, peer, _FIRST_VERSIONS)
        timeout_ms = math.ceil(1_000 * deadline.remaining)
        super().__init__(self._opened, timeout_ms, _MAX_FRAME_BYTES)

    def ready(self, host: str) -> Opened:
        """Return the connection after the login, with the versions that the broker supports."""
        versions = self._versions()
        expires_at = math.inf
        if self._settings.login is not None:
            # The broker counts from its answer on, and the answer may come late.
            begun = time.monotonic()
            session_ms = self._log_in(self._settings.login, host, versions)
            if session_ms > 0:
                expires_at = begun + SESSION_PART * session_ms / 1_000
        return replace(self._opened, versions=versions, expires_at=expires_at)

    def _versions(self) -> BrokerVersionData:
        if self._settings.broker_version:
            return BrokerVersionData(self._settings.broker_version)
        for number in _VERSIONS_VERSIONS:
            request = ApiVersionsRequest(
                client_software_name=_SOFTWARE, client_software_version=__version__
            )
            answer = self._ask(request, ApiVersionsResponse, number)
            if answer.error_code != kafka_errors.UnsupportedVersionError.errno:
                break
        with reading(self.peer):
            if answer.error_code:
                raise ValueError(kafka_errors.for_code(answer.error_code).__name__)
            return BrokerVersionData(
                api_versions={
                    each.api_key: (each.min_version, each.max_version)
                    for each in answer.api_keys
                    if 0 <= each.min_version <= each.max_version
                }
            )

    def _log_in(self, login: Login, host: str, versions: BrokerVersionData) -> int:
        """Log in; return how long the session lasts, in ms, 0 without an end."""
        from .sasl import MECHANISMS

        handshake = SaslHandshakeRequest(mechanism=login.mechanism)
        answer = self._ask(handshake, SaslHandshakeResponse, _HANDSHAKE_VERSION)
        if answer.error_code == kafka_errors.UnsupportedSaslMechanismError.errno:
            offered = ", ".join(map(str, answer.mechanisms))
            raise kafka_errors.UnsupportedSaslMechanismError(
                f"{self.peer} supports {offered}, and not {login.mechanism}"
            )
        if answer.error_code:
            raise kafka_errors.for_code(answer.error_code)
        messages = MECHANISMS[login.mechanism](login, self._settings.kerberos_host or host)
        return self._authenticate(messages, versions.api_version(SaslAuthenticateRequest))

    def _authenticate(self, messages: Messages, version: int) -> int:
        session_ms = 0
        message = _Hidden(next(messages))
        while True:
            request = SaslAuthenticateRequest(auth_bytes=message)
            answer = self._ask(request, SaslAuthenticateResponse, version)
            if answer.error_code:
                # The mechanism raises the error: it forgets a refused token.
                messages.throw(kafka_errors.for_code(answer.error_code)(answer.error_message or ""))
            session_ms = answer.session_lifetime_ms or session_ms
            try:
                message = _Hidden(messages.send(answer.auth_bytes))
            except StopIteration:
                return session_ms

    def _ask(self, request: Any, response: Any, version: int) -> Any:
        self._correlation_id += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self._correlation_id, client_id=self._settings.client_id)
        self._send(_Hidden(request.encode(version=version, header=True, framed=True)))
        frame = self._receive_frame(new_memory, self._deadline)
        with reading(self.peer):
            if int.from_bytes(frame[:4], "big", signed=True) != self._correlation_id:
                raise kafka_errors.CorrelationIdError("a response answers another request")
            return response.decode(bytes(frame), version=version, header=True)
