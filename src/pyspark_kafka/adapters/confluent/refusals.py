"""What librdkafka's error events say of logins and of TLS handshakes."""

from __future__ import annotations

import os
import re
import socket
import ssl
import struct
from typing import TYPE_CHECKING, Final

from ...domain.security.errors import TlsError, TlsFailure, tls_failure
from .error_codes import LOGIN_ERRORS, TLS_FAILED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError

_BROKER: Final = re.compile(r"^\w+://(?P<host>\[[^]]+\]|[^/]+):(?P<port>\d+)/\w+: ")
"""What librdkafka calls a broker: ``sasl_ssl://host:port/bootstrap``, or with its id."""

_AROUND: Final = re.compile(
    r"^SASL authentication (?:error|failure): |^.*error:[0-9A-F]+:SSL routines::"
    r"|: broker certificate could not be verified, .*| \(after \d+ms in state .*\)$"
)
"""What librdkafka puts around the reason; its hints name settings of its own."""

_LOST: Final = re.compile(r"\bLocal: |Disconnected|Failed to acquire")
"""A connection was lost during a login, or no token came: the next attempt may succeed."""

_VERIFY_FAILED: Final = "certificate verify failed"

_CLOSED: Final = "connecting to a PLAINTEXT broker listener?"
"""librdkafka's guess if a connection is closed during the handshake: a broker may be ending."""

_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""The request that every broker answers before a login, number 1, without a client's name."""

_CONNECT_S: Final = 2.0

_NOT_REACHED: Final = (OSError, OverflowError, ValueError)
"""What Python's ``socket`` raises, also for a port or a name that metadata must not contain."""


_TOO_SOON: Final = "Request not valid in current SASL state"
"""What a broker answers to a login by a listener without SASL, and to one that is renewed within a
second after the last one (``KafkaChannel.maybeBeginServerReauthentication``)."""


def login_refusal(error: KafkaError, *, is_known: bool = False) -> str | None:
    """Return why a broker refused a login; ``None`` if the event says something else.

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

    librdkafka does not say why it does not trust a certificate: the handshake is repeated with
    Python's ``ssl``, which does. No login is sent.
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
    try:
        with socket.create_connection(_address(broker), _CONNECT_S) as connection:
            connection.sendall(_API_VERSIONS)
            return connection.recv(8)[4:] == _API_VERSIONS[8:12]
    except _NOT_REACHED:
        return False


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
