"""Reading ranges in a task: binding open ends, and handling data loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import UnknownTopicError
from ...domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.errors import (
    LogTruncatedError,
    MissingOffsetsError,
    OffsetOutOfRangeError,
    ResolvedOffsetsError,
    TopicRecreatedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition
    from ...ports.reading import OffsetFetcher, RecordReader, SourceEvents

MAX_REPLACED_LOGS: Final = 10
"""How often a log may be truncated or created again while a range is read, before the task fails:
each time, some of the offsets are read again."""


@final
class RangeRead:
    """The executor's side of a query, with the rules of Spark's ``KafkaDataConsumer.get``."""

    def __init__(
        self,
        reader: RecordReader,
        fetcher: Callable[[], OffsetFetcher],
        options: SourceOptions,
        events: SourceEvents,
    ) -> None:
        """Take a reader, and a factory of a fetcher, which only ranges with an open end need."""
        self._reader = reader
        self._fetcher = fetcher
        self._options = options
        self._events = events

    def read_all(
        self, ranges: Sequence[OffsetRange], projection: Projection
    ) -> Iterator[tuple[TopicPartition, Iterator[pa.RecordBatch]]]:
        """Yield the partition and the records of each range, to be read one after another.

        :raises PysparkKafkaError: as ``read``, also when the records are read.
        """
        bound = self._bind(ranges)
        self._reader.expect([one for one in bound if one.size])
        try:
            for one in bound:
                yield one.partition, self._read(one, projection)
        finally:
            self._reader.expect([])

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range; by the options, deleted offsets raise or are skipped.

        :raises DataLossError: if offsets of the range are gone, or a truncated log or a recreated
            topic has others, and ``failOnDataLoss`` is true.
        :raises LogTruncatedError: if a log is truncated again and again.
        :raises TopicRecreatedError: if a topic is created again and again.
        :raises UnknownTopicError: if the topic is gone and ``failOnDataLoss`` is true, or an open
            end cannot be looked up.
        :raises ResolvedOffsetsError: if an open end turns out to be on the wrong side of the other.
        :raises PysparkKafkaError: as ``RecordReader.read``.
        """
        [whole] = self._bind([offset_range])
        yield from self._read(whole, projection)

    def _read(self, whole: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        rest = whole
        replaced = 0
        while rest.size > 0:
            try:
                yield from self._reported(self._reader.read(rest, projection))
            except OffsetOutOfRangeError as error:
                self._events.offset_out_of_range(error)
                if _is_outdated(rest, error):
                    rest = self._after_outdated(rest, error)
                    continue
                rest = self._after_loss(rest, error.offset, error.earliest, error)
            except (LogTruncatedError, TopicRecreatedError) as error:
                replaced += 1
                if replaced > MAX_REPLACED_LOGS:
                    raise
                # Records before the range belong to ranges that are done.
                loss, resumed_at = data_loss.log_replaced(error, whole.from_offset)
                self._report(loss, error)
                rest = whole.starting_at(min(resumed_at, whole.until_offset))
            except MissingOffsetsError as error:
                rest = self._after_loss(rest, error.start, error.end, error)
            except UnknownTopicError as error:
                if self._options.fail_on_data_loss:
                    raise
                # Its offset is not known: some of what is reported may have been read.
                rest = self._after_loss(rest, rest.from_offset, rest.until_offset, error)
            else:
                return

    def _reported(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches, and report the records that were skipped between them."""
        try:
            for batch in batches:
                self._report_skipped()
                yield batch
        finally:
            self._report_skipped()

    def _report_skipped(self) -> None:
        for loss in self._reader.take_skipped():
            self._events.data_lost(loss)

    def _report(self, loss: data_loss.DataLoss, cause: Exception) -> None:
        if self._options.fail_on_data_loss:
            raise loss.as_error() from cause
        self._events.data_lost(loss)

    def _after_loss(
        self, rest: OffsetRange, start: int, next_offset: int, cause: Exception
    ) -> OffsetRange:
        """Report the loss of offsets from ``start`` on; return the rest of the range after it.

        Nothing is left if the broker's next offset is outside of ``(start, until)``.
        """
        until = rest.until_offset
        skipped_to = next_offset if start < next_offset < until else until
        loss = data_loss.offset_range_not_read(
            rest.partition, start, until, skipped_to, self._options.group_id or "none"
        )
        self._report(loss, cause)
        return rest.starting_at(skipped_to)

    def _after_outdated(self, rest: OffsetRange, error: OffsetOutOfRangeError) -> OffsetRange:
        start, until = error.offset, rest.until_offset
        skipped_to = error.earliest if start < error.earliest < until else until
        loss = data_loss.planned_offsets_not_read(rest.partition, start, skipped_to)
        self._events.data_lost(loss)
        return rest.starting_at(skipped_to)

    def _bind(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        starts = self._fetched(
            [one.partition for one in ranges if one.from_offset == EARLIEST],
            lambda fetcher, open_ones: fetcher.earliest(open_ones),
        )
        ends = self._fetched(
            [one.partition for one in ranges if one.until_offset == LATEST],
            lambda fetcher, open_ones: fetcher.latest(open_ones),
        )
        return [self._bound(one, starts, ends) for one in ranges]

    def _fetched(
        self,
        partitions: Collection[TopicPartition],
        fetch: Callable[[OffsetFetcher, Collection[TopicPartition]], PartitionOffsets],
    ) -> PartitionOffsets:
        if not partitions:
            return PartitionOffsets()
        offsets = fetch(self._fetcher(), partitions)
        if missing := {one.topic for one in partitions if one not in offsets}:
            option = self._options.subscription.option
            raise UnknownTopicError(sorted(missing), option, self._options.bootstrap_servers)
        return offsets

    def _bound(
        self, one: OffsetRange, starts: PartitionOffsets, ends: PartitionOffsets
    ) -> OffsetRange:
        partition = one.partition
        start = starts[partition] if one.from_offset == EARLIEST else one.from_offset
        end = ends[partition] if one.until_offset == LATEST else one.until_offset
        if start > end and one.may_be_outdated:
            if one.until_offset == LATEST:
                self._events.data_lost(data_loss.planned_offsets_not_read(partition, end, start))
            start = end
        if start > end:
            # As KafkaSourceRDD.compute does, also if failOnDataLoss is false.
            raise ResolvedOffsetsError(partition, start, end)
        return replace(one, from_offset=start, until_offset=end)


def _is_outdated(rest: OffsetRange, error: OffsetOutOfRangeError) -> bool:
    """Return whether offsets are gone since they were planned, not since reading began."""
    was_gone = error.offset == rest.from_offset or error.offset >= error.latest
    return rest.may_be_outdated and was_gone
