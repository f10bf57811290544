"""When metadata are requested again, of whom, and what they say."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.cluster.cluster_view import ClusterView, Leadership, TopicView
from pyspark_kafka.domain.cluster.metadata_age import MIN_AGE_S, REFRESH_AGAIN_S, MetadataAge
from pyspark_kafka.domain.cluster.topics import Broker
from pyspark_kafka.domain.topic_partition import TopicPartition

FIRST, SECOND = (TopicPartition("t", number) for number in (0, 1))


@given(st.floats(0, 1_000), st.floats(0, 10_000))
def test_metadata_are_too_old_after_their_age(max_age_s, now):
    age = MetadataAge(max_age_s)
    assert not age.is_outdated(now)
    assert not age.asks(now)
    age.received(now)
    limit_s = max(max_age_s, MIN_AGE_S)
    assert not age.is_outdated(now + 0.99 * limit_s)
    later = now + 1.01 * limit_s + 0.001
    assert age.is_outdated(later)
    # Another broker is asked than the one that may be cut off from the cluster.
    assert age.asks(later)
    assert not age.is_outdated(later)
    assert age.is_outdated(later + min(limit_s, REFRESH_AGAIN_S) + 0.001)


def test_a_broker_that_names_a_wrong_leader_again_is_left():
    """Partitions are refused in turns."""
    age = MetadataAge(300)
    for partition, asks_another in ((FIRST, False), (SECOND, False), (FIRST, True)):
        age.invalidate(partition)
        assert age.is_stale(partition)
        assert age.asks(0) is asks_another
        age.received(0)
        assert not age.is_stale(partition)


def test_another_broker_is_asked_after_an_age_although_metadata_are_requested_more_often():
    """Leases of replicas end every few seconds, and the one that is asked may be cut off."""
    age = MetadataAge(10)
    asked = []
    for now in range(0, 25, 3):
        asked.append(age.asks(now))
        age.received(now)
    assert asked == [False, False, False, False, True, False, False, False, True]


def test_what_metadata_say():
    topic_id = UUID(int=7)
    broker = Broker(1, "host", 9092, "rack")
    topic = TopicView({0: Leadership(1, 5), 1: Leadership(None, 6)}, topic_id)
    view = ClusterView({1: broker}, {"t": topic})
    assert view.leadership(FIRST) == (1, 5)
    assert view.leadership(SECOND) == (None, 6)
    assert (view.has(SECOND), view.has(TopicPartition("t", 2))) == (True, False)
    assert view.topic("t").topic_id == topic_id
    assert view.address(1) == ("host", 9092)
    assert view.node_at(("host", 9092)) == 1


@pytest.mark.parametrize("view", [ClusterView(), ClusterView({}, {"t": TopicView()})])
def test_what_is_not_known(view):
    assert view.leadership(FIRST) == (None, -1)
    assert not view.has(FIRST)
    assert view.topic("t").topic_id is None
    assert view.address(1) is None
    assert view.node_at(("host", 9092)) is None
