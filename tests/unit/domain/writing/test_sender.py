import math
from collections.abc import Mapping
from typing import Final

import pytest

from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.options.client_settings import ProducerSettings
from pyspark_kafka.domain.security.errors import AuthorizationError
from pyspark_kafka.domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    topic_right,
    transactional_id_right,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
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
from pyspark_kafka.domain.writing.errors import (
    InvalidTimestampError,
    ProducerFencedError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    UnknownPartitionError,
)
from pyspark_kafka.domain.writing.sender import Sender
from pyspark_kafka.domain.writing.transaction import DeliveryStats, Transaction

from .model_broker import HEADER, Numbers, encode, failure

P0: Final = TopicPartition("t", 0)
P1: Final = TopicPartition("t", 1)
NODE: Final = 1
OTHER: Final = 2
BACKOFF_S: Final = 0.5
PRODUCER: Final = ProducerIdAndEpoch(7, 0)
TRANSACTION: Final = Transaction("id", 9, 3)
SERVERS: Final = "broker:9092"
PRINCIPAL: Final = "User:ada"


class Client:
    """Performs requests as far as nothing is to be decided, and shows the others."""

    def __init__(
        self, leaders: Mapping[TopicPartition, int] | None = None, **given: object
    ) -> None:
        self.settings = ProducerSettings(**given)  # type: ignore[arg-type]
        self.delivered: list[int] = []
        self.sender: Sender[Numbers] = Sender(
            self.settings,
            BACKOFF_S,
            SERVERS,
            lambda records: self.delivered.append(len(records)),
            PRINCIPAL,
        )
        self.leaders = leaders or {P0: NODE, P1: NODE}
        self.producers = iter(range(PRODUCER.producer_id, 100))
        self.now = 0.0
        self.written = 0
        self.encoded: list[tuple[int, ProducerIdAndEpoch]] = []
        self.stale: list[TopicPartition] = []

    def append(self, *counts: int, partition: TopicPartition = P0) -> None:
        for count in counts:
            self.sender.append(partition, Numbers(tuple(range(count))))

    def next(self) -> Request[Numbers]:
        """Return the next request that matters to a test."""
        while True:
            match self.sender.next_request(self.now):
                case InitProducerId():
                    self.sender.producer_id_received(ProducerIdAndEpoch(next(self.producers), 0))
                case Encode(batch, producer):
                    self.encoded.append((batch.sequence, producer))
                    encoded = encode(batch.records, producer, batch.sequence)
                    self.sender.encoded(batch, encoded)
                case FindLeaders(partitions, stale):
                    self.stale += stale
                    leaders = {each: self.leaders[each] for each in partitions}
                    self.sender.leaders_found(leaders, self.now)
                case request:
                    return request

    def sent(self) -> tuple[int, list[list[int]]]:
        """Return the node and the first sequence number and the size of each batch sent next."""
        request = self.next()
        assert isinstance(request, Produce)
        self.sender.sent(request.node)
        return request.node, [[batch.sequence, len(batch.records)] for batch in request.batches]

    def fail(self, error: ProduceError, node: int = NODE, partition: TopicPartition = P0) -> None:
        self.sender.received(node, {partition: failure(error)}, self.now)

    def succeed(self, node: int = NODE, *partitions: TopicPartition) -> None:
        self.sender.received(node, dict.fromkeys(partitions or (P0,)), self.now)


def sending(*counts: int, **settings: object) -> Client:
    """Return a client that has sent batches of so many records."""
    client = Client(**settings)  # type: ignore[arg-type]
    client.append(*counts)
    for _ in counts:
        client.sent()
    return client


def in_transaction(*counts: int) -> Client:
    """Return a client that has sent batches of so many records in a transaction."""
    client = Client()
    client.sender.join_transaction(TRANSACTION)
    client.append(*counts)
    client.next()
    for _ in counts:
        client.sent()
    return client


