"""The driver's side of a streaming query: the offsets of each batch and its ranges."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import Lag
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.admission import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    TriggerDelay,
    limits_of,
    rate_limit,
    rate_limit_bytes,
)
from ...domain.reading.available_now import check_available_now
from ...domain.reading.ranges import OffsetRange
from ...domain.reading.records import Projection
from .first_batch import FirstBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from ...domain.options.source import SourceOptions
    from ...domain.reading.admission import ReadLimit, SingleReadLimit
    from ...domain.reading.ranges import TaskRanges
    from ...domain.topic_partition import TopicPartition
    from ...ports.clock import Clock
    from ...ports.reading import OffsetFetcher, RecordReader, SourceEvents
    from .offsets import InitialOffsets, KafkaOffsetReader
    from .planner import RangePlanner, TaskPlanner

log = logging.getLogger("pyspark_kafka")


@final
class Admission:
    """Applies read limits as ``latestOffset`` of Spark's ``KafkaMicroBatchStream`` does.

    ``ReadAllAvailable`` takes precedence over the others, as Trigger.Once needs; then
    ``ReadMinRows`` may delay the batch; then the limits of rows and bytes cut it, the lower one for
    each partition.
    """

    def __init__(self, offset_reader: KafkaOffsetReader, clock: Clock, sizes: RecordSizes) -> None:
        self._offset_reader = offset_reader
        self._clock = clock
        self._sizes = sizes
        self._delay = TriggerDelay()
        # In insertion order: what has waited longest for its share of bytes is first.
        self._served: dict[TopicPartition, None] = {}

    def end_of_batch(
        self, start: PartitionOffsets, latest: PartitionOffsets, limit: ReadLimit
    ) -> PartitionOffsets:
        """Return the end of a batch from ``start``; ``start`` itself if the batch is delayed."""
        limits = limits_of(limit)
        if any(isinstance(single, ReadAllAvailable) for single in limits):
            return latest
        if any(self._is_delayed(start, latest, single) for single in limits):
            return start
        begin = start.merge(self._offset_reader.earliest(latest.keys() - start.keys()))
        ends = [self._cut(begin, latest, single) for single in limits]
        return _lowest([latest, *ends])

    def _is_delayed(
        self, start: PartitionOffsets, latest: PartitionOffsets, limit: SingleReadLimit
    ) -> bool:
        if not isinstance(limit, ReadMinRows):
            return False
        decision = self._delay.decide(
            self._clock.now_ms(), limit.min_rows, limit.max_trigger_delay_ms, latest, start
        )
        self._delay = decision.next
        if decision.message:
            log.debug("%s", decision.message)
        return decision.is_delayed

    def _cut(
        self, begin: PartitionOffsets, latest: PartitionOffsets, limit: SingleReadLimit
    ) -> PartitionOffsets:
        match limit:
            case ReadMaxRows(max_rows):
                return rate_limit(max_rows, begin, latest)
            case ReadMaxBytes(max_bytes):
                sizes = self._sizes.measure(begin, latest)
                end = rate_limit_bytes(max_bytes, begin, latest, sizes, self._served)
                self._serve(each for each in begin.keys() & end.keys() if end[each] > begin[each])
                return end
            case _:
                return latest

    def _serve(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._served.pop(partition, None)
            self._served[partition] = None


def _lowest(ends: Iterable[PartitionOffsets]) -> PartitionOffsets:
    first, *others = ends
    return PartitionOffsets(
        (partition, min([offset, *(other[partition] for other in others)]))
        for partition, offset in first.items()
    )


SAMPLE_SIZE: Final = 100
"""The number of offsets to read in a partition at most."""

SAMPLE_BYTES: Final = 1024 * 1024
"""The bytes after which no more is read in a partition."""

MAX_SAMPLED_PARTITIONS: Final = 8
"""The number of partitions to sample before a batch; others keep their last size."""

CONTENT: Final = Projection(("key", "value", "headers"))


@final
class RecordSizes:
    """Reads a few records at the start of a batch, and keeps their average size by partition.

    The driver gets no sizes from its tasks, so it samples records itself: first partitions that
    were never sampled, then those with the oldest sample.
    """

    def __init__(self, reader: Callable[[], RecordReader]) -> None:
        """Take a factory of a reader, which only a query with a limit in bytes needs."""
        self._reader = reader
        self._bytes_per_record: dict[TopicPartition, float] = {}
        # In insertion order: the oldest sample is first.
        self._sampled: dict[TopicPartition, None] = {}

    def measure(
        self, begin: Mapping[TopicPartition, int], until: PartitionOffsets
    ) -> Mapping[TopicPartition, float]:
        """Return the average bytes per record of each partition that was ever sampled."""
        waiting = [part for part, end in until.items() if part in begin and begin[part] < end]
        age = {part: position for position, part in enumerate(self._sampled)}
        for part in sorted(waiting, key=lambda part: age.get(part, -1))[:MAX_SAMPLED_PARTITIONS]:
            self._sample(
                OffsetRange(part, begin[part], min(begin[part] + SAMPLE_SIZE, until[part]))
            )
        return self._bytes_per_record

    def _sample(self, offset_range: OffsetRange) -> None:
        self._sampled.pop(offset_range.partition, None)
        self._sampled[offset_range.partition] = None
        rows = size = 0
        try:
            for batch in self._reader().read(offset_range, CONTENT):
                rows += batch.num_rows
                size += batch.nbytes
                if size >= SAMPLE_BYTES:
                    break
        except PysparkKafkaError:
            # The batch itself reports what cannot be read.
            return
        if rows:
            self._bytes_per_record[offset_range.partition] = size / rows


RETRY_MS: Final = 60_000
"""The pause after a failed commit: triggers may be 10 ms apart, and each attempt delays one."""


@final
class ProgressReports:
    """Reports lag, and commits offsets for a consumer group if the options name one.

    The group's offsets are a copy for monitoring tools: the engine's own log counts, so that a
    failed commit is only reported, and no batch waits long for one.
    """

    def __init__(
        self,
        fetcher: Callable[[], OffsetFetcher],
        group_id: str | None,
        clock: Clock,
        events: SourceEvents,
        attempt: Callable[[str], AbstractContextManager[object]],
    ) -> None:
        """Take a factory of a fetcher, which only a consumer group needs.

        ``attempt`` takes a group, and limits the waits of a commit to it.
        """
        self._fetcher = fetcher
        self._group_id = group_id
        self._clock = clock
        self._events = events
        self._attempt = attempt
        self._reported: PartitionOffsets | None = None
        self._committed: PartitionOffsets | None = None
        self._paused_until_ms: int | None = None

    def done(
        self, end: PartitionOffsets, latest: PartitionOffsets | None, *, is_committed: bool = True
    ) -> None:
        """Take the end of the last committed batch, and the known latest offsets.

        Repeated calls with the same end report it once, and commit it until that succeeds. Initial
        offsets are not committed: the query may continue elsewhere, and only the engine knows.
        """
        if end != self._reported:
            self._reported = end
            if latest and self._events.takes_lag:
                self._events.lag_measured(Lag.between(latest, end))
        if is_committed and self._group_id is not None and end != self._committed:
            self._commit(self._group_id, end)

    def _commit(self, group_id: str, end: PartitionOffsets) -> None:
        now_ms = self._clock.now_ms()
        if self._paused_until_ms is not None and now_ms < self._paused_until_ms:
            return
        try:
            with self._attempt(group_id):
                self._fetcher().commit(group_id, end)
        except PysparkKafkaError as error:
            self._paused_until_ms = self._clock.now_ms() + RETRY_MS
            self._events.group_commit_failed(group_id, error)
        else:
            self._committed = end


@final
class KafkaMicroBatchStream:
    """Spark's ``KafkaMicroBatchStream``.

    It has no state that a restart loses: the engine logs the offsets that ``latest_offset`` returns
    and passes them back.
    """

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        admission: Admission,
        *,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        progress: ProgressReports,
        task_planner: TaskPlanner,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._admission = admission
        self._planner = planner
        self._first_batch = FirstBatch(initial_offsets, offset_reader, planner, options)
        self._progress = progress
        self._task_planner = task_planner
        self._options = options
        self._latest: PartitionOffsets | None = None
        self._stops_at_first_latest = False
        self._prefetched: PartitionOffsets | None = None

    def __str__(self) -> str:
        return f"KafkaV2[{self._offset_reader}]"

    @property
    def default_read_limit(self) -> ReadLimit:
        """The read limit of the options."""
        return self._options.read_limit

    def initial_offset(self) -> PartitionOffsets:
        """Return the offsets at which a query without a checkpoint starts (``startingOffsets``).

        They do not change in this process: ``InitialOffsets``. There are none if the options do not
        match the partitions; ``latest_offset`` then raises the error, unless a first batch that is
        logged already is to run again.
        """
        return self._first_batch.start()

    def latest_offset(self, start: PartitionOffsets, limit: ReadLimit) -> PartitionOffsets:
        """Return the end of the next batch; ``start`` itself if there is none.

        Offsets without partitions must not reach the offset log: a later batch would start at the
        earliest offsets again (SPARK-41375).

        When an engine calls this, all batches up to ``start`` are committed: Spark calls ``commit``
        only when it plans the following batch, which may be much later.

        :raises StreamOffsetsMismatchError: if ``startingOffsets`` names other partitions than the
            query reads; other errors of ``InitialOffsets.get`` likewise.
        """
        self._first_batch.check(start)
        self._latest = self._fetch_latest(start)
        is_committed = not self._first_batch.starts_at(start)
        self._progress.done(start, self._latest, is_committed=is_committed)
        has_partitions = bool(self._latest)
        end = self._admission.end_of_batch(start, self._latest, limit) if has_partitions else start
        return self._first_batch.end(start, end)

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Return the latest offsets when the last batch was planned, for progress reports."""
        return self._latest

    def metrics(self, consumed: PartitionOffsets | None) -> Mapping[str, str]:
        """Return min-, max- and avgOffsetsBehindLatest of a query's consumed offsets, as text."""
        if not self._latest or consumed is None:
            return {}
        return Lag.between(self._latest, consumed).metrics()

    def prepare_for_trigger_available_now(self) -> None:
        """Stop the query at the offsets that the next ``latest_offset`` returns."""
        self._stops_at_first_latest = True

    def plan_input_partitions(
        self, start: PartitionOffsets, end: PartitionOffsets, *, may_be_first: bool = True
    ) -> tuple[OffsetRange, ...]:
        """Split the offsets of a batch into ranges, one for each task.

        An engine that knows that a batch is a later one sets ``may_be_first`` to false: its start
        may equal the initial offsets.

        :raises DataLossError: if records in between are gone and ``failOnDataLoss`` is true.
        :raises AvailableNowError: if partitions changed under Trigger.AvailableNow.
        """
        # Spark plans an empty batch if another connector has written the same offsets differently.
        if self._prefetched is not None and start != end:
            latest = self._offset_reader.latest(end)
            check_available_now(self._prefetched, end, latest)
        begin = self._first_batch.start_as_of(start, end) if may_be_first else start
        return self._planner.plan(begin, end)

    def plan_tasks(
        self, start: PartitionOffsets, end: PartitionOffsets, *, may_be_first: bool = True
    ) -> tuple[TaskRanges, ...]:
        """Return the ranges of each task; raise as ``plan_input_partitions`` does."""
        ranges = self.plan_input_partitions(start, end, may_be_first=may_be_first)
        return self._task_planner.plan(ranges)

    def commit(self, end: PartitionOffsets) -> None:
        """Notify that a batch that ends at ``end`` is committed."""
        self._progress.done(end, self._latest)

    def _fetch_latest(self, start: PartitionOffsets) -> PartitionOffsets:
        if not self._stops_at_first_latest:
            return self._offset_reader.latest(start)
        if self._prefetched is None:
            self._prefetched = self._offset_reader.latest(start)
        return self._prefetched
