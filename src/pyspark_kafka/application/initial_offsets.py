"""The offsets at which a stream begins, kept where a restart finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain.errors import MetadataLogError
from ..domain.initial_offset_log import BATCH_ID, read_initial_offsets, write_initial_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.partition_offsets import PartitionOffsets
    from ..ports.metadata_log import MetadataLog
    from ..ports.source_events import SourceEvents


@final
class InitialOffsets:
    """Says once where a stream begins, and the same ever after (``initialPartitionOffsets``).

    Without a log it says the same for as long as it lives. An engine asks until its first batch is
    committed (Spark's ``MicroBatchExecution`` more than once), and asks again after a restart: a
    later answer would leave out the records between the two.
    """

    def __init__(self, log: MetadataLog | None, events: SourceEvents) -> None:
        self._log = log
        self._events = events
        self._offsets: PartitionOffsets | None = None

    def get(self, find: Callable[[], PartitionOffsets]) -> PartitionOffsets:
        """Give the offsets that were kept, or else keep those that ``find`` gives.

        :raises MetadataLogError: if the log cannot be used.
        """
        if self._offsets is None:
            self._offsets = self._kept() or self._keep(find())
        return self._offsets

    def _kept(self) -> PartitionOffsets | None:
        content = self._log.get(BATCH_ID) if self._log is not None else None
        if content is None:
            return None
        try:
            return read_initial_offsets(content)
        except ValueError as error:
            raise MetadataLogError(str(self._log), str(error)) from error

    def _keep(self, offsets: PartitionOffsets) -> PartitionOffsets:
        if self._log is not None and not self._log.add(BATCH_ID, write_initial_offsets(offsets)):
            # Another driver was first, and may have read by its offsets already.
            return self._kept() or offsets
        self._events.initial_offsets(offsets)
        return offsets
