"""The producer's rules against a model broker, through any interleaving."""

from collections.abc import Collection
from typing import Final
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.options.client_settings import ProducerSettings
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing import batch
from pyspark_kafka.domain.writing.batch import (
    AddPartitionsToTxn,
    Encode,
    FindLeaders,
    InitProducerId,
    Produce,
    ProduceError,
    ProducerIdAndEpoch,
    Receive,
    Request,
    Sleep,
)
from pyspark_kafka.domain.writing.errors import ProducerFencedError, RecordDeliveryError
from pyspark_kafka.domain.writing.sender import Sender
from pyspark_kafka.domain.writing.transaction import DeliveryStats, Transaction

from .model_broker import (
    HEADER,
    Log,
    ModelCluster,
    Numbers,
    ProducerState,
    encode,
    failure,
    is_written,
)

PARTITIONS: Final = [TopicPartition("t", number) for number in range(3)]
NODES: Final = 2
BEGAN: Final = 1_000.0
BACKOFF_S: Final = 0.1
MAX_RECORDS: Final = 8
MAX_SEQUENCE: Final = 127
"""In the place of 2^31 - 1, so that sequence numbers begin again with 0."""

STEPS_TO_SETTLE: Final = 3_000
PATIENT_MS: Final = 2**31 - 1
HASTY_MS: Final = 5_000

partitions = st.sampled_from(PARTITIONS)
nodes = st.integers(0, NODES - 1)


