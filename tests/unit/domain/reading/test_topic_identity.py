"""Whether a topic is still the one that was read."""

from __future__ import annotations

from uuid import UUID

import pytest

from pyspark_kafka.domain.reading.topic_identity import TopicIdentity

OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.fixture
def topic() -> TopicIdentity:
    """Return the identity of a topic that a leader has returned records of."""
    made = TopicIdentity()
    made.see(OLD)
    made.accept()
    return made


def test_another_id_after_a_refused_one_is_another_topic(topic: TopicIdentity) -> None:
    """Both the leader and the metadata say so; the id to fetch from stays."""
    topic.refuse()
    topic.see(NEW)
    assert topic.is_recreated
    assert topic.topic_id == OLD


def test_a_refused_id_alone_says_nothing(topic: TopicIdentity) -> None:
    """The leader may lag."""
    topic.refuse()
    assert not topic.is_recreated


def test_metadata_with_another_id_may_be_of_a_broker_that_lags(topic: TopicIdentity) -> None:
    """As long as the leader knows the id, its records belong to the same topic."""
    topic.see(NEW)
    assert not topic.is_recreated
    topic.accept()
    topic.see(OLD)
    topic.refuse()
    assert not topic.is_recreated


def test_a_leader_may_learn_of_an_id_later(topic: TopicIdentity) -> None:
    """A refusal says nothing once the id is known again."""
    topic.refuse()
    topic.see(OLD)
    topic.accept()
    topic.see(NEW)
    assert not topic.is_recreated


def test_metadata_from_before_the_first_fetch_may_be_old() -> None:
    """Nothing was read of the topic that they name: the newest id counts."""
    topic = TopicIdentity()
    topic.see(OLD)
    topic.refuse()
    topic.see(NEW)
    assert not topic.is_recreated
    assert topic.topic_id == NEW


def test_a_leader_that_takes_no_ids_cannot_refuse_one(topic: TopicIdentity) -> None:
    """Metadata with another id are all that tells a new topic then."""
    topic.is_fetched_by_id = False
    topic.see(NEW)
    assert topic.is_recreated


def test_metadata_without_an_id_say_nothing(topic: TopicIdentity) -> None:
    """The topic may be deleted, and a broker may be older than topic ids."""
    topic.refuse()
    topic.see(None)
    assert not topic.is_recreated
    assert topic.topic_id == OLD


def test_a_cluster_that_gets_ids_has_the_same_topics() -> None:
    """Metadata have an id after an upgrade; the topic was read before."""
    topic = TopicIdentity()
    topic.see(None)
    topic.accept()
    topic.see(OLD)
    topic.refuse()
    assert not topic.is_recreated
    assert topic.topic_id == OLD
