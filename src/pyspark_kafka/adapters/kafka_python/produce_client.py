"""Produce requests to the leaders of partitions, as the producer's rules ask for them.

The thread that calls does everything: requests are in flight while the next rows are encoded.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, final

from kafka import errors as kafka_errors

from ...domain.errors import PysparkKafkaError, UnknownTopicError
from ...domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    topic_right,
    transaction_rights,
)
from ...domain.topic_partition import TopicPartition
from ...domain.writing.batch import (
    AddPartitionsToTxn,
    Encode,
    FindLeaders,
    InitProducerId,
    Produce,
    ProducerIdAndEpoch,
    Receive,
    Request,
    Sleep,
)
from ...domain.writing.sender import Sender
from ..call_deadline import MAX_ATTEMPT_S, Attempts
from ..kafka_format.batch_headers import HEADER_BYTES
from ..kafka_format.compression import Codec, Compressor
from ..kafka_format.record_encoder import RecordEncoder
from .cluster_metadata import ClusterMetadata
from .connections import ProduceConnection, receive_ready
from .failures import RETRIABLE_ERRORS, failure_of, reason_of
from .rows import BatchPartitioner, Rows
from .settings import client_settings
from .transactions import TransactionRequests
from .wire import ProduceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from ...domain.options.sink import SinkOptions
    from ...domain.writing.batch import ProducerBatch
    from ...domain.writing.transaction import DeliveryStats, Transaction
    from .connections import Awaited, Opened


@final
class ProduceClient:
    """Performs the actions that ``Sender`` requests; used by one thread, until it has raised."""

    def __init__(
        self, factory: ProducerFactory, on_delivery: Callable[[Rows], None] | None = None
    ) -> None:
        """Connect to nothing yet; share the cluster's metadata with other producers."""
        errors, producer, config = factory.errors, factory.producer, factory.config
        self._settings = factory.settings
        self._metadata = factory.metadata
        self._errors = errors
        self._requests = TransactionRequests(factory.metadata, errors)
        self._encoder = factory.encoder
        self._timeout_ms = min(config["request_timeout_ms"], producer.delivery_timeout_ms)
        self._delivery_timeout_s = producer.delivery_timeout_ms / 1_000
        self._retry_s: float = config["retry_backoff_ms"] / 1_000
        self._attempts = Attempts()
        self._producer_failing_since = math.inf
        self._connections: dict[int, ProduceConnection] = {}
        self._sender: Sender[Rows] = Sender(
            producer,
            self._retry_s,
            errors.bootstrap_servers,
            on_delivery,
            principal=errors.principal,
        )

    def join_transaction(self, transaction: Transaction | None) -> None:
        """Write into a transaction from now on, or into none; flush before."""
        self._sender.join_transaction(transaction)

    def partitions_added(self, partitions: Iterable[TopicPartition]) -> None:
        """Note partitions that the caller has added to the transaction itself."""
        self._sender.partitions_added(partitions)

    def append(self, partition: TopicPartition, rows: Rows) -> None:
        """Take rows for a partition; waits while too much is unsettled."""
        for records in self._batches(rows, self._sender.max_batch_bytes(partition)):
            while not self._sender.has_room(records.payload_bytes):
                self._perform_next()
            self._sender.append(partition, records)

    def send(self) -> None:
        """Send all that is pending; some of it may still be in flight afterwards."""
        while self._sender.has_pending:
            self._perform_next()

    def flush(self) -> DeliveryStats:
        """Wait until all is acknowledged, and return the counts since the last call."""
        while not self._sender.is_settled:
            self._perform_next()
        return self._sender.take_stats()

    def connect(self, topic: str) -> None:
        """Connect to a topic's leaders before there are records, as far as that works."""
        with suppress(*RETRIABLE_ERRORS), self._errors.one_deadline(MAX_ATTEMPT_S):
            for number in range(self._metadata.partition_count(topic)):
                node = self._metadata.leader(TopicPartition(topic, number))
                if node is not None:
                    self._is_connected(node)

    @property
    def is_settled(self) -> bool:
        """Whether all is acknowledged."""
        return self._sender.is_settled

    def send_without_waiting(self) -> float:
        """Send as much as possible, and return for how many seconds the caller may wait.

        Meanwhile the caller waits for ``awaited`` connections, and calls their functions.
        """
        self._disconnect_overdue()
        while self._sender.has_pending:
            now = time.monotonic()
            match request := self._sender.next_request(now):
                case Receive() | Sleep():
                    return self._sender.seconds_to_retry(now)
                case InitProducerId():
                    if not self._can_begin_producer():
                        return self._retry_s
                case FindLeaders():
                    with self._attempts.next(self._errors.one_deadline, FindLeaders):
                        self._perform(request)
                case _:
                    self._perform(request)
        return math.inf

    def _can_begin_producer(self) -> bool:
        """Ask for a producer id for a short time; return false if another attempt may get one."""
        self._producer_failing_since = min(self._producer_failing_since, time.monotonic())
        try:
            with self._attempts.next(self._errors.one_deadline, InitProducerId):
                self._begin_producer()
        except PysparkKafkaError as error:
            failing_s = time.monotonic() - self._producer_failing_since
            is_over = failing_s > self._errors.timeout_ms / 1_000
            if is_over or not isinstance(error.__cause__, RETRIABLE_ERRORS):
                raise
            return False
        self._producer_failing_since = math.inf
        return True

    def awaited(self) -> Sequence[Awaited]:
        """Return connections with requests in flight, each with its receiving function."""
        return [
            (connection, partial(self._receive, node))
            for node, connection in self._connections.items()
            if self._sender.in_flight(node)
        ]

    def close(self) -> None:
        """Close all connections; requests in flight may arrive or not."""
        for node in list(self._connections):
            self._connections.pop(node).close()

    def _batches(self, rows: Rows, max_bytes: int) -> Sequence[Rows]:
        """Return rows as batches of ``max_bytes`` or less; one record may be larger."""
        if HEADER_BYTES + rows.max_bytes <= max_bytes:
            return (rows,)
        chunks = self._encoder.chunks(rows.columns, rows.rows, max_bytes)
        return [Rows.of(rows.columns, chunk, rows.output) for chunk in chunks]

    def _perform_next(self) -> None:
        self._perform(self._sender.next_request(time.monotonic()))

    def _perform(self, request: Request[Rows]) -> None:
        match request:
            case InitProducerId():
                self._begin_producer()
            case Encode(batch, producer):
                records = batch.records
                encoded = self._encoder.encode(
                    records.columns, records.rows, producer, batch.sequence
                )
                self._sender.encoded(batch, encoded)
            case FindLeaders(partitions, stale):
                self._find_leaders(partitions, stale)
            case AddPartitionsToTxn(transaction, partitions):
                self._add_partitions(transaction, partitions)
            case Produce(node, batches, transactional_id):
                self._produce(node, batches, transactional_id)
            case Receive():
                self._disconnect_overdue()
                if awaited := self.awaited():
                    receive_ready(awaited, math.inf)
            case Sleep(seconds):
                time.sleep(seconds)

    def _begin_producer(self) -> None:
        topics = sorted(self._metadata.in_use.names)
        rights = [topic_right(Operation.WRITE, topic) for topic in topics]
        with self._errors.mapped_errors("a request for a producer id", *rights, IDEMPOTENT_WRITE):
            producer = ProducerIdAndEpoch(*self._requests.new_producer())
        self._sender.producer_id_received(producer)

    def _add_partitions(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> None:
        rights = transaction_rights(transaction.transactional_id, partitions)
        with self._errors.mapped_errors("a request to add partitions", *rights):
            try:
                self._requests.add_partitions(transaction, partitions)
            except kafka_errors.UnknownTopicOrPartitionError:
                # The request was repeated for long enough for a new topic to become known.
                with suppress(*RETRIABLE_ERRORS):
                    self._require(partitions)
                raise

    def _require(self, partitions: Collection[TopicPartition]) -> None:
        """Check that partitions exist, by new metadata.

        :raises UnknownTopicError: with the topics that do not exist.
        :raises UnknownPartitionError: for a partition that its topic does not have.
        """
        self._metadata.refresh()
        counts = {each.topic: self._metadata.partition_count(each.topic) for each in partitions}
        if missing := sorted(topic for topic, count in counts.items() if not count):
            raise UnknownTopicError(missing, "topic", self._errors.bootstrap_servers)
        for partition in partitions:
            if partition.partition >= counts[partition.topic]:
                self._sender.partition_not_found(partition, counts[partition.topic])

    def _find_leaders(
        self, partitions: Collection[TopicPartition], stale: Collection[TopicPartition]
    ) -> None:
        for partition in stale:
            self._metadata.invalidate(partition)
        begun = time.monotonic()
        leaders: dict[TopicPartition, int] = {}
        unreachable: dict[int, Exception] = {}
        with self._errors.one_deadline(self._delivery_timeout_s):
            for partition in partitions:
                try:
                    node = self._connected_leader(partition, unreachable)
                except RETRIABLE_ERRORS as error:
                    failure, now = failure_of(type(error), reason_of(error)), time.monotonic()
                    self._sender.leader_not_found(partition, failure, now, since=begun)
                else:
                    if node is not None:
                        leaders[partition] = node
        self._sender.leaders_found(leaders, time.monotonic())

    def _connected_leader(
        self, partition: TopicPartition, unreachable: dict[int, Exception]
    ) -> int | None:
        """Return a leader that is connected; ``None`` while it is not to be connected to.

        Brokers that cannot be connected to are added to ``unreachable``, and not tried for the next
        partition.
        """
        node = self._metadata.leader(partition)
        if node is None:
            raise kafka_errors.LeaderNotAvailableError
        if node in unreachable:
            raise unreachable[node]
        try:
            return node if self._is_connected(node) else None
        except RETRIABLE_ERRORS as error:
            unreachable[node] = error
            raise

    def _is_connected(self, node: int) -> bool:
        """Connect to a broker, unless an expired connection still has requests in flight."""
        kept = self._connections.get(node)
        if kept is not None and kept.is_stale:
            if self._sender.in_flight(node):
                return False
            self._connections.pop(node).close()
        if node not in self._connections:
            self._connections[node] = self._metadata.connect(node, self._new_connection)
        return True

    def _new_connection(self, opened: Opened) -> ProduceConnection:
        return ProduceConnection(opened, self._settings, self._timeout_ms)

    def _produce(
        self, node: int, batches: Sequence[ProducerBatch[Rows]], transactional_id: str | None
    ) -> None:
        begun = time.monotonic()
        try:
            self._connections[node].send(
                {batch.partition: batch.encoded for batch in batches}, transactional_id
            )
        except OSError as error:
            self._disconnect(node, error, begun)
        else:
            self._sender.sent(node)

    def _disconnect_overdue(self) -> None:
        for node, connection in list(self._connections.items()):
            if connection.is_overdue:
                self._disconnect(node, TimeoutError("no response to a produce request"))

    def _receive(self, node: int) -> bool:
        """Receive available bytes; return whether a response is complete or the connection lost."""
        try:
            response = self._connections[node].receive()
        except RETRIABLE_ERRORS as error:
            self._disconnect(node, error)
            return True
        if response is not None:
            self._sender.received(node, response, time.monotonic())
        return response is not None

    def _disconnect(self, node: int, error: Exception, since: float | None = None) -> None:
        self._connections.pop(node).close()
        failure, now = failure_of(type(error), reason_of(error)), time.monotonic()
        self._sender.disconnected(node, failure, now, since=since)


@final
class ProducerFactory:
    """Makes producers that share the cluster's metadata, and are used by one thread."""

    def __init__(self, options: SinkOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        self.config, self.errors = client_settings(options.java)
        self.metadata = ClusterMetadata(self.config, self.errors, for_writing=True)
        self.partitioner = BatchPartitioner(self.metadata, self.errors, options.producer)
        codec = Codec[options.producer.compression.upper()]
        self.producer = options.producer
        self.encoder = RecordEncoder(Compressor(codec, options.producer.compression_level))
        self.settings = ProduceSettings(
            client_id=self.config["client_id"],
            acks=options.producer.acks,
            timeout_ms=self.config["request_timeout_ms"],
            needs_zstd=codec is Codec.ZSTD,
        )

    def new_client(self, on_delivery: Callable[[Rows], None] | None = None) -> ProduceClient:
        """Return a new producer, which is not connected yet."""
        return ProduceClient(self, on_delivery)

    def close(self) -> None:
        """Close the connection for metadata."""
        self.metadata.close()