class ProducerMachine(RuleBasedStateMachine):
    """A client that performs what ``Sender`` asks for, and a cluster that does what it may."""

    def __init__(self) -> None:
        super().__init__()
        self._sequences = patch.object(batch, "INT32_MAX", MAX_SEQUENCE)
        self._sequences.start()
        self.now = BEGAN
        self.appended: dict[TopicPartition, list[int]] = {each: [] for each in PARTITIONS}
        self.acknowledged = dict.fromkeys(PARTITIONS, 0)
        self.stats = DeliveryStats()
        self.producer_ids = 0
        self.transaction: Transaction | None = None
        self.in_transaction: set[TopicPartition] = set()
        self.is_fenced = False
        self.is_dead = False

    @initialize(
        limits=st.lists(st.integers(1, MAX_RECORDS), min_size=3, max_size=3),
        max_in_flight=st.integers(1, 5),
        buffer_records=st.integers(4, 60),
        request_records=st.integers(4, 30),
        delivery_timeout_ms=st.sampled_from([*4 * [PATIENT_MS], HASTY_MS]),
        is_transactional=st.sampled_from([False, False, True]),
    )
    def begin(
        self,
        limits: list[int],
        max_in_flight: int,
        buffer_records: int,
        request_records: int,
        delivery_timeout_ms: int,
        is_transactional: bool,
    ) -> None:
        """Choose the settings of the producer and of the topic."""
        self.cluster = ModelCluster(
            {
                partition: Log(number % NODES, HEADER.size + 8 * limit)
                for number, (partition, limit) in enumerate(zip(PARTITIONS, limits, strict=True))
            }
        )
        self.settings = ProducerSettings(
            max_in_flight=max_in_flight,
            buffer_memory=16 * buffer_records,
            max_request_size=HEADER.size + 8 * request_records,
            delivery_timeout_ms=delivery_timeout_ms,
        )
        self.sender: Sender[Numbers] = Sender(self.settings, BACKOFF_S, "broker:9092")
        self.is_transactional = is_transactional
        if is_transactional:
            self._join_next()

    # The caller

    @rule(
        partition=partitions, counts=st.lists(st.integers(1, MAX_RECORDS), min_size=1, max_size=4)
    )
    def append(self, partition: TopicPartition, counts: list[int]) -> None:
        for count in counts:
            if self.is_dead:
                return
            first = len(self.appended[partition])
            records = Numbers(tuple(range(first, first + count)))
            if self.sender.has_room(records.payload_bytes):
                self.sender.append(partition, records)
                self.appended[partition] += records.values
            else:
                self.perform()

    @rule(times=st.integers(1, 10))
    def perform(self, times: int = 1) -> None:
        for _ in range(times):
            if not self.is_dead and not self.sender.is_settled:
                self._guarded(self.sender.next_request(self.now))

    @precondition(lambda self: self.is_transactional)
    @rule()
    def commit(self) -> None:
        if not self.is_dead and not self.is_fenced and self.sender.is_settled:
            self._join_next()

    # The cluster

    @rule(node=nodes)
    def handle(self, node: int) -> None:
        self.cluster.handle(node)

    @rule(node=nodes, handled=st.integers(0, 5))
    def break_connection(self, node: int, handled: int) -> None:
        """Lose a connection, and the responses that were not read yet."""
        self.cluster.break_connection(node, handled)

    @rule(node=nodes)
    def handle_late(self, node: int) -> None:
        self.cluster.handle_late(node)

    @rule(node=nodes)
    def stop_broker(self, node: int) -> None:
        self.cluster.break_connection(node, 0)
        self.cluster.down.add(node)

    @rule()
    def start_brokers(self) -> None:
        self.cluster.down.clear()

    @rule(partition=partitions, node=nodes, is_known=st.booleans())
    def move_leader(self, partition: TopicPartition, node: int, is_known: bool) -> None:
        """Elect another leader; requests to the former one are refused from now on."""
        self.cluster.logs[partition].leader = node
        if is_known:
            # As metadata are asked for another topic's sake.
            self.cluster.known_leaders.clear()

    @rule(partition=partitions, times=st.integers(1, 3))
    def refuse(self, partition: TopicPartition, times: int) -> None:
        """Answer the next requests with an error that passes."""
        self.cluster.logs[partition].refusals = times

    @precondition(lambda self: not self.is_transactional)
    @rule(partition=partitions)
    def forget_producers(self, partition: TopicPartition) -> None:
        """Lose what the partition knows of its producers.

        Nothing could show then whether a batch without a response was written: there is none, and
        none is on its way. And 0, which comes behind the largest sequence number, is what a
        partition expects of a producer that it does not know: the largest is far away.
        """
        log = self.cluster.logs[partition]
        is_known = len(log.records) == self.acknowledged[partition]
        is_known = is_known and not any(self.cluster.late.values())
        if is_known and all(state.last < MAX_SEQUENCE // 2 for state in log.producers.values()):
            log.producers.clear()

    @precondition(lambda self: self.is_transactional)
    @rule()
    def fence(self) -> None:
        """Let another producer begin a transaction under the same id."""
        assert self.transaction is not None
        self.is_fenced = True
        for log in self.cluster.logs.values():
            log.producers[self.transaction.producer_id] = ProducerState(self.transaction.epoch + 1)

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    # Laws

    @invariant()
    def in_order_and_once(self) -> None:
        """Each log holds the first of the records that were appended, in order, once each."""
        for partition, log in self.cluster.logs.items():
            assert log.records == self.appended[partition][: len(log.records)]

    @invariant()
    def nothing_is_acknowledged_that_is_not_written(self) -> None:
        """Only records that are in the logs are acknowledged."""
        self.stats += self.sender.take_stats()
        assert self.stats.records <= sum(len(log.records) for log in self.cluster.logs.values())
        assert self.stats.bytes == 8 * self.stats.records

    @invariant()
    def memory_is_bounded(self) -> None:
        """Memory is at most ``buffer.memory`` or one batch, and the headers that splits add."""
        unsettled = sum(map(len, self.appended.values())) - sum(self.acknowledged.values())
        limit = max(self.settings.buffer_memory, 16 * MAX_RECORDS) + HEADER.size * unsettled
        assert 0 <= self.sender.memory <= limit

    def teardown(self) -> None:
        """Let a healthy cluster take everything: nothing is lost, and all memory given back."""
        try:
            if hasattr(self, "sender"):
                self._settle()
        finally:
            self._sequences.stop()

    def _settle(self) -> None:
        self.cluster.down.clear()
        for _ in range(STEPS_TO_SETTLE):
            if self.is_dead or self.sender.is_settled:
                break
            self.perform()
        self.in_order_and_once()
        self.nothing_is_acknowledged_that_is_not_written()
        if self.is_dead:
            return
        assert self.sender.is_settled
        assert self.sender.memory == 0
        assert not self.sender.has_pending
        assert self.stats.records == sum(map(len, self.appended.values()))
        for partition, log in self.cluster.logs.items():
            assert log.records == self.appended[partition]

    # The client

    def _guarded(self, request: Request[Numbers]) -> None:
        self.is_dead = True
        try:
            self._perform(request)
        except ProducerFencedError:
            assert self.is_fenced
        except (BrokerUnreachableError, RecordDeliveryError):
            assert self.settings.delivery_timeout_ms == HASTY_MS
            assert self.now - BEGAN >= HASTY_MS / 1_000
        else:
            self.is_dead = False

    def _perform(self, request: Request[Numbers]) -> None:
        match request:
            case InitProducerId():
                assert not self.is_transactional
                self.producer_ids += 1
                self.sender.producer_id_received(ProducerIdAndEpoch(self.producer_ids, 0))
            case Encode(batch, producer):
                self.sender.encoded(batch, encode(batch.records, producer, batch.sequence))
            case FindLeaders(wanted, stale):
                self._find_leaders(wanted, stale)
            case AddPartitionsToTxn(transaction, added):
                assert transaction == self.transaction
                self.in_transaction |= set(added)
            case Produce(node, batches, transactional_id):
                self._produce(
                    node,
                    {batch.partition: bytes(batch.encoded) for batch in batches},
                    transactional_id,
                )
            case Receive(owing):
                for node in owing:
                    self._receive(node)
            case Sleep(seconds):
                assert 0 <= seconds <= BACKOFF_S
                self.now += seconds

    def _find_leaders(
        self, wanted: Collection[TopicPartition], stale: Collection[TopicPartition]
    ) -> None:
        for partition in stale:
            self.cluster.known_leaders.pop(partition, None)
        leaders = {}
        for partition in wanted:
            node = self.cluster.leader(partition)
            if self.cluster.connect(node):
                leaders[partition] = node
            else:
                refused = failure(ProduceError.DISCONNECTED)
                self.sender.leader_not_found(partition, refused, self.now)
        self.sender.leaders_found(leaders, self.now)

    def _produce(
        self, node: int, batches: dict[TopicPartition, bytes], transactional_id: str | None
    ) -> None:
        connection = self.cluster.connections[node]
        if connection.is_broken:
            self._disconnect(node)
            return
        assert len(batches) == 1 or (
            sum(map(len, batches.values())) <= self.settings.max_request_size
        )
        assert transactional_id == (self.transaction and self.transaction.transactional_id)
        assert not self.is_transactional or batches.keys() <= self.in_transaction
        for other, elsewhere in self.cluster.connections.items():
            # Responses of two brokers come in any order, and what comes back goes by it.
            assert other == node or not any(batches.keys() & sent.keys() for sent in elsewhere.sent)
        connection.send(batches)
        unread = len(connection.requests) + len(connection.responses)
        assert unread == self.sender.in_flight(node) <= self.settings.max_in_flight
        self.sender.sent(node)

    def _receive(self, node: int) -> None:
        connection = self.cluster.connections[node]
        if connection.is_broken:
            self._disconnect(node)
            return
        if not connection.responses:
            self.cluster.handle(node)
        response = connection.responses.popleft()
        for partition, count in connection.sent.popleft().items():
            if is_written(response[partition]):
                self.acknowledged[partition] += count
        self.sender.received(node, response, self.now)

    def _disconnect(self, node: int) -> None:
        self.cluster.close(node)
        self.sender.disconnected(node, failure(ProduceError.DISCONNECTED), self.now)

    def _join_next(self) -> None:
        epoch = self.transaction.epoch + 1 if self.transaction else 0
        self.transaction = Transaction("id", 7, epoch)
        self.in_transaction.clear()
        self.sender.join_transaction(self.transaction)
