"""Kafka's names of client settings, as kafka-python spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaAdminClient, KafkaConsumer

from ...domain.errors import OptionsError
from ...domain.kafka_settings import (
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    PREFIX,
    api_timeout_ms,
)
from ...domain.option_values import boolean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLIENT_NAME: Final = "kafka-python"

_RENAMED: Final = {
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.mechanisms": "sasl_mechanism",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.cipher.suites": "ssl_ciphers",
}
"""Settings that librdkafka and Java name otherwise than by dots for underscores."""

_OURS: Final = frozenset({BOOTSTRAP_SERVERS, API_TIMEOUT_MS})
_VERSION_REQUEST: Final = "api.version.request"
_VERSION_FALLBACK: Final = "broker.version.fallback"

_NOT_TEXT: Final = frozenset({"ssl_context", "selector", "kafka_client", "socket_options"})
"""What kafka-python takes as an object, which no option can hold."""


def client_config(settings: Mapping[str, str]) -> dict[str, Any]:
    """Translate ``kafka.*`` settings, without their prefix.

    :raises OptionsError: naming every setting that kafka-python does not know or cannot read.
    """
    config: dict[str, Any] = {
        "bootstrap_servers": settings[BOOTSTRAP_SERVERS].split(","),
        "bootstrap_timeout_ms": api_timeout_ms(settings),
    }
    problems = []
    for name in sorted(settings.keys() - _OURS):
        try:
            config |= _translate(name, settings)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise OptionsError(problems)
    return config


def admin_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what ``KafkaAdminClient`` knows."""
    return {
        name: value for name, value in config.items() if name in KafkaAdminClient.DEFAULT_CONFIG
    }


def _translate(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    if name in (_VERSION_REQUEST, _VERSION_FALLBACK):
        return _api_version(settings)
    known = _RENAMED.get(name, name.replace(".", "_"))
    if known not in KafkaConsumer.DEFAULT_CONFIG or known in _NOT_TEXT:
        raise ValueError(f"Option '{PREFIX}{name}' is not known to the client '{CLIENT_NAME}'")
    try:
        return {known: _value(settings[name], KafkaConsumer.DEFAULT_CONFIG[known])}
    except ValueError as error:
        raise ValueError(f"Option '{PREFIX}{name}': {error}") from error


def _value(text: str, default: object) -> object:
    # kafka-python declares no types; its defaults have them.
    if isinstance(default, bool):
        return boolean(text)
    if isinstance(default, int) or text.isdecimal():
        return int(text)
    return text


def _api_version(settings: Mapping[str, str]) -> dict[str, Any]:
    """Read librdkafka's way to say which version a broker has that is not to be asked for it."""
    if boolean(settings.get(_VERSION_REQUEST, "true")):
        return {}
    parts: Iterable[str] = settings.get(_VERSION_FALLBACK, "0.10.0").split(".")
    return {"api_version": tuple(int(part) for part in parts)[:2]}
