"""Settings of this client: Java's, with underscores for dots, and kafka-python's own.

kafka-python is imported where it is used: it takes longer to import than most settings to check.
"""

from __future__ import annotations

import socket
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ...domain.errors import OptionsError
from ...domain.options.client_settings import not_known
from ...domain.options.option import PREFIX, boolean
from ...domain.options.settings_table import (
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    GROUP_ID,
    ISOLATION_LEVEL,
    KAFKA_PYTHON,
    KAFKA_PYTHON_IGNORED,
    SETTINGS,
    Ignored,
    Number,
    Text,
)
from ...domain.security.oauth import AWS_MSK_IAM
from ..security.clear_text import warn_about_clear_text
from ..security.tls_context import PEM_SETTINGS, CurrentContext, pem_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...domain.options.client_settings import JavaSettings
    from .failures import ErrorMapper

BUFFERS: Final[Mapping[str, int]] = {
    "receive.buffer.bytes": socket.SO_RCVBUF,
    "send.buffer.bytes": socket.SO_SNDBUF,
}
"""Settings that are options of sockets."""

TRANSLATIONS: Final[Mapping[str, Number | Text | Ignored]] = {
    setting.name: setting.kafka_python for setting in SETTINGS if setting.kafka_python
}

_VERSION_REQUEST: Final = "api.version.request"
_VERSION_FALLBACK: Final = "broker.version.fallback"
_PROXY_SCHEMES: Final = ("http", "socks5", "socks5h")

DEFAULTS: Final[Mapping[str, Any]] = {
    "api_version": None,
    "check_crcs": True,
    "client_dns_lookup": "use_all_dns_ips",
    "client_id": "pyspark-kafka",
    "client_rack": "",
    "connections_max_idle_ms": 540_000,
    "fetch_max_bytes": 50 * 1024 * 1024,
    "fetch_max_wait_ms": 500,
    "fetch_min_bytes": 1,
    "login": None,
    "max_partition_fetch_bytes": 1024 * 1024,
    "metadata_max_age_ms": 300_000,
    "proxy_url": None,
    "receive_message_max_bytes": 100_000_000,
    "reconnect_backoff_max_ms": 1_000,
    "reconnect_backoff_ms": 50,
    "request_timeout_ms": 30_000,
    "retry_backoff_ms": 100,
    "sasl_kerberos_domain_name": None,
    "socket_connection_setup_timeout_max_ms": 30_000,
    "socket_connection_setup_timeout_ms": 10_000,
    "socket_options": (
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ),
    "socks5_proxy": None,
    "ssl_context": None,
}
"""Java's names, with underscores, and defaults; and those of kafka-python's own settings."""

_APPLIED: Final = frozenset(
    {BOOTSTRAP_SERVERS, API_TIMEOUT_MS, GROUP_ID, ISOLATION_LEVEL, *BUFFERS, *PEM_SETTINGS}
)
"""Settings that this library applies itself."""


def client_settings(
    java: JavaSettings, defaults: Mapping[str, Any] = MappingProxyType({})
) -> tuple[dict[str, Any], ErrorMapper]:
    """Translate settings completely; return the client's error mapper, too, with the user.

    ``defaults`` hold before those of ``DEFAULTS``. Raises as ``check_settings``.
    """
    from .failures import ErrorMapper

    config = check_settings(java)
    complete = {**DEFAULTS, **defaults, **config, **_socket_options(java.others)}
    wait, request = complete["fetch_max_wait_ms"], complete["request_timeout_ms"]
    # If a broker waited longer for records, it would seem not to answer.
    complete["fetch_max_wait_ms"] = min(wait, request - 1)
    login = java.login
    user = (login.username or login.principal) if login else ""
    mechanism = login.mechanism if login else ""
    return complete, ErrorMapper(
        java.bootstrap_servers, java.timeout_ms, mechanism, user, java.principal
    )


def check_settings(java: JavaSettings) -> dict[str, Any]:
    """Translate settings one by one, and read the files they name.

    :raises OptionsError: naming every setting that kafka-python does not know or support.
    :raises MissingDependencyError: if a store is PKCS12 and the extra ``tls`` is not installed.
    """
    problems = list(java.problems)
    config: dict[str, Any] = {}
    for name in sorted(java.others.keys() - _APPLIED - KAFKA_PYTHON_IGNORED):
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
    warn_about_clear_text(java)
    return config


def _translate(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    text = settings[name]
    known = name.replace(".", "_")
    match TRANSLATIONS.get(name):
        case Ignored():
            return {}
        case Number() as number:
            return {known: number.nearest(int(text))}
        case Text():
            return {known: text}
    try:
        if name in (_VERSION_REQUEST, _VERSION_FALLBACK):
            return _api_version(settings)
        if name in OWN_SETTINGS:
            return {known: OWN_SETTINGS[name](text)}
    except ValueError as error:
        raise ValueError(f"Option '{PREFIX}{name}': {error}") from error
    raise ValueError(not_known(name, KAFKA_PYTHON))


def _proxy(url: str) -> str:
    """Return the URL of a proxy that kafka-python can use; no message repeats it."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname and parts.port)
    except ValueError:
        is_usable = False
    if not is_usable or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            f"a proxy must be a URL with host and port, and one of {', '.join(_PROXY_SCHEMES)}; "
            "in a password, write other signs than letters and digits as in '%23' for '#'"
        )
    return url


OWN_SETTINGS: Final[Mapping[str, Callable[[str], object]]] = {
    "check.crcs": boolean,
    "proxy.url": _proxy,
    "receive.message.max.bytes": int,
    "sasl.kerberos.domain.name": str,
    "socks5.proxy": _proxy,
}
"""kafka-python's own settings that a query may set, with dots for underscores."""


def _api_version(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the broker's version if librdkafka's settings disable requesting it."""
    if boolean(settings.get(_VERSION_REQUEST, "true")):
        return {}
    parts: Iterable[str] = settings.get(_VERSION_FALLBACK, "0.10.0").split(".")
    return {"api_version": tuple(int(part) for part in parts)[:2]}


def _socket_options(settings: Mapping[str, str]) -> dict[str, Any]:
    sized = [
        (socket.SOL_SOCKET, option, int(settings[name]))
        for name, option in BUFFERS.items()
        # In Java -1 means the operating system's default.
        if int(settings.get(name, "-1")) > 0
    ]
    return {"socket_options": (*DEFAULTS["socket_options"], *sized)} if sized else {}


def _sasl(java: JavaSettings) -> dict[str, Any]:
    login = java.login
    if login is None:
        return {}
    from .sasl import MECHANISMS, checked_login

    known_mechanisms = (*MECHANISMS, AWS_MSK_IAM)
    if login.mechanism not in known_mechanisms:
        known = ", ".join(known_mechanisms)
        raise ValueError(
            f"Option 'kafka.sasl.mechanism': the client '{KAFKA_PYTHON}' supports {known}, "
            f"not {login.mechanism}; the client 'confluent' may support it"
        )
    return {"login": checked_login(login)}


def _tls(java: JavaSettings) -> dict[str, Any]:
    if java.tls is None:
        return {}
    return {"ssl_context": CurrentContext(java.tls, pem_files(java.others))}
