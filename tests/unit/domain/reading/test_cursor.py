from uuid import UUID

import pytest

from pyspark_kafka.domain.reading.cursor import (
    MAX_BACKOFF_S,
    Cursor,
    FetchError,
    Step,
    TopicIdentity,
)
from pyspark_kafka.domain.reading.errors import CorruptBatchError, LogTruncatedError
from pyspark_kafka.domain.reading.leader_epochs import NO_EPOCH, NO_OFFSET, EpochEndOffset
from pyspark_kafka.domain.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)
READ_TO = 30
LEADER, OTHER, THIRD, FOURTH = range(4)


@pytest.fixture
def cursor():
    """Return a cursor after ten offsets of each of three epochs."""
    made = Cursor(PARTITION, READ_TO, until_offset=40)
    for number, epoch in enumerate((1, 3, 5)):
        assert made.epochs.append(epoch, 10 * number) is None
    return made


def answer(
    cursor: Cursor,
    error: FetchError | None = None,
    diverging: EpochEndOffset | None = None,
    *,
    is_leader: bool = True,
) -> Step:
    return cursor.answered(error, diverging, LEADER, 0.0, is_leader=is_leader)


def test_records_end_a_series_of_failures(cursor):
    cursor.back_off(7.0, 0.1)
    assert answer(cursor) is Step.TAKE_RECORDS
    assert cursor.failures == 0


@pytest.mark.parametrize("error", [FetchError.RETRIABLE, FetchError.UNKNOWN_ID])
def test_an_error_that_may_pass_is_one_of_the_leaders(cursor, error):
    """Another broker may lead the partition by now."""
    assert answer(cursor, error) is Step.FIND_LEADER
    assert not cursor.is_out_of_range


def test_a_refused_id_and_another_one_are_another_topic(cursor):
    cursor.topic.see(UUID(int=1), OTHER)
    cursor.topic.accept(LEADER)
    answer(cursor, FetchError.UNKNOWN_ID)
    cursor.topic.see(UUID(int=2), OTHER)
    assert cursor.topic.is_recreated


def test_a_leader_may_say_that_an_offset_is_out_of_range(cursor):
    assert answer(cursor, FetchError.OUT_OF_RANGE) is Step.FIND_LEADER
    assert cursor.is_out_of_range


def test_a_broker_that_cannot_read_its_log_is_an_error(cursor):
    with pytest.raises(CorruptBatchError, match="its broker cannot read it"):
        answer(cursor, FetchError.CORRUPT)


@pytest.mark.parametrize(
    ("error", "diverging"), [(FetchError.OUT_OF_RANGE, None), (None, EpochEndOffset(3, 15))]
)
def test_a_replica_that_lags_is_left(cursor, error, diverging):
    """Only the leader knows where the log ends; nothing moves."""
    assert answer(cursor, error, diverging, is_leader=False) is Step.LEAVE_REPLICA
    assert (cursor.offset, cursor.is_out_of_range) == (READ_TO, False)


@pytest.mark.parametrize("last", [None, FetchError.OUT_OF_RANGE])
def test_a_leader_is_asked_until_it_has_the_same_records(cursor, last):
    assert answer(cursor, diverging=EpochEndOffset(4, 25)) is Step.FETCH
    assert (cursor.offset, cursor.epochs.last) == (20, 3)
    assert answer(cursor, diverging=EpochEndOffset(2, 15)) is Step.FETCH
    assert (cursor.offset, cursor.epochs.last) == (10, 1)
    assert answer(cursor, FetchError.RETRIABLE) is Step.FIND_LEADER
    for _ in range(2):
        with pytest.raises(LogTruncatedError) as caught:
            answer(cursor, last)
        assert (caught.value.offset, caught.value.diverges_at) == (READ_TO, 10)


def test_an_answer_that_tells_nothing_moves_no_offset(cursor):
    assert answer(cursor, diverging=EpochEndOffset(-1, NO_OFFSET)) is Step.FIND_LEADER
    assert (cursor.offset, cursor.truncated_from) == (READ_TO, None)