def test_a_producer_id_comes_before_the_first_batch():
    client = Client()
    client.append(3, 2)
    assert client.sender.next_request(0) == InitProducerId()
    assert client.sent() == (NODE, [[0, 3]])
    assert client.sent() == (NODE, [[3, 2]])
    assert client.encoded == [(0, PRODUCER), (3, PRODUCER)]


def test_acknowledged_records_are_reported():
    client = sending(3, 2)
    assert client.delivered == []
    client.succeed()
    assert client.delivered == [3]
    client.succeed()
    assert client.delivered == [3, 2]


def test_what_is_to_be_sent_is_pending():
    client = Client()
    client.append(3)
    request = client.next()
    assert isinstance(request, Produce)
    assert not client.sender.has_pending
    client.append(2, partition=P1)
    client.sender.leaders_found({P1: NODE}, client.now)
    assert client.sender.has_pending


def test_the_next_try_is_told():
    client = Client()
    assert client.sender.seconds_to_retry(0) == math.inf
    client.append(3)
    client.sent()
    client.fail(ProduceError.RETRIABLE)
    assert client.sender.seconds_to_retry(BACKOFF_S / 4) == 3 * BACKOFF_S / 4
    assert client.sender.seconds_to_retry(BACKOFF_S) == math.inf


def test_partitions_that_the_caller_added_are_not_added_again():
    """A transaction's partitions may be added by its coordinator's client."""
    client = Client()
    client.sender.join_transaction(TRANSACTION)
    client.sender.partitions_added([P0])
    client.append(1)
    client.append(1, partition=P1)
    assert client.next() == AddPartitionsToTxn(TRANSACTION, {P1})


def test_without_idempotence_there_is_no_producer_id():
    client = sending(3, is_idempotent=False)
    assert client.encoded == [(0, ProducerIdAndEpoch())]


def test_a_request_has_batches_of_partitions_with_one_leader_up_to_its_size():
    client = Client(max_request_size=2 * HEADER.size + 8 * 4)
    client.append(2)
    client.append(2, partition=P1)
    assert client.sent() == (NODE, [[0, 2], [0, 2]])
    client.append(2)
    client.append(3, partition=P1)
    assert client.sent() == (NODE, [[2, 2]])
    assert client.sent() == (NODE, [[2, 3]])


def test_each_leader_gets_its_request():
    client = Client({P0: NODE, P1: OTHER})
    client.append(1)
    client.append(1, partition=P1)
    assert [client.sent()[0], client.sent()[0]] == [NODE, OTHER]
    assert client.next() == Receive((NODE, OTHER))


def test_requests_in_flight_are_bounded():
    client = Client(max_in_flight=2)
    client.append(1, 1, 1)
    client.sent()
    client.sent()
    assert client.next() == Receive((NODE,))
    assert client.sender.in_flight(NODE) == 2
    client.succeed()
    assert client.sent() == (NODE, [[2, 1]])


def test_acknowledged_batches_are_counted_once():
    client = sending(3, 2)
    assert (client.sender.has_pending, client.sender.is_settled) == (False, False)
    client.succeed()
    client.fail(ProduceError.DUPLICATE_SEQUENCE)
    assert client.sender.is_settled
    assert client.sender.memory == 0
    assert client.sender.take_stats() == DeliveryStats(5, 40)
    assert client.sender.take_stats() == DeliveryStats()


def test_no_response_is_waited_for_without_acknowledgements():
    client = sending(3, acks=0, is_idempotent=False)
    assert client.sender.is_settled
    assert client.sender.take_stats() == DeliveryStats(3, 24)


