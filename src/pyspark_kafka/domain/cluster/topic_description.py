"""What brokers say about themselves and about topics, besides offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..security.rights import Operation

_RETENTION_MS: Final = "retention.ms"
_RETENTION_BYTES: Final = "retention.bytes"
_CLEANUP_POLICY: Final = "cleanup.policy"

DESCRIBED_SETTINGS: Final = (_CLEANUP_POLICY, _RETENTION_BYTES, _RETENTION_MS)
"""The settings of a topic that a description has."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker and the address that it advertises."""

    broker_id: int
    host: str
    port: int


@final
@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """The brokers of a partition, by their ids, and the size of the leader's log in bytes.

    ``leader`` is ``None`` while there is none. ``size`` is ``None`` if it is not known.
    """

    leader: int | None
    replicas: frozenset[int]
    in_sync: frozenset[int]
    size: int | None = None


@final
@dataclass(frozen=True, slots=True)
class TopicDescription:
    """The partitions of a topic by their numbers, its configuration, and the user's rights.

    ``config`` and ``operations`` are ``None`` if they are not known.
    """

    partitions: Mapping[int, PartitionDescription]
    config: Mapping[str, str] | None = None
    operations: frozenset[Operation] | None = None

    @property
    def retention_ms(self) -> int | None:
        """How long records are kept; -1 without a limit, ``None`` if it is not known."""
        return self._number(_RETENTION_MS)

    @property
    def retention_bytes(self) -> int | None:
        """How many bytes of a partition are kept; -1 without a limit, ``None`` if not known."""
        return self._number(_RETENTION_BYTES)

    @property
    def cleanup_policy(self) -> str | None:
        """``delete``, ``compact`` or both; ``None`` if it is not known."""
        return None if self.config is None else self.config.get(_CLEANUP_POLICY)

    def _number(self, name: str) -> int | None:
        text = "" if self.config is None else self.config.get(name, "")
        return int(text) if text.removeprefix("-").isdecimal() else None
