"""What librdkafka's errors say of a truncated log."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent.log_truncation import knows_epochs, require_same_log
from pyspark_kafka.domain.reading.errors import LogTruncatedError
from pyspark_kafka.domain.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)
CODE = KafkaError._AUTO_OFFSET_RESET

TRUNCATED = (
    "Partition log truncation detected at offset 1500 (leader epoch 3): broker end offset is 500 "
    "(offset leader epoch 2). Reset to INVALID.: Local: Partition log truncation detected "
    "(broker 2)"
)
NO_EPOCH = (
    "No epoch found less or equal to offset 1500 (leader epoch 3): broker end offset is -1 (offset "
    "leader epoch -1). Reset using configured policy.: Local: Partition log truncation detected "
    "(broker 2)"
)
OUT_OF_RANGE = (
    "fetch failed due to requested offset not available on the broker: Broker: Offset out of range "
    "(broker 2)"
)


def test_an_error_says_where_a_log_was_truncated() -> None:
    """The first offset that differs is the end of the leader's epoch."""
    error = KafkaError(CODE, TRUNCATED)
    assert knows_epochs(error)
    with pytest.raises(LogTruncatedError) as caught:
        require_same_log(PARTITION, 1_500, error)
    assert (caught.value.partition, caught.value.offset) == (PARTITION, 1_500)
    assert caught.value.diverges_at == 500


@pytest.mark.parametrize("offset", [0, 499, 500])
def test_what_was_only_fetched_ahead_is_no_loss(offset: int) -> None:
    """The truncated records were in librdkafka's queue, and never read."""
    require_same_log(PARTITION, offset, KafkaError(CODE, TRUNCATED))


@pytest.mark.parametrize("text", [NO_EPOCH, OUT_OF_RANGE, ""])
def test_other_errors_say_nothing(text: str) -> None:
    """An offset out of range has the same code; an unknown epoch has no end."""
    error = KafkaError(CODE, text)
    require_same_log(PARTITION, 1_500, error)
    assert knows_epochs(error) == (text != NO_EPOCH)
