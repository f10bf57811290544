from pyspark_kafka.domain.reading.near_replicas import LEASE_S, MAX_LAG_S, NearReplicas
from pyspark_kafka.domain.topic_partition import TopicPartition

FIRST, SECOND = (TopicPartition("t", number) for number in (0, 1))
REPLICA = 7
NOW = 1_000.0


def near(poll_timeout_s: float = 120.0, lease_s: float = 300.0) -> NearReplicas:
    """Return replicas, of which the first partition has one."""
    made = NearReplicas(poll_timeout_s, lease_s)
    made.prefer(FIRST, REPLICA, NOW)
    return made


def test_a_replica_is_fetched_from_until_its_lease_ends():
    replicas = near()
    assert (replicas.of(FIRST), replicas.of(SECOND)) == (REPLICA, None)
    assert replicas.expire([FIRST, SECOND], NOW + LEASE_S - 1) == []
    assert replicas.expire([FIRST, SECOND], NOW + LEASE_S) == [FIRST]
    assert replicas.of(FIRST) is None
    assert not replicas.is_avoided(FIRST, NOW + LEASE_S)


def test_a_lease_ends_with_the_metadata():
    assert near(lease_s=2.0).expire([FIRST, SECOND], NOW + 2) == [FIRST]


def test_after_each_failure_the_leader_answers_for_longer():
    replicas = near()
    for pause_s in (30, 60, 120, 240, 480, 600, 600):
        replicas.prefer(FIRST, REPLICA, NOW)
        replicas.fail(FIRST, NOW)
        assert replicas.of(FIRST) is None
        assert replicas.is_avoided(FIRST, NOW + pause_s - 1)
        assert not replicas.is_avoided(FIRST, NOW + pause_s)


def test_a_replica_with_records_is_trusted_again():
    replicas = near()
    replicas.fail(FIRST, NOW)
    replicas.prefer(FIRST, REPLICA, NOW + LEASE_S)
    assert not replicas.has_answered(FIRST, NOW + LEASE_S, is_empty=False)
    replicas.fail(FIRST, NOW + LEASE_S)
    assert not replicas.is_avoided(FIRST, NOW + 2 * LEASE_S)


def test_a_failure_of_a_leader_avoids_no_replica():
    replicas = near()
    replicas.fail(SECOND, NOW)
    assert not replicas.is_avoided(SECOND, NOW)


def test_a_replica_is_behind_if_it_has_nothing_for_too_long():
    replicas = near()
    assert not replicas.has_answered(FIRST, NOW, is_empty=True)
    assert not replicas.has_answered(FIRST, NOW + MAX_LAG_S, is_empty=True)
    assert replicas.has_answered(FIRST, NOW + MAX_LAG_S + 1, is_empty=True)


def test_records_end_the_wait_for_a_replica():
    replicas = near()
    replicas.has_answered(FIRST, NOW, is_empty=True)
    replicas.has_answered(FIRST, NOW + MAX_LAG_S, is_empty=False)
    assert not replicas.has_answered(FIRST, NOW + MAX_LAG_S + 1, is_empty=True)


def test_a_leader_may_have_nothing_for_as_long_as_it_likes():
    replicas = near()
    assert not replicas.has_answered(SECOND, NOW, is_empty=True)
    assert not replicas.has_answered(SECOND, NOW + 2 * MAX_LAG_S, is_empty=True)


def test_half_of_the_wait_for_records_is_left_for_the_leader():
    replicas = near(poll_timeout_s=2.0)
    assert not replicas.has_answered(FIRST, NOW, is_empty=True)
    assert replicas.has_answered(FIRST, NOW + 1.1, is_empty=True)


def test_a_replica_that_had_nothing_of_its_leaders_records_is_avoided():
    """A leader says where its log ends when it names a replica."""
    replicas = near()
    replicas.has_answered(FIRST, NOW, is_empty=True)
    after = NOW + LEASE_S
    assert replicas.expire([FIRST, SECOND], after) == [FIRST]
    replicas.prefer(FIRST, REPLICA, after, has_more=True)
    assert replicas.of(FIRST) is None
    assert replicas.is_avoided(FIRST, after)


def test_a_replica_that_had_nothing_since_there_was_nothing_is_kept():
    replicas = near()
    replicas.has_answered(FIRST, NOW, is_empty=True)
    replicas.prefer(FIRST, REPLICA, NOW + LEASE_S)
    assert replicas.of(FIRST) == REPLICA
