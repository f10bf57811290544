"""The records of a topic as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import OptionsError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.offset_limits import AtOffset, Earliest, GlobalTimestamp, Latest
from ...domain.subscription import Assign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...domain.subscription import Subscription
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords, StreamClient
    from ...ports.reading import OffsetFetcher
    from ..values.typed_records import TypedRecords

TailStart: TypeAlias = Earliest | Latest | GlobalTimestamp | AtOffset

POLL_S: Final = 0.5


@final
class RecordTail:
    """Reads partitions until it is stopped. Memory is bounded by what the client fetches ahead."""

    def __init__(
        self, fetcher: OffsetFetcher, client: StreamClient, typed: TypedRecords | None = None
    ) -> None:
        """Take what decodes the values, if they have a format."""
        self._fetcher = fetcher
        self._client = client
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

    def follow(
        self, starts: PartitionOffsets, ends: PartitionOffsets | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield records from these offsets on, up to ``ends``, or until the caller stops."""
        unfinished = {
            each for each, start in starts.items() if ends is None or start < ends.get(each, 0)
        }
        self._client.assign(starts.restrict(unfinished))
        while unfinished:
            for polled in self._client.poll(POLL_S):
                end = None if ends is None else ends.get(polled.partition, 0)
                yield from self._records(polled, end)
                self._client.write(polled, ())
                if end is not None and polled.next_offset >= end:
                    self._client.revoke([polled.partition])
                    unfinished.discard(polled.partition)
            self._client.acknowledged()

    def _records(self, polled: PolledRecords, end: int | None) -> Iterator[pa.RecordBatch]:
        records = polled.records
        if records is None:
            return
        if end is not None:
            records = records.filter(pc.less(records.column("offset"), pa.scalar(end)))
        if self._typed is None:
            yield records
        elif records.num_rows:
            yield from self._typed.decode(polled.partition, records)
