"""The records of a topic as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...domain.errors import OptionsError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.offset_limits import AtOffset, Earliest, GlobalTimestamp, Latest
from ...domain.reading.ranges import OffsetRange
from ...domain.subscription import Assign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from ...domain.reading.records import Projection
    from ...domain.subscription import Subscription
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import StreamClient
    from ...ports.reading import OffsetFetcher
    from ..values.typed_records import TypedRecords
    from .range_read import RangeRead

TailStart: TypeAlias = Earliest | Latest | GlobalTimestamp | AtOffset

POLL_S: Final = 0.5


@final
class RecordTail:
    """Reads partitions to an end, or until it is stopped.

    Memory is bounded by what the client fetches ahead.
    """

    def __init__(
        self,
        fetcher: OffsetFetcher,
        client: StreamClient,
        range_read: RangeRead,
        projection: Projection,
        typed: TypedRecords | None = None,
    ) -> None:
        """Take what decodes the values, if they have a format."""
        self._fetcher = fetcher
        self._client = client
        self._range_read = range_read
        self._projection = projection
        self._typed = typed

    def starts(self, subscription: Subscription, start: TailStart) -> PartitionOffsets:
        """Return where to begin in each partition.

        :raises UnknownTopicError: if a topic does not exist.
        :raises OptionsError: if none of the assigned partitions exists.
        """
        partitions = self._fetcher.partitions(subscription)
        if not partitions:
            wanted = subscription.partitions if isinstance(subscription, Assign) else ()
            names = ", ".join(map(str, sorted(wanted)))
            raise OptionsError([f"There is no such partition: {names}"])
        latest = self._fetcher.latest(partitions)
        match start:
            case Latest():
                return latest
            case GlobalTimestamp(timestamp):
                found = self._fetcher.for_timestamps(dict.fromkeys(partitions, timestamp))
                return PartitionOffsets(
                    (each, end if (offset := found.get(each)) is None else offset)
                    for each, end in latest.items()
                )
        earliest = self._fetcher.earliest(partitions)
        if isinstance(start, Earliest):
            return earliest
        return PartitionOffsets(
            (each, start.within(earliest[each], end))
            for each, end in latest.items()
            if each in earliest
        )

    def ends(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return the ends of partitions as they are now."""
        return self._fetcher.latest(partitions)

    def read(self, starts: PartitionOffsets, ends: PartitionOffsets) -> Iterator[pa.RecordBatch]:
        """Yield the records between these offsets, one partition after another.

        :raises PysparkKafkaError: as ``RangeRead.read``, such as for a topic that was deleted.
        """
        ranges = [
            OffsetRange(partition, start, ends[partition])
            for partition, start in sorted(starts.items())
            if start < ends.get(partition, start)
        ]
        for partition, batches in self._range_read.read_all(ranges, self._projection):
            for records in batches:
                yield from self._decoded(partition, records)

    def follow(self, starts: PartitionOffsets) -> Iterator[pa.RecordBatch]:
        """Yield records from these offsets on, until the caller stops."""
        self._client.assign(starts)
        while True:
            for polled in self._client.poll(POLL_S):
                if polled.records is not None:
                    yield from self._decoded(polled.partition, polled.records)
                self._client.write(polled, ())
            self._client.acknowledged()

    def _decoded(
        self, partition: TopicPartition, records: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        if self._typed is None:
            yield records
        elif records.num_rows:
            yield from self._typed.decode(partition, records)
