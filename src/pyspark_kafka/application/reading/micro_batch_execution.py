"""Running the batches of a source, each with the same offsets whenever it is retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ...domain.checkpoints.checkpoint_log import COMMITTED, write_batch_end
from ...ports.clock import epoch_ms
from ..checkpoints.logs import ConcurrentUpdateError, end_of_batch, unrelated_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints import MetadataLog
    from .kafka_source import KafkaSource

T = TypeVar("T")

BATCHES_TO_RETAIN: Final = 100
"""The default of ``spark.sql.streaming.minBatchesToRetain``."""


@final
@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch id with start and end; the first batch has no start."""

    number: int
    start: PartitionOffsets | None
    end: PartitionOffsets


@final
class MicroBatchExecution(Generic[T]):
    """A driver of a ``KafkaSource``, as Spark's ``MicroBatchExecution``.

    It writes a batch's end to the offset log before the batch runs, and its id to the commit log
    afterwards. After a restart with both logs, a batch that was planned and not committed runs
    again with the same offsets: no record is skipped, and a ``process`` that is idempotent by batch
    id has its effect once. The source needs a metadata log (``metadataPath``) for that, which has
    the start of the first batch. The logs have the format of Spark's checkpoints.
    """

    def __init__(
        self,
        source: KafkaSource[T],
        offset_log: MetadataLog,
        commit_log: MetadataLog,
        process: Callable[[T, int], object],
        batches_to_retain: int = BATCHES_TO_RETAIN,
    ) -> None:
        """Take ``process``, which is called with each batch and its id.

        :raises ValueError: if ``batches_to_retain`` is below 1.
        """
        if batches_to_retain < 1:
            raise ValueError(f"batches_to_retain must be at least 1, got {batches_to_retain}")
        self._source = source
        self._offset_log = offset_log
        self._commit_log = commit_log
        self._process = process
        self._retain = batches_to_retain
        self._is_recovered = False
        self._planned: PlannedBatch | None = None
        self._done: PlannedBatch | None = None

    def run_batch(self) -> bool:
        """Run the next batch; return whether there was one.

        The first batch runs even if it is empty. The next call retries a batch that failed.

        :raises MetadataLogError: if a log cannot be used, or another driver writes to it.
        """
        self._recover()
        self._planned = self._planned or self._plan()
        if self._planned is None:
            return False
        planned = self._planned
        self._process(self._source.get_batch(planned.start, planned.end), planned.number)
        self._commit(planned)
        return True

    def _recover(self) -> None:
        if self._is_recovered:
            return
        last = self._offset_log.latest()
        committed = self._commit_log.latest()
        number, done = last[0] if last else -1, committed[0] if committed else -1
        if number - done not in {0, 1}:
            raise unrelated_logs(self._offset_log, number, done)
        self._planned, self._done = None, None
        if number >= 0 and number == done:
            self._done = PlannedBatch(number, None, end_of_batch(self._offset_log, number))
        elif number >= 0:
            start = end_of_batch(self._offset_log, number - 1) if number > 0 else None
            self._planned = PlannedBatch(number, start, end_of_batch(self._offset_log, number))
        self._is_recovered = True

    def _plan(self) -> PlannedBatch | None:
        number, start = (self._done.number + 1, self._done.end) if self._done else (0, None)
        end = self._source.latest_offset(start, self._source.default_read_limit)
        if end is None or end == start:
            return None
        content = write_batch_end(end, epoch_ms())
        self._write(self._offset_log, number, content)
        return PlannedBatch(number, start, end)

    def _commit(self, planned: PlannedBatch) -> None:
        self._write(self._commit_log, planned.number, COMMITTED)
        self._done, self._planned = planned, None
        self._source.commit(planned.end)
        threshold = planned.number + 1 - self._retain
        if threshold > 0:
            self._offset_log.purge(threshold)
            self._commit_log.purge(threshold)

    def _write(self, log: MetadataLog, number: int, content: bytes) -> None:
        # A failed write may have reached the storage nevertheless: the next call reads the logs.
        self._is_recovered = False
        was_first = log.add(number, content)
        self._is_recovered = True
        if not was_first:
            raise ConcurrentUpdateError(log, number)
