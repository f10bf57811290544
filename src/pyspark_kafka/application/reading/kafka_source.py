"""A stream of micro-batches with the interface of Spark's V1 ``Source``."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar, final

from ...domain.partition_offsets import EARLIEST, PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.offset_limits import Specific
from .offsets import StreamStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...domain.options.source import SourceOptions
    from ...domain.reading.admission import ReadLimit
    from ...domain.reading.ranges import OffsetRange
    from ...domain.topic_partition import TopicPartition
    from .offsets import KafkaOffsetReader
    from .planner import RangePlanner
    from .stream import KafkaMicroBatchStream

log = logging.getLogger("pyspark_kafka")

T = TypeVar("T")


@final
class KafkaSource(Generic[T]):
    """Spark's ``KafkaSource``: a ``KafkaMicroBatchStream`` that keeps the current offsets.

    It remembers where the next batch starts, and returns what ``load`` makes of ranges, such as a
    DataFrame or a table. A driver such as ``MicroBatchExecution`` logs the offsets.
    """

    def __init__(
        self,
        stream: KafkaMicroBatchStream,
        offset_reader: KafkaOffsetReader,
        load: Callable[[Sequence[OffsetRange]], T],
    ) -> None:
        """Take ``load``, which reads ranges into a batch; without ranges, an empty one."""
        self._stream = stream
        self._offset_reader = offset_reader
        self._load = load
        self._current: PartitionOffsets | None = None

    def __str__(self) -> str:
        return f"KafkaSourceV1[{self._offset_reader}]"

    @property
    def default_read_limit(self) -> ReadLimit:
        """The read limit of the options."""
        return self._stream.default_read_limit

    @property
    def initial_partition_offsets(self) -> PartitionOffsets:
        """Where the first batch starts, from the metadata log or else ``startingOffsets``.

        Determined at the first use, and constant afterwards. Empty if the options do not match the
        partitions: ``latest_offset`` then raises the error.

        :raises DataLossError: if starting offsets are gone and ``failOnDataLoss`` is true.
        :raises MetadataLogError: if the log of initial offsets cannot be read or written.
        """
        return self._stream.initial_offset()

    @property
    def current_partition_offsets(self) -> PartitionOffsets | None:
        """Where the next batch starts: the end of the last one that was requested, if any."""
        return self._current

    def get_offset(self) -> PartitionOffsets | None:
        """Return the end of the next batch under the options' read limit."""
        return self.latest_offset(None, self.default_read_limit)

    def latest_offset(
        self, start: PartitionOffsets | None, limit: ReadLimit
    ) -> PartitionOffsets | None:
        """Return the end of the next batch; ``None`` if there is no partition.

        The limit counts from ``start``, the end of the last committed batch. Without it, as in
        Spark's, from ``current_partition_offsets``, or else the initial offsets.
        """
        initial = self.initial_partition_offsets
        given = self._current if start is None else start
        current = initial if given is None else given
        self._current = self._stream.latest_offset(current, limit)
        log.debug("GetOffset: %s", self._current.to_json())
        return self._current or None

    def get_batch(self, start: PartitionOffsets | None, end: PartitionOffsets) -> T:
        """Load the batch between two offsets; without ``start``, from the initial offsets.

        After a restart an engine may call this before ``latest_offset``: the next batch then starts
        at ``end``.

        :raises DataLossError: if records in between are gone and ``failOnDataLoss`` is true.
        :raises AvailableNowError: if partitions changed under Trigger.AvailableNow.
        """
        initial = self.initial_partition_offsets
        given = "None" if start is None else f"Some({start.to_json()})"
        log.info("GetBatch called with start = %s, end = %s", given, end.to_json())
        if self._current is None:
            self._current = end
        begin = initial if start is None else start
        ranges = self._stream.plan_input_partitions(begin, end, may_be_first=start is None)
        log.debug("TopicPartitions: %s", ", ".join(map(str, end)))
        log.info("GetBatch generating RDD of offset range: %s", ", ".join(map(str, ranges)))
        return self._load(ranges)

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Return the latest offsets when the last batch was planned, for progress reports."""
        return self._stream.report_latest_offset() or None

    def prepare_for_trigger_available_now(self) -> None:
        """Stop the query at the offsets that the next ``latest_offset`` returns."""
        self._stream.prepare_for_trigger_available_now()

    def commit(self, end: PartitionOffsets) -> None:
        """Notify that a batch that ends at ``end`` is committed."""
        self._stream.commit(end)

    def stop(self) -> None:
        """Close the connections. The source cannot be used afterwards."""
        self._offset_reader.close()


def verified_start(
    offset_reader: KafkaOffsetReader, options: SourceOptions, planner: RangePlanner
) -> StreamStart:
    """Resolve ``startingOffsets``, and reset offsets that no broker holds to the earliest one.

    As a consumer with ``auto.offset.reset=earliest``, which Spark's driver has.
    """
    found = offset_reader.start_of_stream()
    if not isinstance(options.starting_offsets, Specific):
        return found
    given = options.starting_offsets.of(found.offsets)
    reset = PartitionOffsets(_not_held(offset_reader, options, given))
    for partition, earliest in reset.items():
        planner.report(data_loss.start_offset_reset(partition, given[partition], earliest))
    return replace(found, offsets=found.offsets.merge(reset))


def _not_held(
    offset_reader: KafkaOffsetReader, options: SourceOptions, specific: PartitionOffsets
) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the earliest offset of each partition that does not hold the given one."""
    given = PartitionOffsets((one, offset) for one, offset in specific.items() if offset >= 0)
    if not given:
        return
    earliest = offset_reader.resolve_open(PartitionOffsets(dict.fromkeys(given, EARLIEST)))
    # Under read_committed the latest offset is the last stable one: there are records of open
    # transactions after it.
    latest = given if options.reads_committed_only else offset_reader.latest_of(given)
    for partition, offset in given.items():
        if not earliest[partition] <= offset <= latest[partition]:
            yield partition, earliest[partition]
