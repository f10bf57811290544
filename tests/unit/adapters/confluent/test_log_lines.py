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


SIMILAR: Final = f"{OLD[:-1]}A"
LINES: Final = {
    "another id is another topic": "t OLD NEW t, t OLD NEW",
    "a topic that was forgotten is compared with its last id": "t NONE OLD, t NONE NEW t",
    "topics do not share ids": "t.2 NONE NEW, t OLD NEW t",
    "a broker that lags behind says nothing new": "t OLD NEW t, t NEW OLD, t OLD NEW",
    "a broker without ids says nothing": "t OLD NONE, t NONE OLD",
    "all characters of an id are compared": "t OLD SIMILAR t, t SIMILAR OLD, t OLD SIMILAR",
}
"""Lines to a consumer that knows a topic, each with the topic that it says was created again."""


@pytest.fixture
def ids():
    """Return the ids of a consumer that knows one topic."""
    ids = TopicIds()
    assert ids.read_line(line("t", NONE, OLD)) is None
    return ids


@pytest.mark.parametrize("rule", LINES)
def test_a_topic_is_another_if_its_id_is(ids, rule):
    named = {"NONE": NONE, "OLD": OLD, "NEW": NEW, "SIMILAR": SIMILAR}
    told = []
    for text in LINES[rule].split(", "):
        topic, old, new, *recreated = text.split()
        found = ids.read_line(line(topic, named[old], named[new]))
        assert ([] if found is None else [found]) == recreated
        told += recreated
    assert (ids.recreations("t"), ids.recreations("u")) == (len(told), 0)


def test_a_topic_whose_first_line_was_missed_is_compared_with_the_id_before():
    assert TopicIds().read_line(line("t", OLD, NEW)) == "t"


@pytest.mark.parametrize("other", ["", "Topic t [0] Leader 1 Epoch 0", "Topic t changed"])
def test_other_lines_are_ignored(ids, other):
    assert ids.read_line(other) is None
    assert ids.recreations("t") == 0


@pytest.mark.parametrize(
    ("given", "passed"), [({}, "metadata"), ({"debug": "conf,fetch"}, "conf,fetch,metadata")]
)
def test_the_users_own_lines_are_logged_as_well(given, passed):
    assert topic_debug(given) == {"debug": passed}


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
