"""Kafka's names of client settings, as librdkafka spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...domain.kafka_settings import API_TIMEOUT_MS, GROUP_ID, ISOLATION_LEVEL, READ_UNCOMMITTED

if TYPE_CHECKING:
    from collections.abc import Mapping

_RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
"""Settings that Java's client names otherwise."""

_OURS: Final = frozenset({API_TIMEOUT_MS, GROUP_ID})


def client_config(settings: Mapping[str, str]) -> dict[str, str]:
    """Translate ``kafka.*`` settings, without their prefix; librdkafka itself checks them."""
    translated = {
        _RENAMED.get(name, name): value for name, value in settings.items() if name not in _OURS
    }
    # librdkafka reads committed records only unless told otherwise; Kafka's own client, and so
    # the JVM connector, reads all.
    return {ISOLATION_LEVEL: READ_UNCOMMITTED, **translated}