def test_memory_is_bounded():
    client = Client(buffer_memory=100)
    assert client.sender.has_room(1_000)
    client.append(3)
    assert not client.sender.has_room(0)
    client.sent()
    assert client.sender.memory == HEADER.size + 2 * 24
    assert client.sender.has_room((100 - client.sender.memory) // 2)
    assert not client.sender.has_room((100 - client.sender.memory) // 2 + 1)
    client.succeed()
    assert client.sender.has_room(1_000)


def test_batches_of_a_lost_connection_are_sent_again_in_order():
    client = sending(3, 2)
    client.append(1)
    client.sender.disconnected(NODE, failure(ProduceError.DISCONNECTED), client.now)
    assert client.next() == Sleep(BACKOFF_S)
    client.now += BACKOFF_S
    client.leaders = {P0: OTHER}
    assert [client.sent() for _ in range(3)] == [
        (OTHER, [[0, 3]]),
        (OTHER, [[3, 2]]),
        (OTHER, [[5, 1]]),
    ]
    assert client.stale == [P0]
    assert client.encoded == [(0, PRODUCER), (3, PRODUCER), (5, PRODUCER)]


def test_a_connection_without_requests_is_lost_without_loss():
    client = Client()
    client.sender.disconnected(NODE, failure(ProduceError.DISCONNECTED), client.now)
    assert client.sender.is_settled


def test_what_came_back_waits_for_what_is_in_flight():
    """Only when all is answered is the first of it sent again, or the order would be lost."""
    client = sending(3, 2)
    client.fail(ProduceError.RETRIABLE)
    client.now += BACKOFF_S
    assert client.next() == Receive((NODE,))
    client.fail(ProduceError.SEQUENCE_LOST)
    assert client.sent() == (NODE, [[0, 3]])
    assert client.stale == [P0]


def test_a_new_leader_waits_for_the_former_one():
    """A partition's batches are in flight to one broker at a time."""
    client = sending(3)
    client.leaders = {P0: OTHER}
    client.append(2)
    assert client.next() == Receive((NODE,))
    client.succeed()
    assert client.sent() == (OTHER, [[3, 2]])


def looking_for_a_leader(**settings: object) -> Client:
    client = Client(**settings)  # type: ignore[arg-type]
    client.append(3)
    while not isinstance(request := client.sender.next_request(client.now), FindLeaders):
        if isinstance(request, Encode):
            client.sender.encoded(request.batch, b"bytes")
        else:
            client.sender.producer_id_received(PRODUCER)
    return client


def test_a_partition_without_a_leader_waits():
    client = looking_for_a_leader()
    client.sender.leader_not_found(P0, failure(ProduceError.RETRIABLE), client.now)
    client.sender.leaders_found({}, client.now)
    assert client.next() == Sleep(BACKOFF_S)
    client.now += 0.75 * BACKOFF_S
    assert client.next() == Sleep(0.25 * BACKOFF_S)
    client.now += BACKOFF_S
    assert client.sender.next_request(client.now) == FindLeaders([P0], [P0])


def test_a_partition_that_has_no_leader_for_long_fails():
    client = looking_for_a_leader(delivery_timeout_ms=1_000)
    client.sender.leader_not_found(P0, failure(ProduceError.RETRIABLE), 0)
    with pytest.raises(RecordDeliveryError, match=r"t-0.*RETRIABLE, for 2 s and 2 attempts"):
        client.sender.leader_not_found(P0, failure(ProduceError.RETRIABLE), 2)


def test_a_response_may_leave_a_batch_out():
    client = sending(3)
    client.succeed(NODE, P1)
    client.now += BACKOFF_S
    assert client.sent() == (NODE, [[0, 3]])


def test_a_batch_that_is_too_large_is_split():
    client = sending(5, 2)
    client.fail(ProduceError.MESSAGE_TOO_LARGE)
    client.fail(ProduceError.SEQUENCE_LOST)
    assert [client.sent() for _ in range(3)] == [
        (NODE, [[0, 2]]),
        (NODE, [[2, 3]]),
        (NODE, [[5, 2]]),
    ]
    assert client.sender.max_batch_bytes(P0) == (HEADER.size + 40) // 2
    assert client.sender.max_batch_bytes(P1) == client.settings.batch_size


@pytest.mark.parametrize("name", ["batch_size", "max_request_size", "buffer_memory"])
def test_a_batch_keeps_the_lowest_limit_of_the_settings(name):
    """A batch fits into a request, and into the memory; a batch of no bytes would be none."""
    sizes = dict.fromkeys(("batch_size", "max_request_size", "buffer_memory"), 1_000)
    for size, expected in ((10, 10), (0, 1)):
        client = Client(None, **(sizes | {name: size}))
        assert client.sender.max_batch_bytes(P0) == expected


def test_a_record_that_is_too_large_is_named():
    client = sending(1)
    with pytest.raises(RecordTooLargeError, match="server will accept") as caught:
        client.fail(ProduceError.MESSAGE_TOO_LARGE)
    assert (caught.value.topic, caught.value.partition, caught.value.size) == ("t", 0, 8)


def test_lost_sequence_numbers_restart_under_another_producer_id():
    client = sending(3, 2)
    client.append(1)
    client.fail(ProduceError.SEQUENCE_LOST)
    client.fail(ProduceError.SEQUENCE_LOST)
    client.now += BACKOFF_S
    expected = [(NODE, [[0, 3]]), (NODE, [[3, 2]]), (NODE, [[5, 1]])]
    assert [client.sent() for _ in range(3)] == expected
    again = ProducerIdAndEpoch(PRODUCER.producer_id + 1, 0)
    assert set(client.encoded[2:]) == {(0, again), (3, again), (5, again)}
    assert client.stale == []
    for _ in range(3):
        client.fail(ProduceError.RETRIABLE)
    client.now += BACKOFF_S
    assert [client.sent() for _ in range(3)] == expected
    assert len(client.encoded) == 5


def test_other_partitions_keep_their_producer_id():
    """Their batches that came back may be written already, and would be written twice.

    One that loses its numbers later takes the producer id that there is by then.
    """
    client = Client({P0: NODE, P1: OTHER})
    client.append(1)
    client.append(1, partition=P1)
    client.sent()
    client.sent()
    client.fail(ProduceError.INVALID_PRODUCER_EPOCH)
    client.sender.disconnected(OTHER, failure(ProduceError.DISCONNECTED), client.now)
    client.now += BACKOFF_S
    again = ProducerIdAndEpoch(PRODUCER.producer_id + 1, 0)
    assert (client.sent()[0], client.sent()[0]) == (NODE, OTHER)
    assert client.encoded[2:] == [(0, again)]
    client.fail(ProduceError.SEQUENCE_LOST, OTHER, P1)
    client.now += BACKOFF_S
    assert client.sent() == (OTHER, [[0, 1]])
    assert client.encoded[3:] == [(0, again)]


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_lost_sequence_numbers_are_an_error_in_a_transaction_and_without_idempotence(is_idempotent):
    client = Client(is_idempotent=is_idempotent)
    if is_idempotent:
        client.sender.join_transaction(TRANSACTION)
    client.append(1)
    if is_idempotent:
        assert isinstance(client.next(), AddPartitionsToTxn)
    client.sent()
    with pytest.raises(RecordDeliveryError, match="SEQUENCE_LOST"):
        client.fail(ProduceError.SEQUENCE_LOST)


def test_partitions_join_the_transaction_before_they_are_written_to():
    client = Client({P0: NODE, P1: NODE})
    client.sender.join_transaction(TRANSACTION)
    client.append(1)
    assert client.next() == AddPartitionsToTxn(TRANSACTION, {P0})
    request = client.next()
    assert isinstance(request, Produce)
    assert request.transactional_id == "id"
    client.append(1)
    client.append(1, partition=P1)
    assert client.next() == AddPartitionsToTxn(TRANSACTION, {P1})
    assert client.sent() == (NODE, [[1, 1], [0, 1]])
    assert {producer for _, producer in client.encoded} == {ProducerIdAndEpoch(9, 3, True)}


def test_a_partition_that_cannot_join_the_transaction_is_given_up():
    client = Client({P0: NODE, P1: NODE})
    client.sender.join_transaction(TRANSACTION)
    client.append(1)
    client.append(3, partition=P1)
    assert client.next() == AddPartitionsToTxn(TRANSACTION, {P0, P1})
    with pytest.raises(UnknownPartitionError, match="partitions are 0 to 0") as caught:
        client.sender.partition_not_found(P1, 1)
    assert (caught.value.topic, caught.value.partition) == (P1.topic, P1.partition)


def test_each_transaction_has_sequence_numbers_of_its_own():
    client = Client()
    for transaction in (None, TRANSACTION, None):
        client.sender.join_transaction(transaction)
        client.append(2)
        if transaction:
            assert isinstance(client.next(), AddPartitionsToTxn)
        assert client.sent() == (NODE, [[0, 2]])
        client.succeed()
    client.sender.join_transaction(None)
    client.append(1)
    assert client.sent() == (NODE, [[2, 1]])


@pytest.mark.parametrize(
    "error", [ProduceError.PRODUCER_FENCED, ProduceError.INVALID_PRODUCER_EPOCH]
)
def test_a_fence_ends_the_transaction(error):
    """Another producer writes under its id."""
    client = in_transaction(1)
    with pytest.raises(ProducerFencedError, match="'id'"):
        client.fail(error)


@pytest.mark.parametrize(
    ("error", "right"),
    [
        (ProduceError.TOPIC_AUTHORIZATION_FAILED, topic_right(Operation.WRITE, "t")),
        (ProduceError.CLUSTER_AUTHORIZATION_FAILED, IDEMPOTENT_WRITE),
        (
            ProduceError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            transactional_id_right(Operation.WRITE, "id"),
        ),
    ],
)
def test_a_missing_right_is_named(error, right):
    client = in_transaction(1)
    with pytest.raises(AuthorizationError) as raised:
        client.fail(error)
    assert (raised.value.rights, raised.value.principal) == ((right,), PRINCIPAL)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ProduceError.FATAL, RejectedRecordError),
        (ProduceError.PRODUCER_FENCED, RejectedRecordError),
        (ProduceError.INVALID_TIMESTAMP, InvalidTimestampError),
    ],
)
def test_what_does_not_pass_is_raised(error, kind):
    client = sending(2)
    with pytest.raises(kind, match=f"of 8 bytes for t-0 .*: {error.name}"):
        client.fail(error)


