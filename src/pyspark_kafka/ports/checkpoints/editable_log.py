"""A log of metadata whose entries can be changed."""

from __future__ import annotations

from abc import abstractmethod

from .metadata_log import MetadataLog


class EditableLog(MetadataLog):
    """A log whose entries can be changed: the offsets of a query that does not run.

    Nothing arbitrates between concurrent writers of a changed entry.
    """

    @abstractmethod
    def replace(self, batch_id: int, metadata: bytes) -> None:
        """Write the entry of a batch, in place of the one that is there.

        Atomic: readers get all of the old or the new entry, and so they do after a crash.
        """

    @abstractmethod
    def remove(self, batch_id: int) -> None:
        """Delete the entry of a batch. Idempotent."""
