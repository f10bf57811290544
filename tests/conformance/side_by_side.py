"""The same query for this source and for the JVM connector, and their answers side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from ..spark.queries import OURS, PEER, read, read_stream, run_available_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.brokers import KafkaCluster


@dataclass(frozen=True)
class Both:
    """A query's tables, of this source and of the JVM connector."""

    ours: DataFrame
    theirs: DataFrame

    def numbers(self) -> list[int]:
        """Run both, hold every column of every row against the other's, and give the values."""
        ours, theirs = _rows(self.ours), _rows(self.theirs)
        assert self.ours.schema == self.theirs.schema
        assert ours == theirs
        return sorted(int(row["value"]) for row in ours)


@dataclass(frozen=True)
class Sides:
    """Makes queries of both sources on the run's broker, ours with one of the clients."""

    spark: SparkSession
    kafka: KafkaCluster
    client: str

    def batch(self, **options: str) -> Both:
        """Make batch queries."""
        return Both(
            read(self.spark, self.kafka, OURS, client=self.client, **options),
            read(self.spark, self.kafka, PEER, **options),
        )

    def run_streams(self, directory: Path, **options: str) -> Both:
        """Run streams from their checkpoints to their ends, and give all of their output."""
        return Both(
            self.run_stream(OURS, directory, **options), self.run_stream(PEER, directory, **options)
        )

    def run_stream(self, source: str, directory: Path, **options: str) -> DataFrame:
        """Run one of the two."""
        chosen = {"client": self.client} if source == OURS else {}
        stream = read_stream(self.spark, self.kafka, source, **chosen, **options)
        return run_available_now(stream, directory / source)

    def refusals(self, **options: str) -> tuple[str, str]:
        """Run batch queries that fail, and give our text and the last cause of the other's."""
        # Either tries some of what is refused again.
        options = {"fetchOffset__retryIntervalMs": "1", **options}
        ours = failure(
            lambda: read(self.spark, self.kafka, OURS, client=self.client, **options).collect()
        )
        theirs = failure(lambda: read(self.spark, self.kafka, PEER, **options).collect())
        return str(ours), causes(theirs)[-1]

    def assert_refused_alike(self, core: str, **options: str) -> None:
        """Hold our words against the other's, which have ``core`` in them."""
        ours, theirs = self.refusals(**options)
        assert core in theirs
        assert theirs in ours


def failure(action: Callable[[], object]) -> Exception:
    """Return the error that an action raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the text is the caller's matter
        action()
    assert isinstance(caught.value, Exception)
    return caught.value


def causes(error: Exception) -> list[str]:
    """Return the messages of a Java exception and of its causes, outermost first."""
    found = []
    # What PySpark has a class for keeps Java's exception at one place, the rest at another.
    origin: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while origin is not None:
        found.append(str(origin.getMessage()))
        origin = origin.getCause()
    assert found, f"not an exception of the JVM: {error!r}"
    return found


def write(
    world: KafkaWorld, topic: str, numbers: Mapping[int, Iterable[int]], timestamp: int = 1_000
) -> None:
    """Write numbers as text, by partition."""
    for partition, values in numbers.items():
        records = [Record(str(value).encode(), timestamp=timestamp) for value in values]
        world.produce(TopicPartition(topic, partition), records)


def ends(topic: str, *values: int) -> str:
    """Write offsets or times of the partitions from 0 on as JSON."""
    return json.dumps({topic: {str(number): value for number, value in enumerate(values)}})


def _rows(table: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict(recursive=True) for row in table.collect()]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))
