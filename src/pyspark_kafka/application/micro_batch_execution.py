"""Running the batches of a source, each with the same offsets however often it is begun."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ..domain.checkpoint_log import COMMITTED, read_batch_end, write_batch_end
from ..domain.errors import MetadataLogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.partition_offsets import PartitionOffsets
    from ..ports.metadata_log import MetadataLog
    from .kafka_source import KafkaSource

T = TypeVar("T")

BATCHES_TO_RETAIN: Final = 100
"""How many batches the logs keep: Spark's ``spark.sql.streaming.minBatchesToRetain``."""


@final
@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch by its number and its two ends; the first one has no start of its own."""

    number: int
    start: PartitionOffsets | None
    end: PartitionOffsets


@final
class MicroBatchExecution(Generic[T]):
    """A driver of a ``KafkaSource``: what Spark's ``MicroBatchExecution`` does with one.

    A batch's end is written into the log of offsets before the batch runs, and its number into the
    log of commits afterwards. Whoever starts with both logs runs what was planned and not committed
    again, with the very same offsets: nothing is left out, and what ``process`` does by the batch's
    number is done once. The source needs its metadata log (``metadataPath``) for that, which says
    where the first batch began. The logs are those of Spark's checkpoints.
    """

    def __init__(
        self,
        source: KafkaSource[T],
        offset_log: MetadataLog,
        commit_log: MetadataLog,
        process: Callable[[T, int], object],
        batches_to_retain: int = BATCHES_TO_RETAIN,
    ) -> None:
        """Take ``process``, which is called with each batch and its number.

        :raises ValueError: if not a single batch is to be retained.
        """
        if batches_to_retain < 1:
            raise ValueError(f"the next batch begins where a kept one ends: {batches_to_retain}")
        self._source = source
        self._offset_log = offset_log
        self._commit_log = commit_log
        self._process = process
        self._retain = batches_to_retain
        self._is_recovered = False
        self._planned: PlannedBatch | None = None
        self._done: PlannedBatch | None = None

    def run_batch(self) -> bool:
        """Run a batch, and say whether there was one to run.

        The first batch runs even if nothing is in it. A batch that failed is run again by the next
        call.

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
            problem = f"Batch {number} is the last one planned, and {done} the last one committed"
            raise MetadataLogError(str(self._offset_log), problem)
        self._planned, self._done = None, None
        if number >= 0 and number == done:
            self._done = PlannedBatch(number, None, self._end_of(number))
        elif number >= 0:
            start = self._end_of(number - 1) if number > 0 else None
            self._planned = PlannedBatch(number, start, self._end_of(number))
        self._is_recovered = True

    def _plan(self) -> PlannedBatch | None:
        number, start = (self._done.number + 1, self._done.end) if self._done else (0, None)
        end = self._source.latest_offset(start, self._source.default_read_limit)
        if end is None or end == start:
            return None
        content = write_batch_end(end, time.time_ns() // 1_000_000)
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
        # A write that fails may have reached the storage all the same: the next call looks.
        self._is_recovered = False
        was_first = log.add(number, content)
        self._is_recovered = True
        if not was_first:
            # The words of CONCURRENT_STREAM_LOG_UPDATE in Spark's error-conditions.json.
            problem = f"Concurrent update to the log. Multiple streaming jobs detected for {number}"
            raise MetadataLogError(str(log), problem)

    def _end_of(self, number: int) -> PartitionOffsets:
        content = self._offset_log.get(number)
        if content is None:
            raise MetadataLogError(str(self._offset_log), f"There is no batch {number}")
        try:
            return read_batch_end(content)
        except ValueError as error:
            raise MetadataLogError(str(self._offset_log), str(error)) from error
