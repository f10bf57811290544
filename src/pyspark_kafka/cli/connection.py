"""The cluster that a command connects to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..domain.options.source_table import CLIENT
from .argument_values import connection_options

if TYPE_CHECKING:
    import argparse

    from ..domain.options.source import SourceOptions

DEFAULTS: Final = {
    # How long a person waits for an answer; the query's own timeouts may be much longer.
    "kafka.default.api.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "5000",
}


@final
@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster and the client to use; ``options`` may contain secrets."""

    bootstrap_servers: str
    client: str = CLIENT.default
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def given(cls, given: argparse.Namespace) -> Connection:
        """Return what ``add_connection`` and ``add_client`` have parsed."""
        return cls(given.bootstrap_servers, given.client, connection_options(given))

    def source_options(self, **query: str) -> SourceOptions:
        """Return the options of a stream; ``query`` takes precedence over those given.

        :raises OptionsError: if one is not valid.
        :raises DisallowedOptionError: if the operator forbids one.
        """
        return self._parsed({**self._given(), **query})

    def lag_options(self) -> SourceOptions:
        """Return the options of a stream whose topics a checkpoint has; raise as the others."""
        from ..domain.options.source import with_any_topic

        return self._parsed(with_any_topic(self._given()))

    def _given(self) -> dict[str, str]:
        return {
            **DEFAULTS,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "client": self.client,
            **dict(self.options),
        }

    @staticmethod
    def _parsed(raw: dict[str, str]) -> SourceOptions:
        from ..bootstrap.option_policy import operator_policy
        from ..domain.options.option import QueryKind
        from ..domain.options.source import parse_source_options

        return parse_source_options(raw, QueryKind.STREAM, operator_policy())
