"""Bringing record batches to the leaders of their partitions, each once and in order.

It does what Java's ``Sender`` and its ``TransactionManager`` do for an idempotent producer, in the
thread that calls: several requests to a broker are under way while the next rows are encoded.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from kafka import errors as kafka_errors

from ...domain.delivered import DeliveryStats
from ...domain.errors import (
    BrokerUnreachableError,
    ProducerFencedError,
    RecordDeliveryError,
    RecordTooLargeError,
)
from ..kafka_format.record_encoder import Producer, next_sequence
from .outgoing_batch import Line, OutgoingBatch
from .produce_connection import ProduceConnection
from .transaction_requests import TransactionRequests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from ...domain.producer_settings import ProducerSettings
    from ...domain.topic_partition import TopicPartition
    from ...domain.transaction import Transaction
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kafka_format.record_encoder import RecordEncoder
    from .failures import Cluster
    from .leaders import Leaders
    from .produce_wire import Outcome, ProduceSettings

    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    KafkaErrorType: TypeAlias = type[kafka_errors.KafkaError]

LOST: Final = (
    OSError,
    kafka_errors.RetriableError,
    kafka_errors.KafkaProtocolError,
    kafka_errors.UnknownBrokerIdError,
)
"""What a connection that is gone, or a change of leaders, looks like."""

_TOO_LARGE: Final = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)
TOO_LARGE_FOR_THE_BROKER: Final = (
    "The request included a message larger than the max message size the server will accept."
)
"""The words of Java's ``Errors.MESSAGE_TOO_LARGE``."""

_DELIVERED: Final = (kafka_errors.NoError, kafka_errors.DuplicateSequenceNumberError)
_FENCED: Final = (kafka_errors.ProducerFencedError, kafka_errors.InvalidProducerEpochError)
_NUMBERS_LOST: Final = (
    kafka_errors.OutOfOrderSequenceNumberError,
    kafka_errors.UnknownProducerIdError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.InvalidProducerIdMappingError,
)
"""The broker does not know, or not any more, with which sequence number a partition goes on."""


