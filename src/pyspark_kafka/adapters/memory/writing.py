"""Writers to a cluster in memory, and its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ...domain.writing.transaction import DeliveryStats, Transaction
from ...ports.clock import epoch_ms
from ...ports.writing import RecordWriter, Transactions
from ..kafka_format.producer_columns import ProducerColumns
from ..kernels.arrays import Int32Array
from ..partitioning.row_partitioner import require_names
from ..partitioning.topic_rows import (
    RowTopics,
    explicit_partitions,
    partitions_by_key,
    require_partitions,
)
from .cluster import TRANSACTION_TIMEOUT_MS, MemoryCluster

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.group_seal import GroupOffset
    from ...domain.writing.transaction import TransactionDescription, TransactionState

_COLUMNS: Final = {"key", "value", "headers"}


@final
class MemoryRecordWriter(RecordWriter):
    """Writes to a ``MemoryCluster``, which acknowledges immediately."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._delivered = DeliveryStats()
        self._transaction: Transaction | None = None
        self._turn = -1

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        columns = ProducerColumns.of(batch, epoch_ms())
        topics = RowTopics.of(batch, topic)
        if topic is None:
            require_names(topics.names)
        partitions = self._partitions(batch, columns, topics).tolist()
        timestamps = columns.arrays[0].tolist()
        records = batch.select([name for name in batch.schema.names if name in _COLUMNS])
        fields = records.to_pylist() or [{}] * batch.num_rows
        for row, code in enumerate(topics.codes.tolist()):
            self._produce(topics.names[code], partitions[row], timestamps[row], fields[row])
        size = columns.payload_bytes(np.arange(batch.num_rows))
        self._delivered += DeliveryStats(batch.num_rows, size)

    def flush(self) -> DeliveryStats:
        delivered, self._delivered = self._delivered, DeliveryStats()
        self._transaction = None
        return delivered

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _partitions(
        self, batch: pa.RecordBatch, columns: ProducerColumns, topics: RowTopics
    ) -> Int32Array:
        """Return the partition of each row, as Kafka's Java client chooses it."""
        self._cluster.require(topics.names, "topic")
        known = self._cluster.topics()
        counts = np.array([known[name] for name in topics.names], np.int64)
        chosen = explicit_partitions(batch, None, topics, counts)
        require_partitions(columns, topics, counts, chosen)
        self._turn += 1
        return partitions_by_key(columns, topics, counts, chosen, self._turn % counts)

    def _produce(self, topic: str, partition: int, timestamp: int, fields: dict[str, Any]) -> None:
        self._cluster.produce(
            topic,
            _bytes(fields.get("value")),
            key=_bytes(fields.get("key")),
            partition=partition,
            headers=tuple((pair["key"], pair["value"]) for pair in fields.get("headers") or ()),
            timestamp=timestamp,
            transaction=self._transaction and self._cluster.number_of(self._transaction),
        )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@final
class MemoryTransactions(Transactions):
    """Begins, describes and ends transactions of a ``MemoryCluster``."""

    def __init__(self, cluster: MemoryCluster, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    def begin(self, transactional_id: str) -> Transaction:
        return self._cluster.open_transaction(transactional_id, self._timeout_ms)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        found = {name: self._cluster.describe_transaction(name) for name in transactional_ids}
        return {name: described for name, described in found.items() if described is not None}

    def find(self, prefix: str, state: TransactionState) -> Mapping[str, TransactionDescription]:
        return self._cluster.find_transactions(prefix, state)

    def commit(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=True)

    def abort(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=False)

    def committed(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        is_stable: bool = True,  # noqa: ARG002  # open transactions change nothing
    ) -> Mapping[TopicPartition, GroupOffset]:
        found = self._cluster.group_offsets(group_id)
        return {partition: found[partition] for partition in partitions if partition in found}

    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        offsets = {partition: offset.offset}
        self._cluster.commit_and_begin(transaction, group_id, offsets, offset.metadata)

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""
