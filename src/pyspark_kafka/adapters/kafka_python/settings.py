"""Kafka's names of client settings, as kafka-python spells them."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaAdminClient, KafkaConsumer

from ...domain.errors import OptionsError
from ...domain.java_settings import JavaSettings, Login, not_known, read_java_settings, whole_number
from ...domain.kafka_settings import (
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    PREFIX,
    api_timeout_ms,
)
from ...domain.option_values import INT32_MAX, boolean
from .tls import PemFiles, ssl_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLIENT_NAME: Final = "kafka-python"

NUMBERS: Final[Mapping[str, tuple[str, int]]] = {
    "connections.max.idle.ms": ("connections_max_idle_ms", 1),
    "fetch.max.bytes": ("fetch_max_bytes", 0),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", 0),
    "fetch.min.bytes": ("fetch_min_bytes", 0),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", 0),
    "metadata.max.age.ms": ("metadata_max_age_ms", 1),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", 0),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", 0),
    "request.timeout.ms": ("request_timeout_ms", 1),
    "retry.backoff.ms": ("retry_backoff_ms", 0),
}
"""Java's settings that are numbers: kafka-python's name, and the least that does not spin."""

TEXTS: Final[Mapping[str, str]] = {
    "client.dns.lookup": "client_dns_lookup",
    "client.id": "client_id",
    "client.rack": "client_rack",
    "group.id": "group_id",
    "isolation.level": "isolation_level",
}
"""Java's settings that are texts, by kafka-python's name."""

BUFFERS: Final[Mapping[str, int]] = {
    "receive.buffer.bytes": socket.SO_RCVBUF,
    "send.buffer.bytes": socket.SO_SNDBUF,
}
"""Java's settings that are options of a socket: kafka-python ignores its own ones for them."""

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "enable.metrics.push": "kafka-python pushes no metrics to brokers",
    "metadata.recovery.rebootstrap.trigger.ms": "kafka-python goes back to the bootstrap servers "
    "by itself",
    "metadata.recovery.strategy": "kafka-python goes back to the bootstrap servers by itself",
    "retry.backoff.max.ms": "kafka-python's wait between attempts does not grow",
    "sasl.kerberos.kinit.cmd": "kafka-python uses the ticket cache as it is",
    "sasl.kerberos.min.time.before.relogin": "kafka-python uses the ticket cache as it is",
    "socket.connection.setup.timeout.max.ms": "kafka-python's consumer does not let it be set",
    "socket.connection.setup.timeout.ms": "kafka-python's consumer does not let it be set",
}
"""Settings of Java's clients that this one has no equivalent of, each with the reason."""

_SAME: Final[Mapping[str, str]] = {
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.ciphers": "ssl.cipher.suites",
    "ssl.crlfile": "ssl.crl.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
}
"""kafka-python's own names of what others name otherwise, with dots for underscores."""

_FILES: Final[Mapping[str, str]] = {
    "ssl.ca.location": "authorities",
    "ssl.certificate.location": "certificate",
    "ssl.crl.location": "revoked",
    "ssl.key.location": "key",
}

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM")

_OURS: Final = frozenset({BOOTSTRAP_SERVERS, API_TIMEOUT_MS})
_VERSION_REQUEST: Final = "api.version.request"
_VERSION_FALLBACK: Final = "broker.version.fallback"
_CHECK_HOSTNAME: Final = "ssl.check.hostname"
_HOSTNAME: Final = "ssl.endpoint.identification.algorithm"

_NOT_TEXT: Final = frozenset(
    {
        "api_version",
        "default_offset_commit_callback",
        "kafka_client",
        "sasl_kerberos_name",
        "sasl_oauth_token_provider",
        "selector",
        "socket_options",
        "ssl_context",
    }
)
"""What kafka-python takes as an object, which no option can hold."""


def client_config(settings: Mapping[str, str]) -> dict[str, Any]:
    """Translate ``kafka.*`` settings, without their prefix, and read the files they name.

    :raises OptionsError: naming every setting that kafka-python does not know or cannot read.
    :raises MissingDependencyError: if a store is PKCS12 and the extra ``tls`` is not installed.
    """
    settings, problems = _one_spelling(settings)
    java = read_java_settings(settings)
    problems += java.problems
    config: dict[str, Any] = {
        "bootstrap_servers": settings[BOOTSTRAP_SERVERS].split(","),
        "bootstrap_timeout_ms": api_timeout_ms(settings),
        "security_protocol": java.protocol,
    }
    for name in sorted(java.others.keys() - _OURS - _FILES.keys()):
        try:
            config |= _translate(name, java.others)
        except ValueError as error:
            problems.append(str(error))
    for security in (_sasl, _tls):
        try:
            config |= security(java)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise OptionsError(problems)
    return {**config, **_in_order(config), **_socket_options(java.others)}


