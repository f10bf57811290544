"""A stream of micro-batches by Spark's first contract of sources, whatever a batch is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar, final

from ..domain.read_limits import ReadMaxRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..domain.offset_range import OffsetRange
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.read_limits import ReadLimit
    from .admission import Admission
    from .micro_batch_stream import KafkaMicroBatchStream
    from .offset_reader import KafkaOffsetReader
    from .verified_start import VerifiedStart

log = logging.getLogger("pyspark_kafka")

T = TypeVar("T")


@final
class KafkaSource(Generic[T]):
    """Spark's ``KafkaSource``: a ``KafkaMicroBatchStream`` that keeps count, and makes batches.

    Where the stream is told where a batch begins, this remembers it; and where the stream gives
    ranges, this gives what ``load`` makes of them: a data frame, a table. A driver writes down the
    offsets that it is given, and hands them back: ``MicroBatchExecution``.
    """

    def __init__(
        self,
        stream: KafkaMicroBatchStream,
        start: VerifiedStart,
        admission: Admission,
        offset_reader: KafkaOffsetReader,
        load: Callable[[Sequence[OffsetRange]], T],
    ) -> None:
        """Take ``load``, which makes a batch of ranges, and an empty one of none."""
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
        """The limit that the options ask for."""
        return self._stream.default_read_limit

    @property
    def initial_partition_offsets(self) -> PartitionOffsets:
        """Where the first batch begins, from the metadata log or by ``startingOffsets``.

        Nothing is asked for before the first use, and the answer does not change after it.

        :raises DataLossError: if given offsets are gone and ``failOnDataLoss`` is true.
        :raises MetadataLogError: if the log of initial offsets cannot be used.
        """
        return self._start.get()

    @property
    def current_partition_offsets(self) -> PartitionOffsets | None:
        """Where the next batch begins: the end of the last one that was asked for, if any was."""
        return self._current

    def get_offset(self) -> PartitionOffsets | None:
        """Give where the next batch ends, as far as the options let it reach."""
        return self.latest_offset(None, self.default_read_limit)

    def latest_offset(
        self, start: PartitionOffsets | None, limit: ReadLimit
    ) -> PartitionOffsets | None:
        """Give the offsets at which the next batch ends; ``None`` if there is no partition.

        The limit counts from ``start``, up to which a driver has committed everything. Spark's does
        not say it: then it counts from ``current_partition_offsets``, or else the initial offsets.
        """
        initial = self.initial_partition_offsets
        current = start or self._current or initial
        self._current = self._stream.latest_offset(current, limit)
        log.debug("GetOffset: %s", self._current.to_json())
        return self._current or None

    def rate_limit(
        self, limit: int, start: PartitionOffsets, until: PartitionOffsets
    ) -> PartitionOffsets:
        """Cut a batch to about ``limit`` offsets, of which each partition gets its share."""
        return self._admission.end_of_batch(start, until, ReadMaxRows(limit))

    def get_batch(self, start: PartitionOffsets | None, end: PartitionOffsets) -> T:
        """Make the batch between two offsets; without ``start`` it begins at the initial ones.

        After a restart this may come before any ``latest_offset``: the next batch then begins at
        ``end``.

        :raises DataLossError: if something between them is gone and ``failOnDataLoss`` is true.
        :raises AvailableNowError: if Kafka changed under a query with Trigger.AvailableNow.
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
        """Give the offsets that were the latest when the last batch was made, for progress."""
        return self._stream.report_latest_offset() or None

    def prepare_for_trigger_available_now(self) -> None:
        """Let the query end with what the next ``latest_offset`` finds."""
        self._stream.prepare_for_trigger_available_now()

    def commit(self, end: PartitionOffsets) -> None:
        """Take notice that the driver has committed a batch that ends at ``end``."""
        self._stream.commit(end)

    def stop(self) -> None:
        """Give back the connections for offsets. Nothing can be asked for after it."""
        self._offset_reader.close()
