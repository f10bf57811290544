"""A warning about logins that others on the network can read."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...domain.options.client_settings import JavaSettings
    from ...domain.values.registry import RegistrySettings


log = logging.getLogger("pyspark_kafka")

_SENT: Final = {"PLAIN": "the password", "OAUTHBEARER": "the token"}
"""The secret that these mechanisms send; the others only prove that they have it."""


def warn_about_clear_text(java: JavaSettings) -> None:
    """Warn, once a process, if a login sends a secret without TLS."""
    if java.login and java.protocol == "SASL_PLAINTEXT" and java.login.mechanism in _SENT:
        _warn_once(java.login.mechanism)


def warn_about_registry(settings: RegistrySettings) -> None:
    """Warn, once a process, if a login at a schema registry is sent without TLS."""
    plain = [server for server in settings.servers if server.url.startswith("http:")]
    if any(settings.token or server.login for server in plain):
        _warn_once_about_registry("the token" if settings.token else "the password")


@cache
def _warn_once_about_registry(secret: str) -> None:
    log.warning(
        "A login at a schema registry without TLS sends %s in clear text. Set "
        "'schema.registry.url' to a URL with https",
        secret,
    )


@cache
def _warn_once(mechanism: str) -> None:
    log.warning(
        "A login by %s without TLS sends %s in clear text. Set 'kafka.security.protocol' to "
        "SASL_SSL, or use SCRAM or Kerberos",
        mechanism,
        _SENT[mechanism],
    )
