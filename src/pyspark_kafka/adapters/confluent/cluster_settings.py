"""The settings of the clients of a cluster, as librdkafka takes them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import KafkaException

from ...domain.errors import OptionsError
from ...domain.options.option import PREFIX
from ..call_deadline import within
from ..security.providers import token_provider
from ..security.tls_context import Rotating
from .settings import client_config, pem_options, require_loadable, tls_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from ...domain.options.client_settings import ClientOptions, JavaSettings
    from ...ports.clock import Deadline

LOG_INFO: Final = 6
LOG_DEBUG: Final = 7
"""Levels of syslog."""

_FETCH_MAX_BYTES: Final = 50 * 1024 * 1024
"""librdkafka's default of ``fetch.max.bytes``."""


@final
class ClusterSettings:
    """The translated settings, and the facts that errors name."""

    def __init__(
        self,
        options: ClientOptions,
        translate: Callable[[JavaSettings], dict[str, str]] = client_config,
    ) -> None:
        """Translate the settings to librdkafka's.

        :raises OptionsError: naming every setting that librdkafka does not know or accept.
        """
        java = options.java
        self.bootstrap_servers = java.bootstrap_servers
        self.timeout_s = java.timeout_ms / 1_000
        self._files = tls_files(java)
        self._pem_options = pem_options(java)
        self._current = Rotating(self._files, partial(self._translated, translate, java))
        self.used: Mapping[str, str] | None = None
        """The settings that ``config`` returned last; others once certificates were replaced."""

        config = self.current()
        source = java.login.tokens if java.login else None
        self.tokens = None if source is None else token_provider(source)
        self.mechanism = config.get("sasl.mechanisms", "") or config.get("sasl.mechanism", "")
        self.user = config.get("sasl.username", "")
        self.principal = f"User:{self.user}" if self.user else java.principal
        self.fetch_max_bytes = _fetch_max_bytes(config)
        self.max_log_level = _max_log_level(config)
        protocol = config["security.protocol"].upper()
        self.has_login = protocol.startswith("SASL")
        self.is_plaintext = protocol == "PLAINTEXT"
        self.is_encrypted = protocol.endswith("SSL")

    def one_deadline(self) -> AbstractContextManager[Deadline]:
        """Limit all waits of a block together to ``timeout_s``; blocks may be nested."""
        return within(self.timeout_s)

    def current(self) -> Mapping[str, str]:
        """Return the user's settings, with the certificates and keys that the files now hold."""
        return self._current.current()

    def config(self, forced: Mapping[str, str], tuned: Mapping[str, str]) -> dict[str, str]:
        """Return a client's settings: forced ones override the user's, and these the tuned ones."""
        self.used = self.current()
        return {**tuned, **self.used, **forced}

    @property
    def is_outdated(self) -> bool:
        """Whether certificates or keys were replaced since the settings were last returned.

        librdkafka loads them when a client is created: it needs a new one.
        """
        return self.used is not None and self.current() is not self.used

    def options_error(self, reason: str) -> OptionsError:
        """Return the error for a setting that librdkafka does not know or accept."""
        # 'No such configuration property: "foo"' names the setting without the option's prefix.
        reason = reason.replace('property: "', f'property: "{PREFIX}')
        for name, option in self._pem_options.items():
            reason = reason.replace(name, option)
        return OptionsError([f"The client 'confluent': {reason.rstrip()}"])

    def _translated(
        self, translate: Callable[[JavaSettings], dict[str, str]], java: JavaSettings
    ) -> dict[str, str]:
        config = translate(java)
        if self._files:
            try:
                require_loadable(config)
            except KafkaException as error:
                raise self.options_error(error.args[0].str()) from None
        return config


def number_of(config: Mapping[str, str], name: str, default: int) -> int:
    """Return a setting's number; the default without one.

    Any other text has the default, too: librdkafka refuses it, and names the setting.
    """
    text = config.get(name, "")
    return int(text) if text.isdecimal() else default


def _fetch_max_bytes(config: Mapping[str, str]) -> int:
    """Return the largest fetch; librdkafka raises ``fetch.max.bytes`` to the largest message."""
    fetch = number_of(config, "fetch.max.bytes", _FETCH_MAX_BYTES)
    return max(fetch, number_of(config, "message.max.bytes", fetch))


def _max_log_level(config: Mapping[str, str]) -> int:
    """Return the highest of syslog's levels that the user wants; ``debug`` means all of them."""
    return LOG_DEBUG if config.get("debug") else number_of(config, "log_level", LOG_INFO)
