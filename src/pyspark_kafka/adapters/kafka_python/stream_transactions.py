"""Exactly-once outputs of a continuous query: a transactional producer for each input partition."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    TxnOffsetCommitResponse,
)

from ...domain.errors import BrokerUnreachableError
from ...domain.security.rights import (
    Operation,
    group_right,
    topic_right,
    transactional_id_right,
)
from ...domain.writing.batch import AddPartitionsToTxn
from ...domain.writing.transaction_cycle import (
    AddOffsetsToTxn,
    EndTxn,
    TransactionCycle,
    TransactionError,
    TransactionRequest,
    TxnOffsetCommit,
    WriteRecords,
)
from ..call_deadline import MAX_ATTEMPT_S, Attempts
from ..stream_sinks import TransactionalSink
from .connections import CoordinatorConnection, CoordinatorRequest, receive_ready
from .failures import RETRIABLE_ERRORS
from .produce_client import ProducerFactory
from .rows import Rows
from .stream_sinks import partitioned
from .transactions import (
    COORDINATOR_MOVED,
    TransactionRequests,
    add_offsets_request,
    add_partitions_request,
    check_response,
    commit_offsets_request,
    end_request,
    partitions_rights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.errors import PysparkKafkaError
    from ...domain.options.sink import SinkOptions
    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.transaction import Transaction
    from ...ports.continuous import PolledRecords
    from .connections import Awaited

MAX_TIMEOUT_MS: Final = 60_000
"""The longest time-out of a transaction, which is Java's default: each takes milliseconds, and an
abandoned one keeps readers of committed records waiting."""

_ABORT_S: Final = 1.0

_MAX_REPEATED: Final = 16
"""The requests that are kept encoded: outputs may go to ever different partitions."""

_FENCED: Final = (kafka_errors.ProducerFencedError, kafka_errors.InvalidProducerEpochError)


@final
class _Coordinator:
    """A connection to the coordinator of a transactional id or a group, made when it is needed."""

    def __init__(
        self,
        key: str,
        kind: CoordinatorType,
        factory: ProducerFactory,
        requests: TransactionRequests,
        cycle: TransactionCycle[Rows],
        rights: Callable[[TransactionRequest[Rows]], Collection[Right]],
    ) -> None:
        """Take ``rights``, which returns what a request needs."""
        self._key = key
        self._kind = kind
        self._factory = factory
        self._requests = requests
        self._cycle = cycle
        self._rights = rights
        self._timeout_ms = min(factory.config["request_timeout_ms"], factory.errors.timeout_ms)
        self._attempts = Attempts()
        self._connection: CoordinatorConnection | None = None
        self._in_flight: deque[TransactionRequest[Rows]] = deque()

    def connect(self) -> None:
        """Connect before there are requests, if that works at once."""
        with suppress(*RETRIABLE_ERRORS):
            self._connected()

    def send(self, request: TransactionRequest[Rows], sent: CoordinatorRequest) -> None:
        """Send a request; errors are reported to the cycle."""
        self._in_flight.append(request)
        try:
            self._connected().send(sent)
        except RETRIABLE_ERRORS as error:
            self._disconnect(error)

    def awaited(self) -> Iterable[Awaited]:
        """Return the connection if there are requests in flight."""
        return [(self._connection, self._receive)] if self._connection and self._in_flight else ()

    def check_time(self) -> None:
        """Repeat requests whose responses should have come, over another connection."""
        if self._connection is not None and self._connection.is_overdue:
            self._disconnect(TimeoutError("no response from a coordinator"))

    def abort(self, transaction: Transaction) -> None:
        """Abort a transaction if that is possible at once."""
        if self._connection is None:
            return
        with suppress(OSError, kafka_errors.KafkaError):
            aborted = end_request(transaction, commit=False)
            self._connection.send(CoordinatorRequest(aborted, EndTxnResponse))
            receive_ready([(self._connection, self._connection.receive)], _ABORT_S)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> CoordinatorConnection:
        kept = self._connection
        if kept is not None and kept.is_idle and kept.is_stale:
            self.close()
        if self._connection is None:
            with self._attempts.next(self._factory.errors.one_deadline):
                connected = self._connect()
            self._connection = CoordinatorConnection(
                connected, self._factory.config["client_id"], self._timeout_ms
            )
        return self._connection

    def _connect(self) -> Any:
        metadata = self._factory.metadata
        node = self._requests.coordinator(self._key, self._kind)
        if metadata.connection_delay(node):
            raise kafka_errors.NodeNotReadyError(node)
        return metadata.connect(node)

    def _receive(self) -> None:
        if self._connection is None or not self._in_flight:
            return
        try:
            response = self._connection.receive()
        except RETRIABLE_ERRORS as error:
            self._disconnect(error)
            return
        request = self._in_flight.popleft()
        now = time.monotonic()
        try:
            check_response(response)
        except COORDINATOR_MOVED as error:
            self._fail(request, error)
            self._disconnect(error)
        except kafka_errors.AuthorizationError as error:
            raise self._refused(request, error) from error
        except kafka_errors.KafkaError as error:
            self._fail(request, error)
        else:
            self._cycle.succeeded(request, now)

    def _refused(
        self, request: TransactionRequest[Rows], error: kafka_errors.AuthorizationError
    ) -> PysparkKafkaError:
        name = f"a request of type {type(request).__name__}"
        return self._factory.errors.request_error(name, error, self._rights(request))

    def _disconnect(self, error: Exception) -> None:
        """Find the coordinator again; what is in flight is sent again."""
        self.close()
        self._requests.forget_coordinator(self._key, self._kind)
        failed, self._in_flight = self._in_flight, deque()
        for request in failed:
            self._fail(request, error)

    def _fail(self, request: TransactionRequest[Rows], error: Exception) -> None:
        reason = str(error) or type(error).__name__
        self._cycle.failed(request, _class_of(error), reason, time.monotonic())


def _class_of(error: Exception) -> TransactionError:
    if isinstance(error, kafka_errors.ConcurrentTransactionsError):
        return TransactionError.CONCURRENT_TRANSACTIONS
    if isinstance(error, _FENCED):
        return TransactionError.FENCED
    if isinstance(error, kafka_errors.InvalidProducerIdMappingError):
        return TransactionError.FORGOTTEN
    if isinstance(error, OSError | kafka_errors.KafkaConnectionError):
        return TransactionError.DISCONNECTED
    if isinstance(error, RETRIABLE_ERRORS):
        return TransactionError.RETRIABLE
    return TransactionError.FATAL


def _cycle_rights(
    transactional_ids: Iterable[str], group_id: str, partitions: Iterable[TopicPartition]
) -> list[Right]:
    """Return what transactions need that commit a group's offsets of partitions."""
    topics = sorted({partition.topic for partition in partitions})
    return [
        *(transactional_id_right(Operation.WRITE, name) for name in transactional_ids),
        group_right(Operation.READ, group_id),
        *(topic_right(Operation.READ, topic) for topic in topics),
    ]


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
        self._repeated_requests: dict[TransactionRequest[Rows], CoordinatorRequest] = {}
        self._coordinator, self._group = (
            _Coordinator(key, kind, factory, requests, self.cycle, self._rights)
            for key, kind in (
                (transaction.transactional_id, CoordinatorType.TRANSACTION),
                (group_id, CoordinatorType.GROUP),
            )
        )

    @property
    def is_settled(self) -> bool:
        """Whether all is committed."""
        return self.cycle.is_settled

    is_over = is_settled

    def commit(self, next_offset: int) -> None:
        """Commit an offset of the input, without outputs."""
        self.cycle.append((), next_offset)

    def take_committed(self) -> int | None:
        """Return the offset that was committed since the last call, if any."""
        return self.cycle.take_committed()

    def finish(self) -> None:
        """Do nothing: the sink writes no more."""

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
        """Send what can be sent, and return for how many seconds the caller may wait."""
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
        """Return connections with requests in flight, and what receives the next response."""
        if self.cycle.is_settled:
            return ()
        return (
            *self._coordinator.awaited(),
            *self._group.awaited(),
            *self._producer.awaited(),
        )

    def close(self) -> None:
        """Close all connections, and abort the transaction if nothing else is in flight.

        Otherwise what is in flight might come after the abort. The next producer with the
        transactional id aborts it, or its time-out.
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
                return partitions_rights(transaction, partitions)
            case _:
                return _cycle_rights([self.transactional_id], self._group_id, [self._partition])

    def _perform(self, request: TransactionRequest[Rows]) -> None:
        match request:
            case WriteRecords(batches):
                self._produce(request, batches)
            case TxnOffsetCommit(transaction, next_offset):
                committed = commit_offsets_request(
                    transaction, self._group_id, self._partition, next_offset
                )
                self._group.send(request, CoordinatorRequest(committed, TxnOffsetCommitResponse))
            case _:
                self._coordinator.send(request, self._repeated(request))

    def _repeated(
        self, request: AddPartitionsToTxn | AddOffsetsToTxn | EndTxn
    ) -> CoordinatorRequest:
        """Return a request that is the same in most transactions."""
        if len(self._repeated_requests) > _MAX_REPEATED:
            self._repeated_requests.clear()
        made = self._repeated_requests.get(request)
        if made is None:
            made = self._repeated_requests[request] = self._coordinator_request(request)
        return made

    def _coordinator_request(
        self, request: AddPartitionsToTxn | AddOffsetsToTxn | EndTxn
    ) -> CoordinatorRequest:
        match request:
            case AddPartitionsToTxn(transaction, partitions):
                added = add_partitions_request(transaction, partitions)
                return CoordinatorRequest(added, AddPartitionsToTxnResponse)
            case AddOffsetsToTxn(transaction):
                offsets = add_offsets_request(transaction, self._group_id)
                return CoordinatorRequest(offsets, AddOffsetsToTxnResponse)
            case EndTxn(transaction):
                return CoordinatorRequest(end_request(transaction, commit=True), EndTxnResponse)

    def _produce(
        self, request: WriteRecords[Rows], batches: Iterable[tuple[TopicPartition, Rows]]
    ) -> None:
        self._producer.partitions_added(partition for partition, _ in batches)
        for partition, rows in batches:
            self._producer.append(partition, rows)
        self._written = request


@final
class ExactlyOnceSink(TransactionalSink[_TransactionalWriter]):
    """Commits outputs and the offsets of their input together."""

    def __init__(self, options: SinkOptions, continuous: ContinuousSettings) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        super().__init__(continuous)
        self._topic = options.topic
        self._timeout_ms = min(options.producer.transaction_timeout_ms, MAX_TIMEOUT_MS)
        self._max_waiting_bytes = options.producer.buffer_memory // 2
        self._factory = ProducerFactory(options)
        self._requests = TransactionRequests(self._factory.metadata, self._factory.errors)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            batches = partitioned(outputs, self._topic, self._factory)
            writer = self._track(polled)
            if writer is None:
                return
            writer.cycle.append(batches, polled.next_offset)
            wait_s = writer.send()
            self._take_committed()
            while writer.cycle.waiting_bytes > self._max_waiting_bytes:
                receive_ready(list(self.awaited()), wait_s)
                wait_s = self.send()

    def send(self) -> float:
        with self._mapped_errors(), self._factory.errors.one_deadline(MAX_ATTEMPT_S):
            wait_s = min((each.send() for each in self._writers.values()), default=math.inf)
        self._take_committed()
        return wait_s

    def awaited(self) -> Iterable[Awaited]:
        return [awaited for writer in self._writers.values() for awaited in writer.awaited()]

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._factory.close)
            closing.callback(self._close_writers, list(self._writers))

    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        errors = self._factory.errors
        with self._mapped_errors(), errors.one_deadline() as deadline:
            while unsettled := [each for each in partitions if not self._is_done(each)]:
                if deadline.has_passed:
                    reason = f"the transaction of {unsettled[0]} has not ended"
                    raise BrokerUnreachableError(
                        errors.bootstrap_servers, errors.timeout_ms / 1_000, reason
                    )
                wait_s = min(self.send(), deadline.remaining)
                receive_ready(list(self.awaited()), wait_s)

    def _is_done(self, partition: TopicPartition) -> bool:
        writer = self._writers.get(partition)
        return writer is None or writer.is_settled

    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        group_id = self._settings.group_id
        names = {
            partition: self._settings.transactional_id(partition.topic, partition.partition)
            for partition in partitions
        }
        rights = _cycle_rights(names.values(), group_id, partitions)
        errors = self._factory.errors
        with (
            errors.mapped_errors("a request to begin a transaction", *rights),
            errors.one_deadline(),
        ):
            for partition, name in names.items():
                transaction = self._requests.begin(name, self._timeout_ms)
                self._writers[partition] = _TransactionalWriter(
                    partition, transaction, group_id, self._factory, self._requests
                )
            committed = self._requests.committed_offsets(group_id, new) if new else {}
            with errors.one_deadline(MAX_ATTEMPT_S):
                for partition in partitions:
                    self._writers[partition].connect(self._topic)
        return committed

    def _mapped_errors(self) -> AbstractContextManager[None]:
        ids = [writer.transactional_id for writer in self._writers.values()]
        rights = _cycle_rights(ids, self._settings.group_id, self._writers)
        return self._factory.errors.mapped_errors("a request of a transaction", *rights)
