"""KafkaSourceProviderSuite: how options are spelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.spark.batch_reader import KafkaBatchReader
from pyspark_kafka.adapters.spark.schema import spark_schema
from pyspark_kafka.adapters.spark.stream_reader import KafkaStreamReader
from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options
from pyspark_kafka.domain.projection import Projection

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = "KafkaSourceProviderSuite"

SCHEMA = spark_schema(Projection(("key", "value")))

SPELLED = {
    "kafka.bootstrap.servers": "host:9092",
    "kafka.isolation.level": "read_committed",
    "subscribe": "t",
    "startingOffsets": "earliest",
    "failOnDataLoss": "false",
    "minPartitions": "7",
    "kafkaConsumer.pollTimeoutMs": "1000",
    "fetchOffset.numRetries": "5",
}

CASES = pytest.mark.parametrize("change", [str, str.lower, str.upper, str.title, str.swapcase])


def spelled(change: Callable[[str], str]) -> dict[str, str]:
    return {change(name): value for name, value in SPELLED.items()}


def assert_read(options: SourceOptions) -> None:
    assert options.poll_timeout_ms == 1_000
    assert options.fetch_attempts == 5
    assert options.min_partitions == 7
    assert not options.fail_on_data_loss
    assert options.reads_committed_only
    assert options.bootstrap_servers == "host:9092"


@peer(SUITE, "batch mode - options should be handled as case-insensitive", Held.LIBRARY)
@CASES
def test_batch_mode_options_should_be_handled_as_case_insensitive(
    change: Callable[[str], str],
) -> None:
    """A batch query reads an option however its name is written."""
    reader = DefaultSource(spelled(change)).reader(SCHEMA)
    assert isinstance(reader, KafkaBatchReader)
    assert_read(reader._options)


@peer(SUITE, "micro-batch mode - options should be handled as case-insensitive", Held.LIBRARY)
@CASES
def test_micro_batch_mode_options_should_be_handled_as_case_insensitive(
    change: Callable[[str], str],
) -> None:
    """A stream reads an option however its name is written."""
    reader = DefaultSource(spelled(change)).streamReader(SCHEMA)
    assert isinstance(reader, KafkaStreamReader)
    assert_read(reader._options)


@peer(SUITE, "SPARK-49442: partition.metadata.cache.ttl.ms validation", Held.LIBRARY)
@pytest.mark.parametrize("query", QueryKind)
def test_spark_49442_partition_metadata_cache_ttl_ms_validation(query: QueryKind) -> None:
    """The time is -1, which keeps nothing, or positive."""
    given = {"kafka.bootstrap.servers": "host:9092", "subscribe": "t"}
    name = "partition.metadata.cache.ttl.ms"
    for good in (-1, 1, 30_000):
        options = parse_source_options({**given, name: str(good)}, query)
        assert options.metadata_ttl_ms == good
    for bad in (0, -2, -100):
        with pytest.raises(OptionsError, match=name):
            parse_source_options({**given, name: str(bad)}, query)
