"""What kafka-python's reader does when a broker's log differs from what it has read."""

from __future__ import annotations

import struct
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetForLeaderEpochResponse

from pyspark_kafka.adapters.fetching import Fetched
from pyspark_kafka.adapters.kafka_format.record_decoder import RecordDecoder
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.kafka_python.fetch_client import PartitionFetcher
from pyspark_kafka.adapters.kafka_python.leader_epochs import find_other_log
from pyspark_kafka.adapters.kafka_python.wire import NO_REPLICA, FetchedData, FetchPosition
from pyspark_kafka.domain.reading.errors import LogTruncatedError
from pyspark_kafka.domain.reading.leader_epochs import EpochEndOffset, FetchedEpochs
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from .kafka_format.batches import Batch, Record, log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.domain.reading.topic_identity import TopicIdentity

PARTITION: Final = TopicPartition("t", 0)
NODE: Final = 3
END: Final = 100
EPOCH_AT: Final = 12

THEIR_TOPIC = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


def fetched(epoch: int, *offsets: int) -> FetchedData:
    """Return a response with one batch."""
    records = bytearray(log(Batch.of([Record(offset) for offset in offsets])))
    struct.pack_into(">i", records, EPOCH_AT, epoch)
    return FetchedData(kafka_errors.NoError, NO_REPLICA, (), memoryview(bytes(records)))


def diverging(epoch: int, end_offset: int) -> FetchedData:
    return FetchedData.diverged(EpochEndOffset(epoch, end_offset))


def failed(error: type[kafka_errors.KafkaError]) -> FetchedData:
    return FetchedData(error, NO_REPLICA, (), memoryview(b""))


class ScriptedClient:
    """A client that answers from a script."""

    retry_s = 0.0

    def __init__(self, answers: Iterable[FetchedData]) -> None:
        self.errors = ErrorMapper("broker:9092", 1_000)
        self.buffers = SimpleNamespace(acquire=object)
        self.answers = deque(answers)
        self.asked: list[tuple[int, int]] = []
        self.is_replica = False
        self.invalidated = 0

    def fetch(
        self, _: TopicPartition, __: TopicIdentity, offset: int, epochs: FetchedEpochs, *___: object
    ) -> FetchedData:
        self.asked.append((offset, epochs.last))
        return self.answers.popleft()

    def send_ahead(self, *_: object) -> None:
        """Do nothing."""

    def leave_replica(self, _: TopicPartition) -> bool:
        was_replica, self.is_replica = self.is_replica, False
        return was_replica

    def invalidate(self, _: TopicPartition) -> None:
        self.invalidated += 1


def fetcher(*answers: FetchedData) -> tuple[ScriptedClient, PartitionFetcher]:
    client: Any = ScriptedClient(answers)
    decoder = RecordDecoder(PARTITION, Projection(("offset",)))
    watermarks: Any = None
    made = PartitionFetcher(client, OffsetRange(PARTITION, 0, END), decoder, watermarks, 1_000)
    return client, made


def offset_after(found: Fetched | None) -> int:
    assert found is not None
    assert [batch for batch in found.batches if not batch.num_rows] == []
    return found.next_offset


def read(partition: PartitionFetcher, *epochs: int) -> int:
    """Fetch a batch of ten offsets for each epoch, and return the next offset."""
    position = 0
    for _ in epochs:
        position = offset_after(partition.fetch(position))
    return position


def test_a_leader_is_asked_until_it_has_the_same_records() -> None:
    """The error has the exact offset; the position stays where it is meanwhile."""
    client, partition = fetcher(
        fetched(1, 0, 9),
        fetched(3, 10, 19),
        fetched(5, 20, 29),
        diverging(4, 25),
        diverging(2, 15),
        fetched(1, 5),
    )
    position = read(partition, 1, 3, 5)
    assert offset_after(partition.fetch(position)) == position == 30
    assert offset_after(partition.fetch(position)) == position
    with pytest.raises(LogTruncatedError) as caught:
        partition.fetch(position)
    assert client.asked == [(0, -1), (10, 1), (20, 3), (30, 5), (20, 3), (10, 1)]
    assert (caught.value.offset, caught.value.diverges_at) == (30, 10)


def test_a_log_that_begins_after_the_difference_was_truncated_too() -> None:
    """An offset out of range is the answer to a question about the difference."""
    out_of_range = failed(kafka_errors.OffsetOutOfRangeError)
    _, partition = fetcher(fetched(1, 0, 9), diverging(1, 4), out_of_range)
    position = read(partition, 1)
    partition.fetch(position)
    with pytest.raises(LogTruncatedError) as caught:
        partition.fetch(position)
    assert (caught.value.offset, caught.value.diverges_at) == (10, 4)


