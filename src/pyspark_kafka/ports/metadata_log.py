"""The need to remember, once and for all, what belongs to a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class MetadataLog(ABC):
    """An append-only log of bytes by batch id, as Spark's ``HDFSMetadataLog`` keeps one.

    Safe for concurrent writers: an id is written once, whole, or not at all. Its ``str`` says
    where it is, without credentials. Every call may raise:

    :raises MetadataLogError: if the storage fails or refuses.
    """

    @abstractmethod
    def add(self, batch_id: int, metadata: bytes) -> bool:
        """Write what belongs to a batch, unless that was done before.

        Of two concurrent writers one is told ``True``; ``False`` says that another was first,
        and that ``get`` answers with what the other wrote.
        """

    @abstractmethod
    def get(self, batch_id: int) -> bytes | None:
        """Give what was written for a batch, or ``None``."""

    @abstractmethod
    def latest(self) -> tuple[int, bytes] | None:
        """Give the highest batch id and what was written for it, or ``None`` if there is none."""

    @abstractmethod
    def batch_ids(self) -> Sequence[int]:
        """Give the batch ids that were written, from the lowest on."""

    @abstractmethod
    def purge(self, threshold: int) -> None:
        """Forget every batch below ``threshold``. Repeating it changes nothing."""
