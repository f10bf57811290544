"""Continuous queries over a cluster in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

import pyarrow as pa

from ...domain.continuous.epochs import Output, OutputTracker
from ...domain.continuous.settings import ContinuousSettings
from ...domain.options.sink import SinkOptions
from ...domain.options.source import SourceOptions
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.data_loss import DataLoss
from ...domain.reading.errors import OffsetOutOfRangeError, TopicRecreatedError
from ...domain.reading.record_limits import OversizedRecords
from ...domain.topic_partition import TopicPartition
from ...domain.writing.transaction import Transaction
from ...ports.continuous import PolledRecords, StreamClient
from ..kafka_format.record_columns import RecordColumns, readable
from ..stream_sinks import later
from .cluster import MemoryCluster
from .reading import RECORDS_PER_BATCH
from .writing import MemoryRecordWriter


@final
class MemoryStreamClient(StreamClient):
    """Reads from and writes to a ``MemoryCluster``.

    Without transactions, outputs are acknowledged at once. With them, ``poll`` commits earlier
    outputs.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        source: SourceOptions,
        sink: SinkOptions | None,
        settings: ContinuousSettings,
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._oversized = OversizedRecords(source.record_limits)
        self._topic = sink and sink.topic
        self._writer = sink and MemoryRecordWriter(cluster)
        self._is_exactly_once = sink is not None and sink.is_exactly_once
        self._settings = settings
        self._offsets: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, int | None] = {}
        self._transactions: dict[TopicPartition, Transaction] = {}
        self._uncommitted: dict[TopicPartition, list[Output]] = {}
        self._tracker = OutputTracker()

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self._commit()
        for partition in offsets:
            self._tracker.forget(partition)
            self._topic_ids[partition] = self._cluster.topic_id(partition.topic)
        assigned = self._fence(offsets) if self._is_exactly_once else offsets
        self._offsets.update(assigned)
        return assigned

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._offsets.pop(partition, None)

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        self._commit()
        if not takes_records:
            return ()
        polled = self._cluster.wait_for(
            self._fetch, 0 if self._tracker.has_acknowledged else timeout_s
        )
        self._offsets.update((each.partition, each.next_offset) for each in polled)
        return polled

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if self._writer is not None:
            if self._is_exactly_once:
                self._writer.join_transaction(self._transactions[polled.partition])
            for batch in outputs:
                self._writer.write(batch, self._topic)
            self._writer.flush()
        awaited = int(self._is_exactly_once)
        output = self._tracker.add(polled.partition, polled.next_offset, awaited)
        if self._is_exactly_once:
            self._uncommitted.setdefault(polled.partition, []).append(output)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._tracker.take_acknowledged()

    def is_settled(self) -> bool:
        return self._tracker.is_settled

    def close(self) -> None:
        self._offsets.clear()
        self._uncommitted.clear()
        for transaction in self._transactions.values():
            self._cluster.close_transaction(transaction, commit=False)
        self._transactions.clear()

    def _fence(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Begin transactions, which fences other tasks, and then read the group's offsets."""
        group_id = self._settings.group_id
        for partition in offsets:
            name = self._settings.transactional_id(partition.topic, partition.partition)
            transaction = self._cluster.open_transaction(name)
            self._transactions[partition] = transaction
        found = self._cluster.group_offsets(group_id)
        self._settings.require_unsealed(found.values())
        again = offsets.restrict(self._offsets.keys())
        for partition, offset in again.items():
            transaction = self._transactions[partition]
            self._cluster.commit_and_begin(transaction, group_id, {partition: offset})
        committed = {each: found[each].offset for each in found.keys() - again.keys()}
        return PartitionOffsets(later(offsets, committed))

    def _commit(self) -> None:
        """Commit the outputs, in a transaction for each partition."""
        for partition, outputs in list(self._uncommitted.items()):
            self._cluster.commit_and_begin(
                self._transactions[partition],
                self._settings.group_id,
                {partition: outputs[-1].next_offset},
            )
            del self._uncommitted[partition]
            for output in outputs:
                self._tracker.acknowledge(output, 1)

    def _fetch(self) -> list[PolledRecords]:
        found = (self._fetch_from(*position) for position in self._offsets.items())
        return [polled for polled in found if polled is not None]

    def _fetch_from(self, partition: TopicPartition, offset: int) -> PolledRecords | None:
        watermarks = self._cluster.watermarks(partition, committed_only=False)
        if watermarks is None:
            return None
        self._check(partition, offset, *watermarks)
        committed_only = self._source.reads_committed_only
        _, end = self._cluster.watermarks(partition, committed_only=committed_only) or watermarks
        if end <= offset:
            return None
        records = self._cluster.fetch(
            partition, offset, end, committed_only=committed_only, max_records=RECORDS_PER_BATCH
        )
        if not records:
            return PolledRecords(partition, None, end)
        projection = self._source.projection
        good, error = readable(records, partition, projection, self._oversized)
        if error is not None and not good:
            raise error
        batch = RecordColumns.of(good).to_record_batch(partition, projection) if good else None
        end = records[-1].offset + 1 if error is None else good[-1].offset + 1
        return PolledRecords(partition, batch, end)

    def _check(self, partition: TopicPartition, offset: int, earliest: int, latest: int) -> None:
        topic_id = self._cluster.topic_id(partition.topic)
        if self._topic_ids[partition] is None:
            self._topic_ids[partition] = topic_id
        if self._topic_ids[partition] != topic_id:
            raise TopicRecreatedError(partition, offset, earliest=earliest)
        if not earliest <= offset <= latest:
            raise OffsetOutOfRangeError(partition, offset, earliest=earliest, latest=latest)
