"""Beside KafkaExceptionsSuite: SQL states, which belong to errors' classes here."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka.application import errors
from pyspark_kafka.domain import data_loss
from pyspark_kafka.domain.errors import MalformedTimestampError
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)

DATA_LOSS = {
    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO": data_loss.added_partition_starts_late(T0, 3),
    "COULD_NOT_READ_OFFSET_RANGE": data_loss.offset_range_not_read(T0, 1, 5, 3, "g"),
    "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS": data_loss.earliest_offsets_not_found([T0]),
    "PARTITIONS_DELETED": data_loss.partitions_deleted([T0]),
    "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT": data_loss.partitions_deleted(
        [T0], group_id_is_set=True
    ),
    "PARTITION_OFFSET_CHANGED": data_loss.partition_offset_changed(T0, 5, 1),
}


@pytest.mark.parametrize("condition", DATA_LOSS)
def test_every_loss_of_data_has_the_sql_state_of_its_condition(condition: str) -> None:
    """Every loss of data has the state 22000, on whichever side of a pickle it is looked at."""
    error = DATA_LOSS[condition].as_error()
    for same in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301  # our own
        assert same.sql_state == "22000"
        assert str(same).startswith(f"[KAFKA_DATA_LOSS.{condition}] Some data may have been lost")


def test_sql_states_are_those_of_the_jvm_connectors_conditions() -> None:
    """A timestamp out of range has the state 22008, and no other condition has one."""
    assert MalformedTimestampError(T0, 0, 2**62).sql_state == "22008"
    mismatches = [
        errors.OffsetsMismatchError([T0], []),
        errors.StreamOffsetsMismatchError([T0], []),
        errors.TimestampsMismatchError("start", [T0], []),
        errors.ResolvedOffsetsError(T0, 5, 1),
    ]
    assert [error.sql_state for error in mismatches] == [None] * 4
