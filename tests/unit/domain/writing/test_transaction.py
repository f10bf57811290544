import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.writing.transaction import (
    LANES,
    NOTHING,
    DeliveryStats,
    SinkTaskId,
    Transaction,
    TransactionDescription,
    TransactionEnd,
    TransactionState,
    WriteResult,
    end_of,
    is_free,
    is_id_of_earlier_version,
    is_id_of_query,
    log_prefix,
    ms_left,
    query_id_prefix,
    run_prefix,
    short_digest,
)

PREFIX = "pyspark-kafka"

tasks = st.builds(
    SinkTaskId,
    st.sampled_from([f"7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a{number}" for number in (1, 2)]),
    st.sampled_from(["run 1", "run 2"]),
    st.integers(0, 3),
    st.integers(0, 111),
    st.integers(0, 11),
)


LOG = short_digest("/checkpoints/1/sinks/pyspark_kafka")
logs = st.sampled_from([LOG, short_digest("/checkpoints/2/sinks/pyspark_kafka")])


def test_an_id_has_the_prefix_the_query_the_log_the_run_the_task_and_the_lane():
    named = SinkTaskId("q", "run", 9, 2, LANES + 1).transactional_id("mine", LOG)
    assert named == f"mine-q-{LOG}-{short_digest('run')}-2-1"


@given(tasks, tasks, logs, logs)
def test_ids_are_shared_within_a_lane_of_one_run_alone(one, other, log, other_log):
    """A batch's number is not a part of them, so that they do not grow with batches."""
    is_shared = (one.query_id, one.run_id, one.partition, one.attempt % LANES, log) == (
        other.query_id,
        other.run_id,
        other.partition,
        other.attempt % LANES,
        other_log,
    )
    names = one.transactional_id(PREFIX, log), other.transactional_id(PREFIX, other_log)
    assert (names[0] == names[1]) is is_shared


@given(tasks, tasks, logs, logs)
def test_a_querys_transactions_are_found_by_their_beginning(one, other, log, other_log):
    name = other.transactional_id(PREFIX, other_log)
    is_of_query = one.query_id == other.query_id
    is_of_log = is_of_query and log == other_log
    assert name.startswith(query_id_prefix(PREFIX, one.query_id)) is is_of_query
    assert name.startswith(log_prefix(PREFIX, one.query_id, log)) is is_of_log
    run = run_prefix(f"{one.transactional_id(PREFIX, log)}-7")
    assert name.startswith(run) is (is_of_log and one.run_id == other.run_id)


def test_what_a_task_tells_crosses_to_the_driver():
    written = WriteResult(DeliveryStats(3, 30), Transaction("id", 1, 2))
    assert pickle.loads(pickle.dumps(written)) == written  # noqa: S301


@given(tasks, st.sampled_from([PREFIX, "other", None]), st.booleans())
def test_ids_of_a_query_are_told_from_others(task, prefix, knows_query):
    query_id = task.query_id if knows_query else None
    earlier = [f"{PREFIX}-{task.query_id}-{task.partition}-1{slot}" for slot in ("", "-0", "-15")]
    for ours in (f"{task.transactional_id(PREFIX, LOG)}-15", *earlier):
        assert is_id_of_query(ours, prefix, query_id) is (prefix != "other")
        assert not is_id_of_query(ours, prefix, "another query")
        assert not is_id_of_query(f"{ours}-x", prefix, query_id)
        is_earlier = ours in earlier
        assert is_id_of_earlier_version(ours, PREFIX, task.query_id) is is_earlier


ONE = Transaction("id", 7, 3)


def described(
    state: TransactionState = TransactionState.ONGOING,
    *,
    producer_id: int = 7,
    epoch: int = 3,
    started_ms: int = 1_000,
) -> TransactionDescription:
    return TransactionDescription(producer_id, epoch, state, started_ms, 500)


