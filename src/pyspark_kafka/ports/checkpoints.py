"""Logs of metadata by batch id."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class EditableLog(MetadataLog):
    """A log whose entries can be changed: the offsets of a query that does not run.

    Nothing arbitrates between concurrent writers of a changed entry.
    """

    @abstractmethod
    def replace(self, batch_id: int, metadata: bytes) -> None:
        """Write the entry of a batch, instead of the one that is there.

        Atomic: readers get all of the old or the new entry, and so they do after a crash.
        """

    @abstractmethod
    def remove(self, batch_id: int) -> None:
        """Delete the entry of a batch. Idempotent."""