def test_a_cursor_is_finished_at_its_end(cursor):
    assert not cursor.is_finished
    cursor.advance(50, None)
    assert (cursor.offset, cursor.is_finished) == (50, True)


def test_records_of_another_log_are_not_passed(cursor):
    with pytest.raises(LogTruncatedError) as caught:
        cursor.advance(50, 20)
    assert (caught.value.offset, caught.value.diverges_at) == (READ_TO, 20)
    with pytest.raises(LogTruncatedError) as again:
        answer(cursor)
    assert (again.value.offset, again.value.diverges_at) == (READ_TO, 20)


def test_a_cursor_moves_once_its_records_are_decoded(cursor):
    """Another broker's records follow them."""
    cursor.retry_at = 3.0
    assert not cursor.may_move(2.0)
    assert cursor.may_move(3.0)
    cursor.is_undecoded = True
    assert not cursor.may_move(3.0)


@pytest.mark.parametrize(
    ("epoch", "elsewhere"), [(4, False), (5, False), (6, True), (NO_EPOCH, True)]
)
def test_metadata_of_an_older_epoch_move_no_cursor(cursor, epoch, elsewhere):
    cursor.follow(5)
    assert cursor.is_led_elsewhere(epoch) is elsewhere


@pytest.mark.parametrize(
    ("topic_id", "known"), [(UUID(int=1), 6), (None, 5)], ids=["with ids", "without ids"]
)
def test_a_former_leader_is_known_by_its_epoch(cursor, topic_id, known):
    """Without ids, the older epoch may be one of a topic that was created again."""
    cursor.topic.see(topic_id, OTHER)
    cursor.follow(6)
    assert [cursor.was_led(epoch) for epoch in (-1, 5, 6, 7)] == [False, known == 6, False, False]
    cursor.follow(5)
    assert cursor.leader_epoch == known


def test_the_epochs_of_another_topic_begin_again(cursor):
    """Its first fetch may come before any answer about the old one."""
    for topic_id, epoch in ((UUID(int=1), 5), (UUID(int=2), 0)):
        cursor.see(topic_id, OTHER)
        cursor.follow(epoch)
    assert cursor.leader_epoch == 0


def test_an_unknown_epoch_is_no_older_one(cursor):
    cursor.topic.see(UUID(int=1), OTHER)
    for epoch in (6, NO_EPOCH):
        cursor.follow(epoch)
    assert cursor.leader_epoch == NO_EPOCH


def test_pauses_grow_from_zero_to_a_bound(cursor):
    pauses = []
    for _ in range(8):
        cursor.back_off(7.0, 0.1)
        pauses.append(round(cursor.retry_at - 7.0, 3))
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8, MAX_BACKOFF_S, MAX_BACKOFF_S, MAX_BACKOFF_S]


OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.fixture
def topic():
    """Return the identity of a topic that a leader has returned records of."""
    made = TopicIdentity()
    made.see(OLD, OTHER)
    made.accept(LEADER)
    return made


def test_another_id_after_a_refused_one_is_another_topic(topic):
    topic.refuse(LEADER, 0.0)
    topic.see(NEW, OTHER)
    assert topic.is_recreated
    assert topic.topic_id == OLD


def test_a_refused_id_alone_says_nothing(topic):
    """The leader may lag."""
    topic.refuse(LEADER, 0.0)
    assert not topic.is_recreated


def test_metadata_with_another_id_may_be_of_a_broker_that_lags(topic):
    """As long as the leader knows the id, its records belong to the same topic."""
    topic.see(NEW, OTHER)
    assert not topic.is_recreated
    topic.accept(LEADER)
    topic.see(OLD, OTHER)
    topic.refuse(LEADER, 0.0)
    assert not topic.is_recreated


def test_a_leader_may_learn_of_an_id_later(topic):
    topic.refuse(LEADER, 0.0)
    topic.see(OLD, OTHER)
    topic.accept(LEADER)
    topic.see(NEW, OTHER)
    assert not topic.is_recreated


