"""The errors of a cluster's brokers, of logins and of TLS handshakes, as this library's."""

from __future__ import annotations

import math
import os
import re
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Final, final

from ...domain.cluster.refusal import Refusals
from ...domain.errors import (
    BrokerUnreachableError,
    InvalidResponseError,
    KafkaRequestError,
    LeaderUnavailableError,
    PysparkKafkaError,
    UnknownTopicError,
)
from ...domain.options.option import server_list
from ...domain.options.servers import server_address
from ...domain.reading.errors import CorruptBatchError
from ...domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
    tls_failure,
)
from ...domain.security.rights import Operation, ResourceType, topic_right
from ...ports.clock import Deadline
from .error_codes import (
    ALL_BROKERS_DOWN,
    BAD_COMPRESSION,
    CORRUPT_ERRORS,
    INVALID_RESPONSE_ERRORS,
    LEADER_ERRORS,
    LOGIN_ERRORS,
    REFUSED_RESOURCES,
    TLS_FAILED,
    UNREACHABLE_ERRORS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import KafkaError

    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from .cluster_settings import ClusterSettings

_BROKER: Final = re.compile(r"^\w+://(?P<host>\[[^]]+\]|[^/]+):(?P<port>\d+)/\w+: ")
"""librdkafka's name of a broker: ``sasl_ssl://host:port/bootstrap``, or with its id."""

_AROUND: Final = re.compile(
    r"^SASL authentication (?:error|failure): |^.*error:[0-9A-F]+:SSL routines::"
    r"|: broker certificate could not be verified, .*| \(after \d+ms in state .*\)$"
)
"""The text that librdkafka puts around the reason; its hints name librdkafka's settings."""

_LOST: Final = re.compile(r"\bLocal: |Disconnected|Failed to acquire")
"""A connection was lost during a login, or no token came: the next attempt may succeed."""

_VERIFY_FAILED: Final = "certificate verify failed"

_CLOSED: Final = "connecting to a PLAINTEXT broker listener?"
"""librdkafka's guess if a connection is closed during the handshake: a broker may be ending."""

_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""The request that every broker answers before a login, number 1, without a client's name."""

_METADATA: Final = struct.pack(">ihhihib", 15, 3, 4, 1, -1, 0, 0)
"""A request that no broker answers before a login, if the listener expects one: for no topic."""

_CONNECT_S: Final = 2.0
_HANG_UPS: Final = 3
_TLS_ALERT: Final = b"\x15\x03"
"""The answer of a listener with TLS to a request without TLS (RFC 8446, section 5.1)."""

_NOT_REACHED: Final = (OSError, OverflowError, ValueError)
"""The errors of Python's ``socket``, also for a port or a name that metadata must not contain."""


_TOO_SOON: Final = "Request not valid in current SASL state"
"""The answer of a listener without SASL to a login, and of a broker to a login that is renewed
within a second after the last one (``KafkaChannel.maybeBeginServerReauthentication``)."""


@final
class ClusterErrors:
    """Keeps the content of librdkafka's events, and makes the errors of requests."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self.is_checked = settings.is_plaintext
        """Whether a login has succeeded, or none is needed."""

        self._refusals = Refusals()
        self._tls_failure = ""
        self._failed_config: Mapping[str, str] | None = None
        self._hang_up: PysparkKafkaError | None = None
        self._is_new = Deadline.after(settings.timeout_s)
        self._last_error = ""
        self._down_since = math.inf

    @property
    def down_s(self) -> float:
        """How long no broker has been reachable; negative if one is."""
        return time.monotonic() - self._down_since

    @property
    def last_error(self) -> str:
        """The last reason why a connection failed; empty if none did."""
        return self._last_error

    def remember_error(self, error: KafkaError) -> None:
        """Keep the reason why a connection failed; the error that all failed explains nothing."""
        if error.code() != ALL_BROKERS_DOWN or not self._last_error:
            self._last_error = error.str()
        if error.code() == ALL_BROKERS_DOWN:
            self._down_since = min(self._down_since, time.monotonic())
            if not (self._settings.is_encrypted or self._is_new.has_passed):
                # librdkafka's events do not describe what the brokers did.
                request = _API_VERSIONS if self._settings.has_login else _METADATA
                self._hang_up = _hang_up(self._settings.bootstrap_servers, request)
        reason = login_refusal(error, is_known=self.is_checked)
        if reason is not None:
            known = self._settings
            refused = AuthenticationError(
                known.bootstrap_servers, known.mechanism, known.user, reason
            )
            self._refusals.remember(refused, time.monotonic())
            if known.tokens is not None:
                known.tokens.forget()
        elif is_tls_failure(error) or (not self.is_checked and is_plaintext(error)):
            self._tls_failure = error.str()
            self._failed_config = self._settings.used

    def remember_success(self) -> None:
        """Note that a broker was reached: librdkafka does not report that."""
        self._down_since = math.inf

    def raise_refusal(self) -> None:
        """Raise the error of a refused login or a failed TLS handshake, if an event reported one.

        Listeners that expect a login or TLS hang up on a client without it.

        :raises BrokerUnreachableError: if all listeners hang up, and none has answered before.

        :raises AuthenticationError: if a broker refused the login within the last five minutes.
        :raises TlsError: if a handshake failed since the last call.
        """
        refusal = self._refusal()
        if refusal is not None:
            raise refusal

    def error(self, request: str, error: KafkaError, *rights: Right) -> Exception:
        """Return this library's error for one of librdkafka's.

        ``rights`` are all that the request needs; an error names those on resources of the type
        that the broker refused.
        """
        refusal = self._refusal() or self.authorization_error(request, error.code(), rights)
        if refusal is not None:
            return refusal
        if error.code() in UNREACHABLE_ERRORS:
            return self.unreachable(error.str())
        if error.code() in INVALID_RESPONSE_ERRORS:
            return InvalidResponseError(request, error.str())
        if error.code() in LEADER_ERRORS:
            return LeaderUnavailableError(request, error.str())
        return KafkaRequestError(request, error.str())

    def unreachable(self, reason: str, timeout_s: float | None = None) -> BrokerUnreachableError:
        """Return the error of brokers that did not answer; ``reason`` if no connection failed."""
        known = self._settings
        waited_s = known.timeout_s if timeout_s is None else timeout_s
        return BrokerUnreachableError(known.bootstrap_servers, waited_s, self._last_error or reason)

    def unknown_topic(self, topic: str) -> UnknownTopicError:
        """Return the error of a topic to write to that does not exist."""
        return UnknownTopicError([topic], "topic", self._settings.bootstrap_servers)

    def authorization_error(
        self, request: str, code: int, rights: Iterable[Right]
    ) -> AuthorizationError | None:
        """Return the error of missing rights; ``None`` for the code of another error."""
        resource = REFUSED_RESOURCES.get(code)
        # Write on any topic replaces the right on the cluster.
        missing = [right for right in rights if resource in (right.resource, ResourceType.CLUSTER)]
        if not missing:
            return None
        known = self._settings
        return AuthorizationError(request, missing, known.bootstrap_servers, known.principal)

    def fetch_error(self, partition: TopicPartition, error: KafkaError, offset: int) -> Exception:
        """Return this library's error for a failed fetch, which failed at ``offset``."""
        if error.code() in CORRUPT_ERRORS:
            reason = error.str()
            if error.code() == BAD_COMPRESSION:
                # librdkafka reports the same where zstd exceeds receive.message.max.bytes.
                reason += " It may decompress to more bytes than 'maxRecordBytes' allows"
            return CorruptBatchError(partition, offset, reason)
        right = topic_right(Operation.READ, partition.topic)
        return self.error(f"a fetch from {partition}", error, right)

    def _refusal(self) -> PysparkKafkaError | None:
        refused = self._refusals.at(time.monotonic())
        if refused is not None:
            return refused
        hung_up, self._hang_up = self._hang_up, None
        if hung_up is not None:
            return hung_up
        failure, self._tls_failure = self._tls_failure, ""
        if not failure or self._failed_config is not self._settings.used:
            # No handshake failed, or one with certificates that were replaced since.
            return None
        return tls_error(self._settings.bootstrap_servers, failure, self._settings.current())


def login_refusal(error: KafkaError, *, is_known: bool = False) -> str | None:
    """Return why a broker refused a login; ``None`` if the event has another cause.

    ``is_known`` is whether another login has succeeded.
    """
    if error.code() not in LOGIN_ERRORS or _LOST.search(error.str()):
        return None
    if is_known and _TOO_SOON in error.str():
        return None
    return _reason(error.str())


def is_tls_failure(error: KafkaError) -> bool:
    """Return whether a TLS handshake failed, and not because the connection was lost."""
    # A broker's alert comes after the handshake of TLS 1.3, and is no error of TLS in librdkafka.
    found = tls_failure(error.str())
    return error.code() == TLS_FAILED or found not in (None, TlsFailure.HANDSHAKE_FAILED)


def tls_error(bootstrap_servers: str, event: str, config: Mapping[str, str]) -> TlsError:
    """Return the error of a failed handshake.

    librdkafka does not report why it does not trust a certificate: the handshake is repeated with
    Python's ``ssl``, which reports it. No login is sent.
    """
    reason = _reason(event)
    broker = _BROKER.match(event)
    if _VERIFY_FAILED in event and broker is not None:
        reason = _verify_message(*_address(broker), config) or reason
    failure = tls_failure(reason) or TlsFailure.HANDSHAKE_FAILED
    if _CLOSED in event:
        failure = TlsFailure.NOT_TLS
    return TlsError(bootstrap_servers, failure, reason)


def is_plaintext(error: KafkaError) -> bool:
    """Return whether a broker that closed the connection speaks Kafka's protocol without TLS."""
    broker = _BROKER.match(error.str())
    if _CLOSED not in error.str() or broker is None:
        return False
    return (_first_answer(_address(broker), _API_VERSIONS) or b"")[4:] == _API_VERSIONS[8:12]


def _hang_up(bootstrap_servers: str, request: bytes) -> PysparkKafkaError | None:
    """Return the error of listeners that all hang up on a request; ``None`` of others.

    A listener that is starting may hang up as well, but not again and again.
    """
    begun = time.monotonic()
    found = [server_address(each) for each in server_list(bootstrap_servers)]
    addresses = [each for each in found if each is not None] * _HANG_UPS
    for address in addresses:
        answer = _first_answer(address, request)
        if answer is not None and answer.startswith(_TLS_ALERT):
            reason = "the listener answers with an alert of TLS"
            return TlsError(bootstrap_servers, TlsFailure.TLS_EXPECTED, reason)
        if answer != b"":
            return None
    if not addresses:
        return None
    host, port = addresses[0]
    cause = f"{host}:{port} closed the connection before its first answer"
    seconds = round(time.monotonic() - begun, 1)
    return BrokerUnreachableError(bootstrap_servers, seconds, cause, is_hung_up=True)


def _first_answer(address: tuple[str, int], request: bytes) -> bytes | None:
    """Return how a broker's first answer begins, empty if it hangs up; ``None`` without one."""
    try:
        with socket.create_connection(address, _CONNECT_S) as connection:
            try:
                connection.sendall(request)
                return connection.recv(8)
            except ConnectionError:
                return b""
    except _NOT_REACHED:
        return None


def _address(broker: re.Match[str]) -> tuple[str, int]:
    return broker["host"].strip("[]"), int(broker["port"])


def _reason(event: str) -> str:
    return _AROUND.sub("", _BROKER.sub("", event))


def _verify_message(host: str, port: int, config: Mapping[str, str]) -> str:
    """Return why Python does not trust the certificate of a broker; empty if it does."""
    try:
        context = _context(config)
        with (
            socket.create_connection((host, port), _CONNECT_S) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return f"{_VERIFY_FAILED}: {error.verify_message}"
    except _NOT_REACHED:
        return ""


def _context(config: Mapping[str, str]) -> ssl.SSLContext:
    # librdkafka takes a file, a directory, or `probe` for where the system has certificates.
    place = config.get("ssl.ca.location")
    place = None if place == "probe" else place
    is_directory = place is not None and os.path.isdir(place)
    context = ssl.create_default_context(
        cafile=None if is_directory else place,
        capath=place if is_directory else None,
        cadata=config.get("ssl.ca.pem"),
    )
    # librdkafka verifies without it as well.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm") != "none"
    return context
