"""A stream of micro-batches with the interface of Spark's V1 ``Source``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar, final

from ...domain.reading.admission import ReadMaxRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.admission import ReadLimit
    from ...domain.reading.ranges import OffsetRange
    from .offsets import KafkaOffsetReader
    from .stream import Admission, KafkaMicroBatchStream
    from .verified_start import VerifiedStart

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
        start: VerifiedStart,
        admission: Admission,
        offset_reader: KafkaOffsetReader,
        load: Callable[[Sequence[OffsetRange]], T],
    ) -> None:
        """Take ``load``, which reads ranges into a batch; without ranges, an empty one."""
        self._stream = stream
        self._start = start
        self._admission = admission
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

        Determined at the first use, and constant afterwards.

        :raises DataLossError: if starting offsets are gone and ``failOnDataLoss`` is true.
        :raises MetadataLogError: if the log of initial offsets cannot be read or written.
        """
        return self._start.get()

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

    def rate_limit(
        self, limit: int, start: PartitionOffsets, until: PartitionOffsets
    ) -> PartitionOffsets:
        """Return the end of a batch of about ``limit`` offsets, shared among the partitions."""
        return self._admission.end_of_batch(start, until, ReadMaxRows(limit))

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
        ranges = self._stream.plan_input_partitions(initial if start is None else start, end)
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
