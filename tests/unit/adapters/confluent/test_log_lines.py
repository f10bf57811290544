"""librdkafka's lines about topics that were created again, and errors about truncated logs."""

from typing import Final

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent.log_lines import (
    TopicIds,
    knows_epochs,
    require_same_log,
    topic_debug,
)
from pyspark_kafka.domain.reading.errors import LogTruncatedError
from pyspark_kafka.domain.topic_partition import TopicPartition

NONE: Final = "AAAAAAAAAAAAAAAAAAAAAA"
OLD: Final = "T8Fhgk5_QQeZ1oLyBc8ZEQ"
NEW: Final = "wU0yXbL4S7-Dj2VxH0tLrg"

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


def line(topic: str, old: str, new: str) -> str:
    return f"[thrd:main]: Topic {topic} changed id from {old} to {new}"


@pytest.fixture
def ids():
    """Return the ids of a consumer that knows one topic."""
    ids = TopicIds()
    assert ids.read_line(line("t", NONE, OLD)) is None
    return ids


def test_another_id_is_another_topic(ids):
    assert ids.read_line(line("t", OLD, NEW)) == "t"
    assert ids.read_line(line("t", OLD, NEW)) is None
    assert (ids.recreations("t"), ids.recreations("u")) == (1, 0)


def test_a_topic_that_was_forgotten_is_compared_with_its_last_id(ids):
    """The library may have forgotten a topic, and then learns of it like of a new one."""
    assert ids.read_line(line("t", NONE, OLD)) is None
    assert ids.read_line(line("t", NONE, NEW)) == "t"


def test_a_topic_whose_first_line_was_missed_is_compared_with_the_id_before():
    assert TopicIds().read_line(line("t", OLD, NEW)) == "t"


def test_topics_do_not_share_ids(ids):
    assert ids.read_line(line("t.2", NONE, NEW)) is None
    assert ids.read_line(line("t", OLD, NEW)) == "t"


def test_a_broker_that_lags_behind_says_nothing_new(ids):
    ids.read_line(line("t", OLD, NEW))
    assert ids.read_line(line("t", NEW, OLD)) is None
    assert ids.read_line(line("t", OLD, NEW)) is None


def test_a_broker_without_ids_says_nothing(ids):
    assert ids.read_line(line("t", OLD, NONE)) is None
    assert ids.read_line(line("t", NONE, OLD)) is None
    assert ids.recreations("t") == 0


@pytest.mark.parametrize("other", ["", "Topic t [0] Leader 1 Epoch 0", "Topic t changed"])
def test_other_lines_are_ignored(ids, other):
    assert ids.read_line(other) is None
    assert ids.recreations("t") == 0


@pytest.mark.parametrize(
    ("given", "passed"), [({}, "metadata"), ({"debug": "conf,fetch"}, "conf,fetch,metadata")]
)
def test_the_users_own_lines_are_logged_as_well(given, passed):
    assert topic_debug(given) == {"debug": passed}


def test_an_id_is_compared_with_all_of_its_characters():
    ids, before = TopicIds(), f"{OLD[:-1]}A"
    for old, new in ((before, NEW), (NEW, before), (before, NEW)):
        ids.read_line(line("t", old, new))
    assert ids.recreations("t") == 1


def test_an_error_says_where_a_log_was_truncated():
    error = KafkaError(CODE, TRUNCATED)
    assert knows_epochs(error)
    with pytest.raises(LogTruncatedError) as caught:
        require_same_log(PARTITION, 1_500, error)
    assert (caught.value.partition, caught.value.offset) == (PARTITION, 1_500)
    assert caught.value.diverges_at == 500


@pytest.mark.parametrize("offset", [0, 499, 500])
def test_what_was_only_fetched_ahead_is_no_loss(offset):
    require_same_log(PARTITION, offset, KafkaError(CODE, TRUNCATED))


@pytest.mark.parametrize("text", [NO_EPOCH, OUT_OF_RANGE, ""])
def test_other_errors_say_nothing(text):
    error = KafkaError(CODE, text)
    require_same_log(PARTITION, 1_500, error)
    assert knows_epochs(error) == (text != NO_EPOCH)
