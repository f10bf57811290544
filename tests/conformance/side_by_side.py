"""The same query for this source and for the JVM connector, and their answers side by side."""

import enum
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from ..spark.queries import OURS, PEER, read, read_stream, run_available_now


class JvmSource(enum.Enum):
    """The JVM connector's two sources; the values are for ``useV1SourceList`` in batches.

    Batch queries use V1 by default, and streams V2.
    """

    V1 = PEER
    V2 = ""


@contextmanager
def sql_conf(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def read_jvm(
    spark: SparkSession, kafka: KafkaCluster, source: JvmSource, **options: str
) -> DataFrame:
    with sql_conf(spark, "spark.sql.sources.useV1SourceList", source.value):
        return read(spark, kafka, PEER, **options)


@dataclass(frozen=True)
class Both:
    """A query's tables, of this source and of the JVM connector."""

    ours: DataFrame
    theirs: DataFrame

    def numbers(self) -> list[int]:
        ours, theirs = _rows(self.ours), _rows(self.theirs)
        assert self.ours.schema == self.theirs.schema
        assert ours == theirs
        return sorted(int(row["value"]) for row in ours)


@dataclass(frozen=True)
class Sides:
    """Makes queries of this source and of the JVM connector on the run's broker.

    Ours are with one of the clients and options that only this source has, and batches of the JVM
    connector with one of its sources.
    """

    spark: SparkSession
    kafka: KafkaCluster
    client: str
    jvm_source: JvmSource = JvmSource.V1
    own_options: Mapping[str, str] = field(default_factory=dict)

    def batch(self, **options: str) -> Both:
        return Both(
            read(self.spark, self.kafka, OURS, client=self.client, **self.own_options, **options),
            read_jvm(self.spark, self.kafka, self.jvm_source, **options),
        )

    def run_streams(self, directory: Path, **options: str) -> Both:
        return Both(
            self.run_stream(OURS, directory, **options), self.run_stream(PEER, directory, **options)
        )

    def run_stream(self, source: str, directory: Path, **options: str) -> DataFrame:
        chosen = {"client": self.client, **self.own_options} if source == OURS else {}
        stream = read_stream(self.spark, self.kafka, source, **chosen, **options)
        return run_available_now(stream, directory / source)

    def refusals(self, **options: str) -> tuple[str, list[str]]:
        """Run batch queries that fail, and return our text and the JVM sources' root causes."""
        # Each tries some of what is refused again.
        options = {"fetchOffset__retryIntervalMs": "1", **options}
        theirs = [
            failure(
                lambda source=source: read_jvm(  # type: ignore[misc]
                    self.spark, self.kafka, source, **options
                ).collect()
            )
            for source in JvmSource
        ]
        ours = failure(
            lambda: read(self.spark, self.kafka, OURS, client=self.client, **options).collect()
        )
        return str(ours), [root_cause(error) for error in theirs]

    def assert_refused_alike(self, core: str, **options: str) -> None:
        """Compare our words with both JVM sources' words, which have ``core`` in them."""
        ours, theirs = self.refusals(**options)
        for words in theirs:
            assert core in words
            assert words in ours


def failure(action: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the text is the caller's matter
        action()
    assert isinstance(caught.value, Exception)
    return caught.value


def outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except Exception as error:  # noqa: BLE001  # it is compared
        return error


def root_cause(error: Exception) -> str:
    """Return the message of the last cause of a Java exception; one without a message fails."""
    cause = last_cause(error)
    message = cause.getMessage()
    # An empty text is part of every other.
    assert message, f"the JVM says nothing: {cause.toString()}"
    return str(message)


def last_cause(error: Exception) -> Any:
    return java_causes(error)[-1]


def java_causes(error: Exception) -> list[Any]:
    """Return a Java exception and its causes, outermost first."""
    found = []
    # What PySpark has a class for keeps Java's exception at one place, the rest at another.
    cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        found.append(cause)
        cause = cause.getCause()
    assert found, f"not an exception of the JVM: {error!r}"
    return found


def write(
    world: KafkaWorld, topic: str, numbers: Mapping[int, Iterable[int]], timestamp: int = 1_000
) -> None:
    for partition, values in numbers.items():
        records = [Record(str(value).encode(), timestamp=timestamp) for value in values]
        world.produce(TopicPartition(topic, partition), records)


def ends(topic: str, *values: int) -> str:
    return json.dumps({topic: {str(number): value for number, value in enumerate(values)}})


def _rows(table: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict(recursive=True) for row in table.collect()]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))
