"""A log of metadata by batch id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class MetadataLog(ABC):
    """An append-only log of bytes by batch id, such as Spark's ``HDFSMetadataLog``.

    Safe for concurrent writers: an entry is written once, atomically. ``str`` returns its location
    without credentials. Every method may raise:

    :raises MetadataLogError: if the storage fails or refuses access.
    """

    @abstractmethod
    def add(self, batch_id: int, metadata: bytes) -> bool:
        """Write the entry of a batch and return ``True``, unless there is one already.

        Of two concurrent writers exactly one gets ``True``. After ``False``, ``get`` returns what
        the other one wrote.
        """

    @abstractmethod
    def get(self, batch_id: int) -> bytes | None:
        """Return the entry of a batch, or ``None``."""

    @abstractmethod
    def latest(self) -> tuple[int, bytes] | None:
        """Return the highest batch id and its entry, or ``None`` if the log is empty."""

    @abstractmethod
    def batch_ids(self) -> Sequence[int]:
        """Return the batch ids of all entries, in ascending order."""

    @abstractmethod
    def purge(self, threshold: int) -> None:
        """Delete the entries of all batches below ``threshold``. Idempotent."""