def test_one_broker_that_lags_is_no_witness_for_itself(topic):
    """It leads the topic that it knows, and has not learned of the one that is read."""
    topic.refuse(THIRD, 0.0)
    topic.see(NEW, THIRD)
    assert not topic.is_recreated
    topic.refuse(THIRD, 0.0)
    topic.see(NEW, None)
    assert not topic.is_recreated


@pytest.mark.parametrize(
    ("refuser", "source"), [(LEADER, LEADER), (OTHER, OTHER), (THIRD, LEADER), (LEADER, THIRD)]
)
def test_a_broker_that_knew_a_topic_is_a_witness(topic, refuser, source):
    topic.refuse(refuser, 0.0)
    topic.see(NEW, source)
    assert topic.is_recreated


def test_two_brokers_that_never_knew_a_topic_may_both_lag_for_seconds(topic):
    """It was created a moment ago, and they still know the one before."""
    topic.see(NEW, FOURTH)
    for _ in range(9):
        topic.refuse(THIRD, 0.0)
        assert not topic.is_recreated
    topic.refuse(THIRD, 0.0)
    assert topic.is_recreated


def test_a_broker_that_is_cut_off_does_not_hide_that_others_refuse_an_id(topic):
    """It knows the topic before, and answers each time that its metadata were asked for."""
    for broker in [THIRD, FOURTH] * 5:
        topic.see(NEW, broker)
        topic.refuse(broker, 0.0)
        is_recreated = topic.is_recreated
        topic.see(OLD, OTHER)
        topic.accept(OTHER)
    assert is_recreated


def test_what_a_broker_refused_before_it_learned_of_a_topic_does_not_count(topic):
    for broker in range(10, 30):
        topic.see(NEW, FOURTH)
        topic.refuse(broker, 0.0)
        assert not topic.is_recreated
        topic.accept(broker)


def test_a_refusal_of_long_ago_does_not_count(topic):
    """That broker has not been asked again, and another one that lags appears now."""
    for _ in range(9):
        topic.refuse(THIRD, 0.0)
    topic.see(NEW, FOURTH)
    topic.refuse(FOURTH, 601.0)
    assert not topic.is_recreated


def test_a_broker_that_knew_a_topic_may_refuse_it_for_a_moment(topic):
    """It has started again; meanwhile another one leads."""
    topic.refuse(LEADER, 0.0)
    topic.accept(OTHER)
    topic.see(NEW, THIRD)
    assert not topic.is_recreated


def test_a_broker_that_refuses_for_long_does_not_lag(topic):
    topic.see(NEW, THIRD)
    for _ in range(100):
        topic.refuse(THIRD, 0.0)
    assert topic.is_recreated


def test_metadata_from_before_the_first_fetch_may_be_old():
    """Nothing was read of the topic that they name: the newest id counts."""
    topic = TopicIdentity()
    topic.see(OLD, OTHER)
    topic.refuse(LEADER, 0.0)
    topic.see(NEW, OTHER)
    assert not topic.is_recreated
    assert topic.topic_id == NEW


def test_a_leader_that_takes_no_ids_cannot_refuse_one(topic):
    """Metadata with another id are the only sign of a new topic then."""
    topic.is_fetched_by_id = False
    topic.see(NEW, OTHER)
    assert topic.is_recreated


def test_metadata_without_an_id_say_nothing(topic):
    """The topic may be deleted, and a broker may be older than topic ids."""
    topic.refuse(LEADER, 0.0)
    topic.see(None, OTHER)
    assert not topic.is_recreated
    assert topic.topic_id == OLD


def test_a_cluster_that_gets_ids_has_the_same_topics():
    """Metadata have an id after an upgrade; the topic was read before."""
    topic = TopicIdentity()
    topic.see(None, OTHER)
    topic.accept(LEADER)
    topic.see(OLD, OTHER)
    topic.refuse(LEADER, 0.0)
    assert not topic.is_recreated
    assert topic.topic_id == OLD
