from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.transaction import (
    SinkTaskId,
    Transaction,
    is_id_of_query,
    query_id_prefix,
)
from pyspark_kafka.domain.write_result import DeliveryStats, WriteResult

PREFIX = "pyspark-kafka"

tasks = st.builds(
    SinkTaskId,
    st.sampled_from([f"7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a{number}" for number in (1, 2)]),
    st.integers(0, 3),
    st.integers(0, 111),
    st.integers(0, 11),
)


def test_a_transactional_id() -> None:
    """It is made of the prefix, the query, the task and its attempt."""
    assert SinkTaskId("q", 9, 2, 1).transactional_id("mine") == "mine-q-2-1"


@given(tasks, tasks)
def test_ids_are_shared_with_other_batches_alone(one: SinkTaskId, other: SinkTaskId) -> None:
    """The same attempt of another batch shuts a transaction out, and nothing else does."""
    same_attempt = (one.query_id, one.partition, one.attempt) == (
        other.query_id,
        other.partition,
        other.attempt,
    )
    assert (one.transactional_id(PREFIX) == other.transactional_id(PREFIX)) is same_attempt


@given(tasks, tasks)
def test_a_querys_transactions_are_found_by_their_beginning(
    one: SinkTaskId, other: SinkTaskId
) -> None:
    """All of them begin so, and none of another query's does."""
    beginning = query_id_prefix(PREFIX, one.query_id)
    is_of_query = one.query_id == other.query_id
    assert other.transactional_id(PREFIX).startswith(beginning) is is_of_query


def test_what_a_task_tells_crosses_to_the_driver() -> None:
    """It is pickled, as Spark does with commit messages."""
    written = WriteResult(DeliveryStats(3, 30), Transaction("id", 1, 2))
    assert pickle.loads(pickle.dumps(written)) == written  # noqa: S301


@given(tasks, st.sampled_from([PREFIX, "other", None]), st.booleans())
def test_ids_of_a_query_are_told_from_others(
    task: SinkTaskId, prefix: str | None, knows_query: bool
) -> None:
    """An id belongs to a query if the prefix and the query id that are known are its own."""
    ours = task.transactional_id(PREFIX)
    query_id = task.query_id if knows_query else None
    assert is_id_of_query(ours, prefix, query_id) is (prefix != "other")
    assert not is_id_of_query(ours, prefix, "another query")
    assert not is_id_of_query(f"{ours}-x", prefix, query_id)
