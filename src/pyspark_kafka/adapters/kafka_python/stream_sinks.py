"""Sinks of continuous queries, over kafka-python's connections."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from kafka.protocol.metadata import CoordinatorType

from ...domain.errors import BrokerUnreachableError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.security.rights import offset_transaction_rights, transaction_rights
from ...domain.writing.batch import AddPartitionsToTxn
from ...domain.writing.transaction_cycle import (
    AddOffsetsToTxn,
    EndTxn,
    TransactionCycle,
    TransactionRequest,
    TxnOffsetCommit,
    WriteRecords,
)
from ..call_deadline import MAX_ATTEMPT_S
from ..partitioning.topic_rows import require_topic
from ..stream_sinks import StreamSink, later
from .connections import EncodedRequest, receive_ready
from .coordinator import CoordinatorClient
from .produce_client import ProducerFactory
from .rows import Rows
from .transactions import (
    TransactionRequests,
    add_offsets_request,
    add_partitions_request,
    commit_offsets_request,
    end_request,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.sink import SinkOptions
    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.transaction import Transaction
    from ...ports.continuous import PolledRecords
    from .connections import Awaited

MAX_TIMEOUT_MS: Final = 60_000
"""The longest time-out of a transaction, which is Java's default: each takes milliseconds, and an
abandoned one keeps readers of committed records waiting."""

_MAX_REPEATED: Final = 16
"""The requests that are kept encoded."""


@final
class AtLeastOnceSink(StreamSink):
    """Writes as one producer; its settings choose idempotence."""

    def __init__(self, options: SinkOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        super().__init__()
        self._topic = options.topic
        self._factory = ProducerFactory(options)
        self._client = self._factory.new_client(self._acknowledge)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        with self._mapped_errors():
            if self._topic is not None:
                self._client.connect(self._topic)
            while self._tracker.awaits(offsets):
                receive_ready(list(self.awaited()), self.send())
        return super().assign(offsets)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            groups = partitioned(outputs, self._topic, self._factory)
            count = sum(len(rows) for _, rows in groups)
            output = self._tracker.add(polled.partition, polled.next_offset, count)
            for partition, rows in groups:
                self._client.append(partition, replace(rows, output=output))
            self._client.send_without_waiting()

    def send(self) -> float:
        with self._mapped_errors():
            return self._client.send_without_waiting()

    def awaited(self) -> Iterable[Awaited]:
        return self._client.awaited()

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._factory.close)
            closing.callback(self._client.close)

    def _mapped_errors(self) -> AbstractContextManager[None]:
        return self._factory.errors.mapped_errors("a request to produce")

    def _acknowledge(self, records: Rows) -> None:
        if records.output is not None:
            self._tracker.acknowledge(records.output, len(records))


def partitioned(
    outputs: Sequence[pa.RecordBatch], topic: str | None, factory: ProducerFactory
) -> list[tuple[TopicPartition, Rows]]:
    """Return the rows of outputs by partition; raises as ``RowPartitioner.partition``."""
    for batch in outputs:
        require_topic(batch, topic)
    groups = [group for batch in outputs for group in factory.partitioner.partition(batch, topic)]
    factory.partitioner.change_sticky_partitions()
    return groups


@final
class _TransactionalWriter:
    """Writes the outputs of one input partition, one transaction after the other."""

    def __init__(
        self,
        partition: TopicPartition,
        transaction: Transaction,
        group_id: str,
        factory: ProducerFactory,
        requests: TransactionRequests,
    ) -> None:
        self._partition = partition
        self._transaction = transaction
        self._group_id = group_id
        self._factory = factory
        errors = factory.errors
        self.cycle: TransactionCycle[Rows] = TransactionCycle(
            transaction,
            factory.config["retry_backoff_ms"] / 1_000,
            errors.timeout_ms / 1_000,
            errors.bootstrap_servers,
        )
        self._producer = factory.new_client()
        self._producer.join_transaction(transaction)
        self._written: WriteRecords[Rows] | None = None
        # Most transactions have the same requests, but outputs may always go to new partitions.
        self._encoded = lru_cache(maxsize=_MAX_REPEATED)(self._encode)
        self._coordinator, self._group = (
            CoordinatorClient(key, kind, factory, requests, self.cycle, self._rights)
            for key, kind in (
                (transaction.transactional_id, CoordinatorType.TRANSACTION),
                (group_id, CoordinatorType.GROUP),
            )
        )

    @property
    def is_settled(self) -> bool:
        """Whether all is committed."""
        return self.cycle.is_settled

    @property
    def transactional_id(self) -> str:
        """The id of its transactions."""
        return self._transaction.transactional_id

    def connect(self, topic: str | None) -> None:
        """Connect before there are records, as far as that works."""
        self._coordinator.connect()
        self._group.connect()
        if topic is not None:
            self._producer.connect(topic)

    def send(self) -> float:
        """Send as much as possible, and return for how many seconds the caller may wait."""
        if self.cycle.is_settled:
            return math.inf
        self._coordinator.check_time()
        self._group.check_time()
        now = time.monotonic()
        while requests := self.cycle.next_requests(now):
            for request in requests:
                self._perform(request)
        wait_s = self._producer.send_without_waiting()
        if self._written is not None and self._producer.is_settled:
            written, self._written = self._written, None
            self.cycle.succeeded(written, now)
            return self.send()
        return min(wait_s, self.cycle.seconds_to_retry(now))

    def awaited(self) -> Iterable[Awaited]:
        """Return connections with requests in flight, each with its receiving function."""
        if self.cycle.is_settled:
            return ()
        return (
            *self._coordinator.awaited(),
            *self._group.awaited(),
            *self._producer.awaited(),
        )

    def close(self) -> None:
        """Close all connections, and abort the transaction if nothing else is in flight.

        Otherwise requests in flight might arrive after the abort. The next producer with the
        transactional id aborts the transaction, or the time-out does.
        """
        with ExitStack() as closing:
            closing.callback(self._group.close)
            closing.callback(self._coordinator.close)
            closing.callback(self._producer.close)
            if self.cycle.is_quiet:
                self._coordinator.abort(self._transaction)

    def _rights(self, request: TransactionRequest[Rows]) -> Collection[Right]:
        match request:
            case AddPartitionsToTxn(transaction, partitions):
                return transaction_rights(transaction.transactional_id, partitions)
            case _:
                return offset_transaction_rights(
                    [self.transactional_id], self._group_id, [self._partition]
                )

    def _perform(self, request: TransactionRequest[Rows]) -> None:
        match request:
            case WriteRecords(batches):
                self._produce(request, batches)
            case TxnOffsetCommit():
                self._group.send(request, self._encoded(request))
            case _:
                self._coordinator.send(request, self._encoded(request))

    def _encode(
        self, request: AddPartitionsToTxn | AddOffsetsToTxn | TxnOffsetCommit | EndTxn
    ) -> EncodedRequest:
        group_id, partition = self._group_id, self._partition
        match request:
            case AddPartitionsToTxn(transaction, partitions):
                return EncodedRequest(add_partitions_request(transaction, partitions))
            case AddOffsetsToTxn(transaction):
                return EncodedRequest(add_offsets_request(transaction, group_id))
            case TxnOffsetCommit(transaction, next_offset):
                sent = commit_offsets_request(transaction, group_id, partition, next_offset)
                return EncodedRequest(sent)
            case EndTxn(transaction):
                return EncodedRequest(end_request(transaction, commit=True))

    def _produce(
        self, request: WriteRecords[Rows], batches: Iterable[tuple[TopicPartition, Rows]]
    ) -> None:
        self._producer.partitions_added(partition for partition, _ in batches)
        for partition, rows in batches:
            self._producer.append(partition, rows)
        self._written = request


@final
class ExactlyOnceSink(StreamSink):
    """Commits outputs and the offsets of their input together, by a writer for each partition."""

    def __init__(self, options: SinkOptions, continuous: ContinuousSettings) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        super().__init__()
        self._settings = continuous
        self._writers: dict[TopicPartition, _TransactionalWriter] = {}
        self._revoked: set[TopicPartition] = set()
        self._topic = options.topic
        self._timeout_ms = min(options.producer.transaction_timeout_ms, MAX_TIMEOUT_MS)
        self._max_waiting_bytes = options.producer.buffer_memory // 2
        self._factory = ProducerFactory(options)
        self._requests = TransactionRequests(self._factory.metadata, self._factory.errors)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        again = offsets.restrict(self._writers.keys() - self._revoked)
        self._await_end(offsets.keys())
        self._close_writers(offsets.keys())
        super().assign(offsets)
        committed = self._begin(offsets.keys(), offsets.keys() - again.keys())
        for partition, offset in again.items():
            self._writers[partition].cycle.append((), offset)
        return PartitionOffsets(later(offsets, committed))

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._revoked |= self._writers.keys() & set(partitions)

    @property
    def is_settled(self) -> bool:
        # The tracker does not know of offsets that `assign` commits.
        return super().is_settled and all(each.is_settled for each in self._writers.values())

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            batches = partitioned(outputs, self._topic, self._factory)
            writer = self._writers.get(polled.partition)
            if writer is None or polled.partition in self._revoked:
                # Another task may read it already.
                return
            self._tracker.add(polled.partition, polled.next_offset, 1)
            writer.cycle.append(batches, polled.next_offset)
            wait_s = writer.send()
            while writer.cycle.waiting_bytes > self._max_waiting_bytes:
                receive_ready(list(self.awaited()), wait_s)
                wait_s = self.send()

    def send(self) -> float:
        with self._mapped_errors(), self._factory.errors.one_deadline(MAX_ATTEMPT_S):
            wait_s = min((each.send() for each in self._writers.values()), default=math.inf)
        for partition, writer in self._writers.items():
            committed = writer.cycle.take_committed()
            if committed is not None:
                self._tracker.acknowledge_until(partition, committed)
        self._close_writers([each for each in self._revoked if self._writers[each].is_settled])
        return wait_s

    def awaited(self) -> Iterable[Awaited]:
        return [awaited for writer in self._writers.values() for awaited in writer.awaited()]

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._factory.close)
            closing.callback(self._close_writers, list(self._writers))

    def _close_writers(self, partitions: Collection[TopicPartition]) -> None:
        with ExitStack() as closing:
            for partition in partitions:
                self._revoked.discard(partition)
                writer = self._writers.pop(partition, None)
                if writer is not None:
                    closing.callback(writer.close)

    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until earlier outputs of partitions are committed; some partitions are new."""
        errors = self._factory.errors
        with self._mapped_errors(), errors.one_deadline() as deadline:
            while unsettled := [
                each
                for each in partitions
                if each in self._writers and not self._writers[each].is_settled
            ]:
                if deadline.has_passed:
                    reason = f"the transaction of {unsettled[0]} has not ended"
                    raise BrokerUnreachableError(
                        errors.bootstrap_servers, errors.timeout_ms / 1_000, reason
                    )
                wait_s = min(self.send(), deadline.remaining)
                receive_ready(list(self.awaited()), wait_s)

    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Begin writers, which fence earlier ones; then return the group's offsets of ``new``."""
        group_id = self._settings.group_id
        names = {
            partition: self._settings.transactional_id(partition.topic, partition.partition)
            for partition in partitions
        }
        rights = offset_transaction_rights(names.values(), group_id, partitions)
        errors = self._factory.errors
        with errors.one_call("a request to begin a transaction", *rights):
            for partition, name in names.items():
                transaction = self._requests.begin(name, self._timeout_ms)
                self._writers[partition] = _TransactionalWriter(
                    partition, transaction, group_id, self._factory, self._requests
                )
            found = self._requests.committed_offsets(group_id, partitions)
            # Does not wait for transactions of other tasks, which may always begin new ones.
            others = self._requests.committed_offsets(group_id, None, is_stable=False)
            self._settings.require_unsealed([*others.values(), *found.values()])
            with errors.one_deadline(MAX_ATTEMPT_S):
                for partition in partitions:
                    self._writers[partition].connect(self._topic)
        return {partition: found[partition].offset for partition in new if partition in found}

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            # The rights are made only here: with many partitions, that takes longer than a request.
            ids = [writer.transactional_id for writer in self._writers.values()]
            rights = offset_transaction_rights(ids, self._settings.group_id, self._writers)
            with self._factory.errors.mapped_errors("a request of a transaction", *rights):
                raise
