"""Running the batches of a source, each with the same offsets whenever it is retried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ...domain.checkpoints.checkpoint_log import COMMITTED, write_batch_end
from ...ports.clock import epoch_ms
from ..checkpoints.logs import CheckpointLogs, ConcurrentUpdateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints import MetadataLog
    from .kafka_source import KafkaSource

T = TypeVar("T")

BATCHES_TO_RETAIN: Final = 100
"""The default of ``spark.sql.streaming.minBatchesToRetain``."""


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
        self._logs = CheckpointLogs(offset_log, commit_log)
        self._process = process
        self._retain = batches_to_retain
        self._is_recovered = False
        self._number = 0
        self._start: PartitionOffsets | None = None
        self._planned_end: PartitionOffsets | None = None

    def run_batch(self) -> bool:
        """Run the next batch; return whether there was one.

        The first batch runs even if it is empty. The next call retries a batch that failed.

        :raises MetadataLogError: if a log cannot be used, or another driver writes to it.
        """
        if not self._is_recovered:
            self._recover()
        end = self._plan() if self._planned_end is None else self._planned_end
        if end is None:
            return False
        self._process(self._source.get_batch(self._start, end), self._number)
        self._commit(end)
        return True

    def _recover(self) -> None:
        planned, done = self._logs.last()
        self._number = done + 1
        self._start = self._logs.end(done) if done >= 0 else None
        self._planned_end = self._logs.end(planned) if planned > done else None
        self._is_recovered = True

    def _plan(self) -> PartitionOffsets | None:
        end = self._source.latest_offset(self._start, self._source.default_read_limit)
        if end is None or end == self._start:
            return None
        self._write(self._logs.offsets, write_batch_end(end, epoch_ms()))
        self._planned_end = end
        return end

    def _commit(self, end: PartitionOffsets) -> None:
        self._write(self._logs.commits, COMMITTED)
        self._number, self._start, self._planned_end = self._number + 1, end, None
        self._source.commit(end)
        self._logs.purge(self._number - self._retain)

    def _write(self, log: MetadataLog, content: bytes) -> None:
        # A failed write may have reached the storage nevertheless: the next call reads the logs.
        self._is_recovered = False
        was_first = log.add(self._number, content)
        self._is_recovered = True
        if not was_first:
            raise ConcurrentUpdateError(log, self._number)
