from collections.abc import Mapping
from typing import Final

import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import Specific
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
SERVERS: Final = {"kafka.bootstrap.servers": "b:9092"}
BASE: Final = {"subscribe": "t", **SERVERS}
BOTH = pytest.mark.parametrize("query", QueryKind)

TAIL = "subscribe, subscribepattern, assign. See the docs for more details."
NO_STRATEGY = f"One of the following options must be specified for Kafka source: {TAIL}"
MANY_STRATEGIES = f"Only one of the following options can be specified for Kafka source: {TAIL}"
OFFSETS_EXAMPLE = 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '
ASSIGN_EXAMPLE = 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got '
TIMESTAMPS_EXAMPLE = (
    'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789},\n'
    '"topicB": {"0": 123456789, "1": 123456789}}, got '
)
NO_SERVERS = "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
AUTO_COMMIT = "Kafka option 'enable.auto.commit' is not supported"
INTERCEPTORS = "Kafka option 'interceptor.classes' is not supported"
ENDING_IN_STREAM = "ending offset not valid in streaming queries"
ENDING_TIME_IN_STREAM = "ending timestamp not valid in streaming queries"
STARTING_LATEST = "starting offset can't be latest for batch queries on Kafka"
ENDING_EARLIEST = "ending offset can't be earliest for batch queries on Kafka"
MIN_ABOVE_MAX = "The value of minOffsetPerTrigger(20) is higher than the maxOffsetsPerTrigger(15)."
NO_COLUMN = "the options leave no column to read"


ACKS: Final = (
    "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee "
    "idempotence."
)
RETRIES: Final = "Must set retries to non-zero when using the idempotent producer."


def specific(offsets: Mapping[TopicPartition, int], **topics: int) -> Specific:
    return Specific(PartitionOffsets(offsets), tuple(sorted(topics.items())))


def named(option: str, problem: str) -> str:
    """Return a problem as a query reports it: with the option's name, which Java's words lack."""
    return problem if option.lower() in problem.lower() else f"Option '{option}': {problem}"


def problems(raw: Mapping[str, str], query: QueryKind) -> tuple[str, ...]:
    with pytest.raises(OptionsError) as caught:
        parse_source_options(raw, query)
    return caught.value.problems


def sink_problems(raw: Mapping[str, str], query: QueryKind) -> tuple[str, ...]:
    with pytest.raises(OptionsError) as caught:
        parse_sink_options(raw, query)
    return caught.value.problems
