"""What librdkafka's lines say of topics that were created again."""

from __future__ import annotations

from typing import Final

import pytest

from pyspark_kafka.adapters.confluent.topic_ids import TopicIds, topic_debug

NONE: Final = "AAAAAAAAAAAAAAAAAAAAAA"
OLD: Final = "T8Fhgk5_QQeZ1oLyBc8ZEQ"
NEW: Final = "wU0yXbL4S7-Dj2VxH0tLrg"


def line(topic: str, old: str, new: str) -> str:
    return f"[thrd:main]: Topic {topic} changed id from {old} to {new}"


@pytest.fixture
def ids() -> TopicIds:
    """Return the ids of a consumer that knows one topic."""
    ids = TopicIds()
    assert ids.read_line(line("t", NONE, OLD)) is None
    return ids


def test_another_id_is_another_topic(ids: TopicIds) -> None:
    """It is told once, and counted."""
    assert ids.read_line(line("t", OLD, NEW)) == "t"
    assert ids.read_line(line("t", OLD, NEW)) is None
    assert (ids.recreations("t"), ids.recreations("u")) == (1, 0)


def test_a_topic_that_was_forgotten_is_compared_with_its_last_id(ids: TopicIds) -> None:
    """The library may have forgotten a topic, and then learns of it like of a new one."""
    assert ids.read_line(line("t", NONE, OLD)) is None
    assert ids.read_line(line("t", NONE, NEW)) == "t"


def test_a_topic_whose_first_line_was_missed_is_compared_with_the_id_before() -> None:
    """The line names both ids."""
    assert TopicIds().read_line(line("t", OLD, NEW)) == "t"


def test_topics_do_not_share_ids(ids: TopicIds) -> None:
    """Each has its own."""
    assert ids.read_line(line("t.2", NONE, NEW)) is None
    assert ids.read_line(line("t", OLD, NEW)) == "t"


def test_a_broker_that_lags_behind_says_nothing_new(ids: TopicIds) -> None:
    """Its old id is no third topic, and neither is the new one that follows."""
    ids.read_line(line("t", OLD, NEW))
    assert ids.read_line(line("t", NEW, OLD)) is None
    assert ids.read_line(line("t", OLD, NEW)) is None


def test_a_broker_without_ids_says_nothing(ids: TopicIds) -> None:
    """One of Kafka before 2.8, while the others are upgraded."""
    assert ids.read_line(line("t", OLD, NONE)) is None
    assert ids.read_line(line("t", NONE, OLD)) is None
    assert ids.recreations("t") == 0


@pytest.mark.parametrize("other", ["", "Topic t [0] Leader 1 Epoch 0", "Topic t changed"])
def test_other_lines_are_ignored(ids: TopicIds, other: str) -> None:
    """Nothing is counted."""
    assert ids.read_line(other) is None
    assert ids.recreations("t") == 0


@pytest.mark.parametrize(
    ("given", "passed"), [({}, "metadata"), ({"debug": "conf,fetch"}, "conf,fetch,metadata")]
)
def test_the_users_own_lines_are_logged_as_well(given: dict[str, str], passed: str) -> None:
    """The context for ids is added to them."""
    assert topic_debug(given) == {"debug": passed}


def test_an_id_is_compared_with_all_of_its_characters() -> None:
    """A quarter of the ids end in the letter of which the id of no topic consists."""
    ids, before = TopicIds(), f"{OLD[:-1]}A"
    for old, new in ((before, NEW), (NEW, before), (before, NEW)):
        ids.read_line(line("t", old, new))
    assert ids.recreations("t") == 1