@pytest.mark.parametrize(
    ("description", "end"),
    [
        (None, TransactionEnd.FORGOTTEN),
        (described(TransactionState.EMPTY), None),
        (described(TransactionState.ONGOING), None),
        (described(TransactionState.PREPARE_COMMIT), TransactionEnd.COMMITTED),
        (described(TransactionState.COMPLETE_COMMIT), TransactionEnd.COMMITTED),
        (described(TransactionState.PREPARE_ABORT), TransactionEnd.ABORTED),
        (described(TransactionState.COMPLETE_ABORT), TransactionEnd.ABORTED),
        (described(TransactionState.PREPARE_ABORT, epoch=4), TransactionEnd.TIMED_OUT),
        (described(TransactionState.COMPLETE_ABORT, epoch=4), TransactionEnd.TIMED_OUT),
        (described(TransactionState.PREPARE_EPOCH_FENCE, epoch=4), TransactionEnd.TIMED_OUT),
        (described(TransactionState.EMPTY, epoch=4), TransactionEnd.REPLACED),
        (described(TransactionState.ONGOING, epoch=4), TransactionEnd.REPLACED),
        (described(TransactionState.COMPLETE_COMMIT, epoch=4), TransactionEnd.REPLACED),
        (described(TransactionState.EMPTY, epoch=5), TransactionEnd.FENCED),
        (described(TransactionState.ONGOING, epoch=5), TransactionEnd.FENCED),
        (described(TransactionState.ONGOING, epoch=2), TransactionEnd.FENCED),
        (described(TransactionState.ONGOING, producer_id=8, epoch=4), TransactionEnd.FENCED),
        (described(TransactionState.ONGOING, producer_id=8), TransactionEnd.FENCED),
    ],
)
def test_how_a_transaction_ended(description, end):
    assert end_of(ONE, description) is end


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (TransactionState.EMPTY, False),
        (TransactionState.ONGOING, True),
        (TransactionState.PREPARE_COMMIT, True),
        (TransactionState.PREPARE_ABORT, True),
        (TransactionState.PREPARE_EPOCH_FENCE, True),
        (TransactionState.COMPLETE_COMMIT, False),
        (TransactionState.COMPLETE_ABORT, False),
        (TransactionState.DEAD, False),
    ],
)
def test_ids_without_an_open_transaction_of_this_batch_are_free(state, *, is_open):
    found = described(state, started_ms=1_000)
    assert is_free(found, 1_000) is not is_open
    assert not is_free(found, 999)


def test_transactions_are_open_until_the_first_time_out():
    begun = [described(started_ms=1_000), described(started_ms=1_200)]
    assert ms_left(begun, 1_250, None) == 250
    assert ms_left([*begun, described(started_ms=-1)], 1_250, 900) == 250
    assert ms_left(begun, 1_600, 900) == -100
    assert ms_left([described(started_ms=-1)], 1_600, 900) is None
    assert ms_left([], 1_600, 900) is None


@given(st.lists(st.integers(0, 400), min_size=1), st.integers(0, 100), st.integers())
def test_clocks_may_differ(begun_after, later, difference):
    """No transaction is younger than 0 or older than its batch, whatever a coordinator's clock."""
    planned_ms, now_ms = 10**10, 10**10 + max(begun_after) + later
    begun = [described(started_ms=max(0, planned_ms + each + difference)) for each in begun_after]
    left_ms = ms_left(begun, now_ms, planned_ms)
    assert left_ms is not None
    assert 500 - (now_ms - planned_ms) <= left_ms <= 500
    if not difference:
        assert left_ms == 500 - (now_ms - planned_ms - min(begun_after))


DELIVERED = st.builds(DeliveryStats, st.integers(0), st.integers(0))


@given(DELIVERED, DELIVERED)
def test_records_and_bytes_are_added(one, other):
    assert one + other == DeliveryStats(one.records + other.records, one.bytes + other.bytes)
    assert one + NOTHING == one