def admin_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what ``KafkaAdminClient`` knows."""
    return {
        name: value for name, value in config.items() if name in KafkaAdminClient.DEFAULT_CONFIG
    }


def _one_spelling(settings: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Spell kafka-python's own names as Java and librdkafka do."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    spelled = {_SAME.get(name, name): value for name, value in dotted.items()}
    checked = spelled.pop(_CHECK_HOSTNAME, "true")
    try:
        if not boolean(checked):
            spelled[_HOSTNAME] = ""
    except ValueError:
        return spelled, [f"Option '{PREFIX}{_CHECK_HOSTNAME}' must be true or false"]
    return spelled, []


def _translate(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    text = settings[name]
    if name in WITHOUT_EFFECT or name in BUFFERS:
        return {}
    if name in NUMBERS:
        known, least = NUMBERS[name]
        if name == "connections.max.idle.ms" and int(text) < 0:
            return {known: INT32_MAX}
        return {known: whole_number(text, least, INT32_MAX)}
    if name in TEXTS:
        return {TEXTS[name]: text}
    known = name.replace(".", "_")
    try:
        if name in (_VERSION_REQUEST, _VERSION_FALLBACK):
            return _api_version(settings)
        if known in KafkaConsumer.DEFAULT_CONFIG and known not in _NOT_TEXT:
            return {known: _value(text, KafkaConsumer.DEFAULT_CONFIG[known])}
    except ValueError as error:
        raise ValueError(f"Option '{PREFIX}{name}': {error}") from error
    raise ValueError(not_known(name, CLIENT_NAME))


def _value(text: str, default: object) -> object:
    # kafka-python declares no types; its defaults have them.
    if isinstance(default, bool):
        return boolean(text)
    if isinstance(default, str):
        return text
    if isinstance(default, int) or text.isdecimal():
        return int(text)
    return text


def _api_version(settings: Mapping[str, str]) -> dict[str, Any]:
    """Read librdkafka's way to say which version a broker has that is not to be asked for it."""
    if boolean(settings.get(_VERSION_REQUEST, "true")):
        return {}
    parts: Iterable[str] = settings.get(_VERSION_FALLBACK, "0.10.0").split(".")
    return {"api_version": tuple(int(part) for part in parts)[:2]}


def _in_order(config: Mapping[str, Any]) -> dict[str, int]:
    """Keep kafka-python's order of times, which Java's client does not ask for."""
    wait, request, idle = (
        config.get(name, KafkaConsumer.DEFAULT_CONFIG[name])
        for name in ("fetch_max_wait_ms", "request_timeout_ms", "connections_max_idle_ms")
    )
    request = min(request, INT32_MAX - 1)
    return {
        "fetch_max_wait_ms": min(wait, request - 1),
        "request_timeout_ms": request,
        "connections_max_idle_ms": max(idle, request + 1),
    }


def _socket_options(settings: Mapping[str, str]) -> dict[str, Any]:
    sized = [
        (socket.SOL_SOCKET, option, int(settings[name]))
        for name, option in BUFFERS.items()
        # -1 is Java's way to leave it to the system.
        if int(settings.get(name, "-1")) > 0
    ]
    defaults: list[tuple[int, int, int]] = KafkaConsumer.DEFAULT_CONFIG["socket_options"]
    return {"socket_options": [*defaults, *sized]} if sized else {}


def _sasl(java: JavaSettings) -> dict[str, Any]:
    login = java.login
    if login is None:
        return {}
    if login.mechanism not in _MECHANISMS:
        known = ", ".join(_MECHANISMS)
        raise ValueError(
            f"Option 'kafka.sasl.mechanism': the client '{CLIENT_NAME}' has {known}, "
            f"and not {login.mechanism}; the client 'confluent' may have it"
        )
    if login.mechanism == "GSSAPI":
        return _kerberos(login)
    if login.mechanism == "AWS_MSK_IAM":
        return {"sasl_mechanism": login.mechanism}
    return {
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
    }


def _kerberos(login: Login) -> dict[str, Any]:
    if login.keytab:
        raise ValueError(
            f"Option 'kafka.sasl.jaas.config': the client '{CLIENT_NAME}' uses the ticket cache "
            "and reads no keytab; run kinit -k -t on every machine and set useTicketCache=true, "
            "or take the client 'confluent'"
        )
    if find_spec("gssapi") is None:
        raise ValueError(
            f"Option 'kafka.sasl.mechanism': the client '{CLIENT_NAME}' needs the package "
            "'gssapi' for Kerberos; install it with: pip install gssapi"
        )
    service = {"sasl_kerberos_service_name": login.service_name} if login.service_name else {}
    return {"sasl_mechanism": login.mechanism, **service}


def _tls(java: JavaSettings) -> dict[str, Any]:
    if java.tls is None:
        return {}
    files = {_FILES[name]: java.others[name] for name in _FILES.keys() & java.others.keys()}
    return {"ssl_context": ssl_context(java.tls, PemFiles(**files))}
