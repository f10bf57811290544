"""When each batch is sent, sent again, split or given up.

The rules of Java's ``RecordAccumulator``, ``Sender`` and ``TransactionManager``, for a caller with
one thread: it performs what ``next_request`` returns and reports the result. Nothing here reads a
clock, waits or does I/O.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NoReturn, final

from ..errors import BrokerUnreachableError
from ..security.errors import AuthorizationError
from ..security.rights import IDEMPOTENT_WRITE, Operation, topic_right, transactional_id_right
from .batch import (
    MESSAGE_TOO_LARGE,
    AddPartitionsToTxn,
    Encode,
    Failure,
    FindLeaders,
    InitProducerId,
    PartitionQueue,
    Produce,
    ProduceError,
    ProducerBatch,
    ProducerIdAndEpoch,
    R,
    Receive,
    Request,
    Sleep,
)
from .errors import (
    InvalidTimestampError,
    ProducerFencedError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    UnknownPartitionError,
)
from .transaction import DeliveryStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..options.client_settings import ProducerSettings
    from ..security.rights import Right
    from ..topic_partition import TopicPartition
    from .transaction import Transaction

_RETRIABLE: Final = (ProduceError.RETRIABLE, ProduceError.DISCONNECTED)
_NOT_ANSWERED: Final = Failure(ProduceError.RETRIABLE, "the response leaves it out")


@final
class Sender(Generic[R]):
    """Decides what happens to batches; must not be used after it has raised.

    Times are monotonic, in seconds. The events raise, for the first record that cannot be
    delivered:

    :raises RecordDeliveryError: naming it.
    :raises BrokerUnreachableError: if brokers were not to be reached for too long.
    :raises ProducerFencedError: if another producer has the transactional id now.
    :raises AuthorizationError: if the user may not write.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        retry_backoff_s: float,
        bootstrap_servers: str,
        on_delivery: Callable[[R], None] | None = None,
        principal: str | None = None,
    ) -> None:
        """Begin without a batch; ``on_delivery`` is called with acknowledged records.

        ``principal`` is Kafka's name of the user, for errors.
        """
        self._settings = settings
        self._on_delivery = on_delivery
        self._retry_backoff_s = retry_backoff_s
        self._bootstrap_servers = bootstrap_servers
        self._principal = principal
        self._queues: dict[TopicPartition, PartitionQueue[R]] = {}
        self._pending: dict[TopicPartition, PartitionQueue[R]] = {}
        self._unencoded: dict[ProducerBatch[R], None] = {}
        self._in_flight: dict[int, deque[tuple[ProducerBatch[R], ...]]] = {}
        self._requests: deque[Request[R]] = deque()
        self._producer = _first_producer(settings)
        self._transaction: Transaction | None = None
        self._partitions_in_transaction: set[TopicPartition] = set()
        self._memory = 0
        self._stats = DeliveryStats()

    # Records of the caller

    def join_transaction(self, transaction: Transaction | None) -> None:
        """Write into a transaction from now on, or into none; nothing may be unsettled."""
        if transaction is None and self._transaction is None:
            return
        self._transaction = transaction
        self._partitions_in_transaction.clear()
        # The sequence numbers of an epoch begin with 0.
        self._queues.clear()
        self._producer = _first_producer(self._settings)
        if transaction is not None:
            self._producer = ProducerIdAndEpoch(
                transaction.producer_id, transaction.epoch, is_transactional=True
            )

    def partitions_added(self, partitions: Iterable[TopicPartition]) -> None:
        """Write to partitions that the caller has added to the transaction itself."""
        self._partitions_in_transaction.update(partitions)

    def max_batch_bytes(self, partition: TopicPartition) -> int:
        """Return how large a batch for a partition may be before it is compressed."""
        settings = self._settings
        limit = min(settings.batch_size, settings.max_request_size, settings.buffer_memory)
        queue = self._queues.get(partition)
        return max(1, min(limit, (queue and queue.max_batch_bytes) or limit))

    def has_room(self, payload_bytes: int) -> bool:
        """Return whether a batch may be appended now, or requests have to be performed before."""
        if self._unencoded:
            return False
        return not self._memory or self._memory + 2 * payload_bytes <= self._settings.buffer_memory

    def append(self, partition: TopicPartition, records: R) -> None:
        """Take the records of a batch."""
        queue = self._queues.setdefault(partition, PartitionQueue())
        batch = ProducerBatch(partition, records)
        queue.append(batch)
        self._enqueue(queue, batch)

    @property
    def has_pending(self) -> bool:
        """Whether a batch is to be sent, or to be sent again."""
        return bool(self._pending or self._requests)

    @property
    def is_settled(self) -> bool:
        """Whether every batch is acknowledged."""
        return not self._pending and not any(self._in_flight.values())

    @property
    def memory(self) -> int:
        """The bytes that unsettled batches hold."""
        return self._memory

    def in_flight(self, node: int) -> int:
        """Return how many requests to a broker are not answered yet."""
        return len(self._in_flight.get(node, ()))

    def seconds_to_retry(self, now: float) -> float:
        """Return when a partition is to be retried; infinity if none waits for that."""
        waits = (queue.retry_at - now for queue in self._pending.values() if queue.retry_at > now)
        return min(waits, default=math.inf)

    def take_stats(self) -> DeliveryStats:
        """Return what was acknowledged since the last call."""
        stats, self._stats = self._stats, DeliveryStats()
        return stats

    # The next request

    def next_request(self, now: float) -> Request[R]:
        """Return what to do next, while a batch is unsettled."""
        if self._requests:
            return self._requests.popleft()
        if self._unencoded:
            return self._encode_next()
        ready = [partition for partition, queue in self._pending.items() if queue.is_ready(now)]
        if not ready:
            return self._wait(now)
        stale = [partition for partition in ready if self._queues[partition].is_leader_stale]
        for partition in stale:
            self._queues[partition].is_leader_stale = False
        return FindLeaders(ready, stale)

    def _encode_next(self) -> Request[R]:
        batch = next(iter(self._unencoded))
        queue = self._queues[batch.partition]
        queue.producer = queue.producer or self._producer
        return Encode(batch, queue.producer) if queue.producer else InitProducerId()

    def _wait(self, now: float) -> Request[R]:
        if nodes := tuple(node for node, requests in self._in_flight.items() if requests):
            return Receive(nodes)
        soonest = min((queue.retry_at for queue in self._pending.values()), default=now)
        return Sleep(max(0.0, min(self._retry_backoff_s, soonest - now)))

    # Results of requests

    def producer_id_received(self, producer: ProducerIdAndEpoch) -> None:
        """Continue as a new producer, where there is none or its sequence numbers are lost."""
        self._producer = producer

    def encoded(self, batch: ProducerBatch[R], encoded: bytes | memoryview) -> None:
        """Take the bytes of a batch."""
        del self._unencoded[batch]
        self._memory += len(encoded) - len(batch.encoded)
        batch.encoded = encoded

    def leader_not_found(
        self, partition: TopicPartition, failure: Failure, now: float, *, since: float | None = None
    ) -> None:
        """Let a partition wait that has no leader, or one that cannot be connected to.

        ``since`` is when the search for a leader began, if that is not ``now``.
        """
        queue = self._queues[partition]
        queue.is_leader_stale = True
        self._count_failure(queue, queue.waiting[0], failure, now, since)

    def partition_not_found(self, partition: TopicPartition, count: int) -> NoReturn:
        """Raise an error for a record whose topic has only ``count`` partitions."""
        in_flight = chain.from_iterable(chain.from_iterable(self._in_flight.values()))
        batch = next(each for each in in_flight if each.partition == partition)
        reason = f"the topic's partitions are 0 to {count - 1}"
        raise UnknownPartitionError(*_first_record(batch), reason)

    def leaders_found(self, leaders: Mapping[TopicPartition, int], now: float) -> None:
        """Choose what to send to the connected leaders: at most one request each."""
        by_node: dict[int, list[ProducerBatch[R]]] = {}
        sizes: dict[int, int] = {}
        for partition, node in leaders.items():
            queue = self._queues[partition]
            size = sizes.get(node, 0) + len(queue.waiting[0].encoded)
            has_space = node not in by_node or size <= self._settings.max_request_size
            if has_space and self._may_send(queue, node):
                by_node.setdefault(node, []).append(queue.pop(node))
                sizes[node] = size
                if not queue.waiting:
                    del self._pending[partition]
        self._add_partitions(batch.partition for batches in by_node.values() for batch in batches)
        for node, batches in by_node.items():
            self._send(node, tuple(batches))
        if not by_node:
            self._requests.append(self._wait(now))

    def sent(self, node: int) -> None:
        """Settle the batches of a request that brokers do not answer."""
        if not self._settings.acks:
            for batch in self._in_flight[node].popleft():
                self._complete(batch)

    def received(
        self, node: int, responses: Mapping[TopicPartition, Failure | None], now: float
    ) -> None:
        """Take the response to the oldest request in flight to a broker."""
        for batch in self._in_flight[node].popleft():
            failure = responses.get(batch.partition, _NOT_ANSWERED)
            if failure is None or failure.error is ProduceError.DUPLICATE_SEQUENCE:
                self._complete(batch)
            else:
                self._handle(batch, failure, now)

    def disconnected(
        self, node: int, failure: Failure, now: float, *, since: float | None = None
    ) -> None:
        """Take back, in order, all that was in flight to a broker.

        ``since`` is when the failed wait began, if that is not ``now``.
        """
        for batches in self._in_flight.pop(node, ()):
            for batch in batches:
                self._reenqueue(batch, failure, now, since)

    # Sending

    def _may_send(self, queue: PartitionQueue[R], node: int) -> bool:
        # Batches in flight to a former leader have to come back first, or the order would be lost.
        is_elsewhere = queue.in_flight and queue.node != node
        return not is_elsewhere and self.in_flight(node) < self._settings.max_in_flight

    def _add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        if self._transaction is None:
            return
        new = set(partitions) - self._partitions_in_transaction
        if new:
            self._partitions_in_transaction |= new
            self._requests.append(AddPartitionsToTxn(self._transaction, new))

    def _send(self, node: int, batches: tuple[ProducerBatch[R], ...]) -> None:
        # In flight before it is sent: if the connection breaks, how much has arrived is not known.
        self._in_flight.setdefault(node, deque()).append(batches)
        transactional_id = self._transaction and self._transaction.transactional_id
        self._requests.append(Produce(node, batches, transactional_id))

    # Settling

    def _complete(self, batch: ProducerBatch[R]) -> None:
        queue = self._queues[batch.partition]
        queue.failing_since, queue.failures = None, 0
        self._land(queue)
        self._memory -= batch.memory
        self._stats += DeliveryStats(len(batch.records), batch.records.payload_bytes)
        if self._on_delivery is not None:
            self._on_delivery(batch.records)

    def _handle(self, batch: ProducerBatch[R], failure: Failure, now: float) -> None:
        match failure.error:
            case ProduceError.PRODUCER_FENCED | ProduceError.INVALID_PRODUCER_EPOCH if (
                self._transaction is not None
            ):
                raise ProducerFencedError(self._transaction.transactional_id)
            case ProduceError.MESSAGE_TOO_LARGE:
                self._split(batch)
            case ProduceError.SEQUENCE_LOST | ProduceError.INVALID_PRODUCER_EPOCH:
                self._lose_sequence(batch, failure, now)
            case ProduceError.RETRIABLE | ProduceError.DISCONNECTED:
                self._reenqueue(batch, failure, now)
            case ProduceError.TOPIC_AUTHORIZATION_FAILED:
                raise self._missing(topic_right(Operation.WRITE, batch.partition.topic))
            case ProduceError.CLUSTER_AUTHORIZATION_FAILED:
                raise self._missing(IDEMPOTENT_WRITE)
            case ProduceError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if self._transaction:
                name = self._transaction.transactional_id
                raise self._missing(transactional_id_right(Operation.WRITE, name))
            case ProduceError.INVALID_TIMESTAMP:
                raise InvalidTimestampError(*_first_record(batch), failure.reason)
            case _:
                raise RejectedRecordError(*_first_record(batch), failure.reason)

    def _missing(self, right: Right) -> AuthorizationError:
        return AuthorizationError(
            "a request to produce", [right], self._bootstrap_servers, self._principal
        )

    def _split(self, batch: ProducerBatch[R]) -> None:
        """Replace a batch that is too large for its topic by two.

        What is in flight behind it comes back, as its sequence numbers are not the next.
        """
        if len(batch.records) == 1:
            raise RecordTooLargeError(*_first_record(batch), MESSAGE_TOO_LARGE)
        queue = self._queues[batch.partition]
        queue.max_batch_bytes = max(1, len(batch.encoded) // 2)
        self._memory -= batch.memory
        halves = batch.split()
        self._enqueue(queue, *halves)
        self._land(queue, *halves)

    def _enqueue(self, queue: PartitionQueue[R], *batches: ProducerBatch[R]) -> None:
        for batch in batches:
            self._pending[batch.partition] = queue
            self._unencoded[batch] = None
            self._memory += batch.memory

    def _lose_sequence(self, batch: ProducerBatch[R], failure: Failure, now: float) -> None:
        queue = self._queues[batch.partition]
        # Behind a batch that came back, this one could not be the next.
        if not queue.returned:
            if self._transaction is not None or queue.producer == ProducerIdAndEpoch():
                raise RecordDeliveryError(*_first_record(batch), failure.reason)
            queue.has_lost_sequence = True
        self._reenqueue(batch, failure, now)

    def _reenqueue(
        self, batch: ProducerBatch[R], failure: Failure, now: float, since: float | None = None
    ) -> None:
        queue = self._queues[batch.partition]
        queue.is_leader_stale |= failure.error in _RETRIABLE
        if not queue.returned:
            self._count_failure(queue, batch, failure, now, since)
        self._pending[batch.partition] = queue
        self._land(queue, batch)

    def _land(self, queue: PartitionQueue[R], *returned: ProducerBatch[R]) -> None:
        queue.land(*returned)
        if queue.has_lost_sequence and not queue.in_flight:
            self._reset_sequences(queue)

    def _reset_sequences(self, queue: PartitionQueue[R]) -> None:
        """Continue under another producer id.

        Other partitions keep theirs: what came back of them may be in their logs already.
        """
        if queue.producer == self._producer:
            self._producer = None
        queue.reset_sequences()
        self._unencoded.update(dict.fromkeys(queue.waiting))

    def _count_failure(
        self,
        queue: PartitionQueue[R],
        batch: ProducerBatch[R],
        failure: Failure,
        now: float,
        since: float | None,
    ) -> None:
        """Let a partition wait, or give it up."""
        failing_s = queue.fail(now, self._retry_backoff_s, now if since is None else since)
        timeout_s = self._settings.delivery_timeout_ms / 1_000
        if failing_s < timeout_s and queue.failures <= self._settings.retries:
            return
        if failure.error is ProduceError.DISCONNECTED:
            raise BrokerUnreachableError(self._bootstrap_servers, failing_s, failure.reason)
        lasting = f"{failure.reason}, for {failing_s:.0f} s and {queue.failures} attempts"
        raise RecordDeliveryError(*_first_record(batch), lasting)


def _first_producer(settings: ProducerSettings) -> ProducerIdAndEpoch | None:
    return None if settings.is_idempotent else ProducerIdAndEpoch()


def _first_record(batch: ProducerBatch[R]) -> tuple[str, int, int]:
    partition = batch.partition
    return partition.topic, partition.partition, batch.records.first_record_bytes()
