"""Data of ranges that are read later, and leaders that are asked whether their log differs."""

import struct
from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import Mock

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetForLeaderEpochResponse

from pyspark_kafka.adapters.kafka_python.brokers import Brokers, find_other_log
from pyspark_kafka.adapters.kafka_python.wire import (
    NO_REPLICA,
    FetchedData,
    FetchPosition,
    FetchResponse,
)
from pyspark_kafka.domain.reading.leader_epochs import EpochEndOffset, FetchedEpochs
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..options import source_of

PARTITION: Final = TopicPartition("t", 0)
NODE: Final = 3

THEIR_TOPIC = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult

BATCH = struct.pack(">qi", 7, 4) + b"rest"
FROM_7 = FetchPosition(7)


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def data(
    records: bytes, error: type[kafka_errors.KafkaError] = kafka_errors.NoError
) -> FetchedData:
    return FetchedData(error, NO_REPLICA, (), memoryview(bytearray(records)))


def held(sent: Mapping[TopicPartition, FetchedData], *, is_by_id: bool = True) -> Brokers:
    """Return what keeps what a broker has sent of expected ranges."""
    brokers = Brokers(source_of("kafka-python"))
    response = FetchResponse(kafka_errors.NoError, 0.0, sent)
    brokers.hold(response, {tp(number): FROM_7 for number in range(5)}, is_by_id=is_by_id)
    return brokers


def test_held_data_are_a_copy():
    """The memory of the response is used again."""
    sent = data(BATCH)
    brokers = held({tp(0): sent})
    sent.records[:] = bytes(len(BATCH))
    kept = brokers.expected.take(tp(0))
    assert kept is not None
    assert (bytes(kept.data.records), kept.position, kept.is_by_id) == (BATCH, FROM_7, True)


def test_only_whole_batches_are_held():
    """A partition with an error is not asked for together with others again."""
    sent = {
        tp(0): data(b""),
        tp(1): data(BATCH[:-1]),
        tp(2): data(BATCH, kafka_errors.NotLeaderForPartitionError),
        tp(4): data(struct.pack(">qi", 7, -1) + b"rest"),
    }
    brokers = held(sent, is_by_id=False)
    expected = brokers.expected
    assert [expected.take(tp(number)) for number in range(5)] == [None] * 5
    expected.expect([OffsetRange(tp(number), 7, 9) for number in range(5)])
    response = FetchResponse(kafka_errors.NoError, 0.0, sent)
    brokers.hold(response, {tp(2): FROM_7}, is_by_id=False)
    named = [one.partition.partition for one in expected.next_on(lambda _: True)]
    assert named == [0, 1, 3, 4]


# Brokers that do not compare epochs themselves


def metadata_with(answer: object) -> Any:
    """Return the metadata of a broker that answers the request for the end of an epoch."""
    error = answer if isinstance(answer, Exception) else None
    return Mock(send=Mock(return_value=answer, side_effect=error))


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
    metadata = answer if isinstance(answer, Mock) else metadata_with(answer)
    position = FetchPosition(10, epochs.last, leader_epoch)
    return find_other_log(metadata, NODE, PARTITION, position, epochs)


def test_a_new_leader_is_asked_once():
    metadata, epochs = metadata_with(answered(5, 10)), epochs_read()
    assert [ask(metadata, epochs, leader) for leader in (5, 7, 7, 6)] == [None] * 4
    [((request, node), _)] = metadata.send.call_args_list
    assert node == NODE
    [topic] = request.topics
    [asked] = topic.partitions
    assert (topic.topic, asked.partition, request.replica_id) == ("t", 0, -1)
    assert (asked.leader_epoch, asked.current_leader_epoch) == (5, 7)


@pytest.mark.parametrize(("epoch", "end_offset"), [(5, 9), (4, 12), (-1, -1)])
def test_a_leader_with_another_log_is_asked_again(epoch, end_offset):
    metadata, epochs = metadata_with(answered(epoch, end_offset)), epochs_read()
    assert [ask(metadata, epochs) for _ in range(2)] == [EpochEndOffset(epoch, end_offset)] * 2
    assert metadata.send.call_count == 2


def test_a_leader_that_does_not_know_is_asked_later():
    epochs = epochs_read()
    fenced = kafka_errors.FencedLeaderEpochError
    with pytest.raises(fenced):
        ask(answered(-1, -1, fenced.errno), epochs)
    with pytest.raises(kafka_errors.KafkaProtocolError, match="leaves out t-0"):
        ask(answered(5, 9, partition=TopicPartition("t", 1)), epochs)
    assert not epochs.is_confirmed(7)


def test_a_broker_that_is_too_old_is_read_without_asking():
    """Before Kafka 2.3 only brokers may ask."""
    epochs = epochs_read()
    assert ask(kafka_errors.IncompatibleBrokerVersion(), epochs) is None