@pytest.mark.parametrize(
    "error", [kafka_errors.FencedLeaderEpochError, kafka_errors.UnknownLeaderEpochError]
)
def test_a_broker_with_another_epoch_is_left(error: type[kafka_errors.KafkaError]) -> None:
    """The metadata are old, or the broker's are: they are asked for again, and the leader too."""
    client, partition = fetcher(fetched(1, 0, 9), failed(error), fetched(1, 10, 19))
    position = read(partition, 1)
    assert offset_after(partition.fetch(position)) == position
    assert client.invalidated == 1
    assert offset_after(partition.fetch(position)) == 20


def test_a_replica_that_lags_is_left_for_the_leader() -> None:
    """Only the leader knows where the log ends."""
    client, partition = fetcher(fetched(1, 0, 9), diverging(1, 4), fetched(1, 10, 19))
    position = read(partition, 1)
    client.is_replica = True
    assert offset_after(partition.fetch(position)) == position
    assert offset_after(partition.fetch(position)) == 20


def test_an_answer_that_tells_nothing_moves_no_offset() -> None:
    """The leader is not asked for that epoch again, and reading goes on."""
    client, partition = fetcher(
        fetched(2, 0, 9), diverging(-1, -1), fetched(2, 10, 19), fetched(3, 20, 29)
    )
    position = read(partition, 2)
    assert offset_after(partition.fetch(position)) == position
    assert offset_after(partition.fetch(position)) == 20
    assert offset_after(partition.fetch(20)) == 30
    assert client.asked[1:] == [(10, 2), (10, -1), (20, 2)]


def test_an_epoch_that_goes_back_after_doubt_is_another_log() -> None:
    """A leader has an earlier epoch up to a larger offset than was read."""
    _, partition = fetcher(fetched(2, 0, 9), fetched(4, 10, 19), diverging(3, 40), fetched(3, 20))
    position = read(partition, 2, 4)
    assert offset_after(partition.fetch(position)) == position
    with pytest.raises(LogTruncatedError) as caught:
        partition.fetch(position)
    assert (caught.value.offset, caught.value.diverges_at) == (20, 10)


# Brokers that do not compare epochs themselves


class Metadata:
    """Answers the request for the end of an epoch."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.requests: list[Any] = []

    def send(self, request: Any, node: int) -> object:
        assert node == NODE
        self.requests.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def answered(
    epoch: int, end_offset: int, error_code: int = 0, partition: TopicPartition = PARTITION
) -> Any:
    result = THEIR_TOPIC.EpochEndOffset(
        error_code=error_code,
        partition=partition.partition,
        leader_epoch=epoch,
        end_offset=end_offset,
    )
    topic = THEIR_TOPIC(topic=partition.topic, partitions=[result])
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=[topic])


def epochs_read() -> FetchedEpochs:
    epochs = FetchedEpochs()
    assert epochs.append(5, 0) is None
    return epochs


def ask(answer: object, epochs: FetchedEpochs, leader_epoch: int = 7) -> EpochEndOffset | None:
    metadata: Any = answer if isinstance(answer, Metadata) else Metadata(answer)
    position = FetchPosition(10, epochs.last, leader_epoch)
    return find_other_log(metadata, NODE, PARTITION, position, epochs)


def test_a_new_leader_is_asked_once() -> None:
    """The request has the epoch that was read, and the leader's own; older leaders have the log."""
    metadata, epochs = Metadata(answered(5, 10)), epochs_read()
    assert [ask(metadata, epochs, leader) for leader in (5, 7, 7, 6)] == [None] * 4
    [request] = metadata.requests
    [topic] = request.topics
    [asked] = topic.partitions
    assert (topic.topic, asked.partition, request.replica_id) == ("t", 0, -1)
    assert (asked.leader_epoch, asked.current_leader_epoch) == (5, 7)


@pytest.mark.parametrize(("epoch", "end_offset"), [(5, 9), (4, 12), (-1, -1)])
def test_a_leader_with_another_log_is_asked_again(epoch: int, end_offset: int) -> None:
    """Its answer is for the caller, who decides."""
    metadata, epochs = Metadata(answered(epoch, end_offset)), epochs_read()
    assert [ask(metadata, epochs) for _ in range(2)] == [EpochEndOffset(epoch, end_offset)] * 2
    assert len(metadata.requests) == 2


def test_a_leader_that_does_not_know_is_asked_later() -> None:
    """An error, and an answer without the partition, say nothing."""
    epochs = epochs_read()
    fenced = kafka_errors.FencedLeaderEpochError
    with pytest.raises(fenced):
        ask(answered(-1, -1, fenced.errno), epochs)
    with pytest.raises(kafka_errors.KafkaProtocolError, match="leaves out t-0"):
        ask(answered(5, 9, partition=TopicPartition("t", 1)), epochs)
    assert not epochs.is_confirmed(7)


def test_a_broker_that_is_too_old_is_read_without_asking() -> None:
    """Before Kafka 2.3 only brokers may ask."""
    epochs = epochs_read()
    assert ask(kafka_errors.IncompatibleBrokerVersion(), epochs) is None
