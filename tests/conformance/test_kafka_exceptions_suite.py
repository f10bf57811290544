"""Beside KafkaExceptionsSuite: errors have the SQL states of their conditions.

There a caller may give an exception a state of its own. Nothing does so here, and no user of Spark
would see it: Spark gives every error of a Python data source the state 38000.
"""

import json
import pickle
import zipfile
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pyspark_kafka.brokers import connector_jars
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.reading import data_loss, errors
from pyspark_kafka.domain.reading.errors import MalformedTimestampError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import NullTopicError

from ..spark.queries import OURS
from .side_by_side import failure

T0 = TopicPartition("t", 0)

ERRORS: dict[str, PysparkKafkaError] = {
    "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO": (
        data_loss.added_partition_starts_late(T0, 3).as_error()
    ),
    "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE": (
        data_loss.offset_range_not_read(T0, 1, 5, 3, "g").as_error()
    ),
    "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS": (
        data_loss.earliest_offsets_not_found([T0]).as_error()
    ),
    "KAFKA_DATA_LOSS.PARTITIONS_DELETED": data_loss.partitions_deleted([T0]).as_error(),
    "KAFKA_DATA_LOSS.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT": (
        data_loss.partitions_deleted([T0], group_id_is_set=True).as_error()
    ),
    "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED": (
        data_loss.partition_offset_changed(T0, 5, 1).as_error()
    ),
    "KAFKA_MALFORMED_RECORD_TIMESTAMP": MalformedTimestampError(T0, 0, 2**62),
    "KAFKA_NULL_TOPIC_IN_DATA": NullTopicError(),
    "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED": errors.OffsetsMismatchError([T0], []),
    "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED": (
        errors.TimestampsMismatchError("start", [T0], [])
    ),
    "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET": errors.ResolvedOffsetsError(T0, 5, 1),
}
NEWER = {"KAFKA_MALFORMED_RECORD_TIMESTAMP": "22008"}
"""States of conditions that Spark's connector has in a version that is not among the jars."""


@pytest.fixture(scope="module")
def conditions():
    jar = next(path for path in connector_jars() if path.name.startswith("spark-sql-kafka"))
    with zipfile.ZipFile(jar) as files:
        found: dict[str, Any] = json.loads(files.read("error/kafka-error-conditions.json"))
    return found


@pytest.mark.parametrize("condition", ERRORS)
def test_an_error_has_the_sql_state_of_the_jvm_connectors_condition(conditions, condition):
    error = ERRORS[condition]
    name, _, sub_condition = condition.partition(".")
    state = NEWER.get(name) or conditions[name].get("sqlState")
    if sub_condition:
        assert sub_condition in conditions[name]["subClass"]
        assert state == "22000"
    for same in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301  # our own
        assert same.sql_state == state
        assert str(same).startswith(f"[{condition}] ")


def test_spark_gives_errors_of_python_data_sources_its_own_sql_state(spark):
    error = failure(spark.read.format(OURS).load)
    assert isinstance(error, AnalysisException)
    assert error.getSqlState() == "38000"
    assert "[KAFKA_INVALID_OPTIONS]" in str(error)