@final
class RecordSender:
    """Batches on their way; used by one thread, and done with after it has raised."""

    def __init__(
        self,
        config: Mapping[str, Any],
        cluster: Cluster,
        settings: ProduceSettings,
        producer: ProducerSettings,
        leaders: Leaders,
        encoder: RecordEncoder,
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, whole."""
        self._cluster = cluster
        self._settings = settings
        self._producer = producer
        self._leaders = leaders
        self._requests = TransactionRequests(leaders, cluster)
        self._encoder = encoder
        self._pause_s = config["retry_backoff_ms"] / 1_000
        self._timeout_ms = config["request_timeout_ms"]
        self._connections: dict[int, ProduceConnection] = {}
        self._lines: dict[TopicPartition, Line] = {}
        self._waiting: dict[TopicPartition, Line] = {}
        self._identity: Producer | None = None if producer.is_idempotent else Producer()
        self._transaction: Transaction | None = None
        self._enlisted: set[TopicPartition] = set()
        self._numbers_are_lost = False
        self._memory = 0
        self._delivered = DeliveryStats()

    def join_transaction(self, transaction: Transaction | None) -> None:
        """Write into a transaction from now on, or into none; nothing may be under way."""
        if transaction is None and self._transaction is None:
            return
        self._transaction = transaction
        self._enlisted.clear()
        # An epoch's sequence numbers begin with 0.
        self._lines.clear()
        self._identity = None
        if transaction is not None:
            self._identity = Producer(
                transaction.producer_id, transaction.epoch, is_transactional=True
            )

    def put(self, partition: TopicPartition, columns: ProducerColumns, rows: Longs) -> None:
        """Take rows for a partition; waits while too much is under way."""
        line = self._lines.setdefault(partition, Line())
        for chunk in self._encoder.chunks(columns, rows, self._most_bytes(line)):
            self._make_room(2 * columns.payload_bytes(chunk))
            # Behind the waiting, during which numbers may have begun anew.
            batch = self._encoded(partition, columns, chunk, line.next_sequence)
            line.next_sequence = next_sequence(line.next_sequence, len(chunk))
            line.waiting.append(batch)
            self._waiting[partition] = line
            self._memory += batch.memory

    def send(self) -> None:
        """Send all that waits; some of it may still be in flight afterwards."""
        while self._waiting:
            if not self._send_some():
                self._take_some_answer()

    def drain(self) -> DeliveryStats:
        """Wait until all is acknowledged, and give what was since the last call."""
        self.send()
        while self._in_flight():
            self._take_some_answer()
            self.send()
        delivered, self._delivered = self._delivered, DeliveryStats()
        return delivered

    def close(self) -> None:
        """Hang up on every broker; what is under way may arrive or not."""
        for node in list(self._connections):
            self._connections.pop(node).close()

    def _most_bytes(self, line: Line) -> int:
        producer = self._producer
        most = min(producer.batch_size, producer.max_request_size, producer.buffer_memory)
        return max(1, min(most, line.most_bytes or most))

    def _encoded(
        self, partition: TopicPartition, columns: ProducerColumns, rows: Longs, sequence: int
    ) -> OutgoingBatch:
        if self._identity is None:
            self._identity = Producer(*self._requests.new_producer())
        encoded = self._encoder.encode(columns, rows, self._identity, sequence)
        return OutgoingBatch(
            partition, columns, rows, sequence, encoded, columns.payload_bytes(rows)
        )

    def _make_room(self, wanted: int) -> None:
        while self._memory and self._memory + wanted > self._producer.buffer_memory:
            self.send()
            self._take_some_answer()

    def _in_flight(self) -> bool:
        return any(connection.in_flight for connection in self._connections.values())

    # Sending

    def _send_some(self) -> bool:
        """Send a request to each broker that may have one, and say whether there was any."""
        if self._numbers_are_lost:
            if self._in_flight():
                return False
            self._number_anew()
        by_node = self._next_requests()
        self._enlist_partitions(
            batch.partition for batches in by_node.values() for batch in batches
        )
        for node, batches in by_node.items():
            self._send_to(node, batches)
        return bool(by_node)

    def _next_requests(self) -> dict[int, list[OutgoingBatch]]:
        now = time.monotonic()
        by_node: dict[int, list[OutgoingBatch]] = {}
        sizes: dict[int, int] = {}
        for partition, line in list(self._waiting.items()):
            if not line.is_ready or now < line.not_before:
                continue
            node = self._ready_leader(partition, line)
            if node is None:
                continue
            batch = line.waiting[0]
            size = sizes.get(node, 0) + len(batch.encoded)
            if node not in by_node or size <= self._producer.max_request_size:
                by_node.setdefault(node, []).append(batch)
                sizes[node] = size
        return by_node

    def _ready_leader(self, partition: TopicPartition, line: Line) -> int | None:
        """Give the leader if another request may go to it; a failure is the line's."""
        try:
            node = self._leaders.node(partition)
            if node is None:
                raise kafka_errors.LeaderNotAvailableError
            connection = self._connection(node)
        except LOST as error:
            self._leaders.forget(partition)
            self._count_failure(line, type(error), str(error))
            return None
        # What is in flight to a former leader has to come back first, or the order would be lost.
        is_elsewhere = line.in_flight and line.node != node
        is_full = len(connection.in_flight) >= self._producer.max_in_flight
        return None if is_elsewhere or is_full or connection.is_expired else node

    def _connection(self, node: int) -> ProduceConnection:
        kept = self._connections.get(node)
        if kept is not None and kept.is_expired and not kept.in_flight:
            self._connections.pop(node).close()
        if node not in self._connections:
            connected = self._leaders.connect(node)
            self._connections[node] = ProduceConnection(connected, self._settings, self._timeout_ms)
        return self._connections[node]

    def _enlist_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        if self._transaction is None:
            return
        new = {partition for partition in partitions if partition not in self._enlisted}
        if new:
            self._requests.add_partitions(self._transaction, new)
            self._enlisted |= new

    def _send_to(self, node: int, batches: Sequence[OutgoingBatch]) -> None:
        for batch in batches:
            line = self._lines[batch.partition]
            line.waiting.popleft()
            line.in_flight += 1
            line.node = node
            if not line.waiting:
                del self._waiting[batch.partition]
        connection = self._connections[node]
        transactional_id = self._transaction and self._transaction.transactional_id
        try:
            connection.send(batches, transactional_id)
        except OSError as error:
            self._lose(node, error)
            return
        if not self._producer.acks:
            connection.in_flight.clear()
            for batch in batches:
                self._lines[batch.partition].in_flight -= 1
                self._acknowledge(batch)

    # Answers

    def _take_some_answer(self) -> None:
        """Take the answer to one request to each broker that owes one, or wait to try again."""
        owing = [node for node, one in self._connections.items() if one.in_flight]
        for node in owing:
            self._take_answer(node)
        if not owing:
            now = time.monotonic()
            soonest = min((line.not_before for line in self._waiting.values()), default=now)
            time.sleep(max(0.0, min(self._pause_s, soonest - now)))

    def _take_answer(self, node: int) -> None:
        connection = self._connections[node]
        try:
            answer = connection.receive()
        except LOST as error:
            self._lose(node, error)
            return
        unanswered = {batch.partition: batch for batch in connection.in_flight.popleft().batches}
        for outcome in answer.outcomes:
            self._settle(unanswered.pop(outcome.partition), outcome)
        for batch in unanswered.values():
            self._come_back(batch, kafka_errors.KafkaProtocolError, "the answer leaves it out")

    def _lose(self, node: int, error: Exception) -> None:
        """Take back all that was in flight to a broker, in order."""
        connection = self._connections.pop(node)
        connection.close()
        for request in connection.in_flight:
            for batch in request.batches:
                self._leaders.forget(batch.partition)
                self._come_back(batch, type(error), str(error))

    def _settle(self, batch: OutgoingBatch, outcome: Outcome) -> None:
        line, error = self._lines[batch.partition], outcome.error
        if error in _DELIVERED:
            line.in_flight -= 1
            line.succeed()
            line.settle()
            self._acknowledge(batch)
        elif error in _FENCED and self._transaction is not None:
            raise ProducerFencedError(self._transaction.transactional_id)
        elif error in _TOO_LARGE:
            self._split(batch)
        elif error in _NUMBERS_LOST:
            self._lose_numbers(batch, outcome)
        elif error.retriable or error.invalid_metadata:
            self._leaders.forget(batch.partition)
            self._come_back(batch, error, outcome.message)
        else:
            raise self._failure(batch, outcome.message or _told(error))

    def _acknowledge(self, batch: OutgoingBatch) -> None:
        self._memory -= batch.memory
        self._delivered += DeliveryStats(len(batch.rows), batch.payload_bytes)

    def _come_back(self, batch: OutgoingBatch, error: KafkaErrorType | type, told: str) -> None:
        line = self._lines[batch.partition]
        line.in_flight -= 1
        is_first = not line.returned
        line.returned.append(batch)
        self._waiting[batch.partition] = line
        if is_first:
            self._count_failure(line, error, told)
        line.settle()

    def _count_failure(self, line: Line, error: type, told: str) -> None:
        """Let a partition wait, or give up on it."""
        failing_s = line.fail(time.monotonic(), self._pause_s)
        timeout_s = self._producer.delivery_timeout_ms / 1_000
        if failing_s < timeout_s and line.failures <= self._producer.retries:
            return
        first = (line.returned or line.waiting)[0]
        if issubclass(error, (OSError, kafka_errors.KafkaConnectionError)):
            reason = _told(error, told)
            raise BrokerUnreachableError(self._cluster.bootstrap_servers, failing_s, reason)
        raise self._failure(
            first, f"{told or _told(error)}, for {failing_s:.0f} s and {line.failures} attempts"
        )

    def _split(self, batch: OutgoingBatch) -> None:
        """Make two batches of one that is too large for its topic.

        What is in flight behind it comes back, too, as its sequence numbers are not the next.
        """
        rows = batch.rows
        if len(rows) == 1:
            raise RecordTooLargeError(*self._first_record(batch), TOO_LARGE_FOR_THE_BROKER)
        line = self._lines[batch.partition]
        half = len(rows) // 2
        line.most_bytes = max(1, len(batch.encoded) // 2)
        line.in_flight -= 1
        self._memory -= batch.memory
        for part, sequence in (
            (rows[:half], batch.sequence),
            (rows[half:], next_sequence(batch.sequence, half)),
        ):
            smaller = self._encoded(batch.partition, batch.columns, part, sequence)
            self._memory += smaller.memory
            line.returned.append(smaller)
        self._waiting[batch.partition] = line
        line.settle()

    def _lose_numbers(self, batch: OutgoingBatch, outcome: Outcome) -> None:
        is_behind_another = bool(self._lines[batch.partition].returned)
        if not is_behind_another:
            if self._transaction is not None or self._identity == Producer():
                raise self._failure(batch, outcome.message or _told(outcome.error))
            self._numbers_are_lost = True
        self._come_back(batch, outcome.error, outcome.message)

    def _number_anew(self) -> None:
        """Go on as a new producer, as Java's does by its next epoch, with numbers from 0 on."""
        self._numbers_are_lost = False
        self._identity = None
        for partition, line in self._lines.items():
            line.next_sequence = 0
            for place, batch in enumerate(line.waiting):
                line.waiting[place] = self._encoded(
                    partition, batch.columns, batch.rows, line.next_sequence
                )
                line.next_sequence = next_sequence(line.next_sequence, len(batch.rows))

    def _failure(self, batch: OutgoingBatch, reason: str) -> RecordDeliveryError:
        return RecordDeliveryError(*self._first_record(batch), reason)

    def _first_record(self, batch: OutgoingBatch) -> tuple[str, int, int]:
        size = batch.columns.payload_bytes(batch.rows[:1])
        return batch.partition.topic, batch.partition.partition, size


def _told(error: type, text: str = "") -> str:
    """Say what an error of Kafka's, or of the system's, is."""
    description = getattr(error, "description", "") or error.__name__
    return text or str(description)