@pytest.mark.parametrize("error", [ProduceError.RETRIABLE, ProduceError.DISCONNECTED])
def test_retries_end_with_the_delivery_timeout(error):
    client = Client(delivery_timeout_ms=1_000)
    client.append(1, 1)
    client.sent()
    client.fail(ProduceError.RETRIABLE)
    client.now = 0.9
    client.sent()
    client.succeed()
    client.now = 2
    client.sent()
    client.fail(error)
    client.now = 2.5
    client.sent()
    client.fail(error)
    client.now = 3.25
    client.sent()
    if error is ProduceError.RETRIABLE:
        with pytest.raises(RecordDeliveryError, match="RETRIABLE, for 1 s and 3 attempts"):
            client.fail(error)
    else:
        with pytest.raises(BrokerUnreachableError, match=f"{SERVERS} within 1.2"):
            client.fail(error)


def test_a_wait_in_vain_counts_from_its_beginning():
    """A request that was not answered in all of the time is not sent again."""
    client = sending(1, delivery_timeout_ms=1_000)
    client.now = 1.5
    with pytest.raises(BrokerUnreachableError, match=f"{SERVERS} within 1.5"):
        client.sender.disconnected(NODE, failure(ProduceError.DISCONNECTED), client.now, since=0)


def test_retries_are_bounded():
    client = sending(1, retries=1)
    client.fail(ProduceError.RETRIABLE)
    client.now += BACKOFF_S
    client.sent()
    with pytest.raises(RecordDeliveryError, match="and 2 attempts"):
        client.fail(ProduceError.RETRIABLE)
