"""The offsets at which a stream starts, stored for restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.checkpoints.initial_offset_log import (
    BATCH_ID,
    read_initial_offsets,
    write_initial_offsets,
)
from ...domain.errors import MetadataLogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints.metadata_log import MetadataLog
    from ...ports.reading.source_events import SourceEvents


@final
class InitialOffsets:
    """The offsets at which a stream starts: Spark's ``initialPartitionOffsets``.

    They are determined once, and stored in the log if there is one. An engine asks for them until
    its first batch is committed (Spark's ``MicroBatchExecution`` more than once), and again after a
    restart: a later answer would skip the records in between.
    """

    def __init__(self, log: MetadataLog | None, events: SourceEvents) -> None:
        self._log = log
        self._events = events
        self._offsets: PartitionOffsets | None = None
        self._found: PartitionOffsets | None = None

    @property
    def found(self) -> PartitionOffsets | None:
        """The offsets if this process has determined them, ``None`` if it has read them."""
        return self._found

    def get(self, find: Callable[[], PartitionOffsets]) -> PartitionOffsets:
        """Return the stored offsets, or else store and return what ``find`` returns.

        :raises MetadataLogError: if the log cannot be read or written.
        """
        if self._offsets is None:
            stored = self._read()
            self._offsets = self._store(find()) if stored is None else stored
        return self._offsets

    def _read(self) -> PartitionOffsets | None:
        content = self._log.get(BATCH_ID) if self._log is not None else None
        if content is None:
            return None
        try:
            return read_initial_offsets(content)
        except ValueError as error:
            raise MetadataLogError(str(self._log), str(error)) from error

    def _store(self, offsets: PartitionOffsets) -> PartitionOffsets:
        if self._log is not None and not self._log.add(BATCH_ID, write_initial_offsets(offsets)):
            # Another driver was first, and may have read records from its offsets already.
            stored = self._read()
            return offsets if stored is None else stored
        self._found = offsets
        self._events.initial_offsets(offsets)
        return offsets
