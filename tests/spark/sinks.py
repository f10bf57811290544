"""The same table through this sink and through the JVM connector's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_kafka.brokers import KafkaCluster

from .queries import OURS, PEER, read


class Stored(NamedTuple):
    """The fields of a row in a topic, without its offset and its time."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp_type: int


@dataclass(frozen=True)
class Sinks:
    """Writes to topics of the run's broker, ours with one of the clients."""

    spark: SparkSession
    kafka: KafkaCluster
    client: str
    directory: Path

    def write(self, table: DataFrame, sink: str = OURS, **options: str) -> None:
        given = self.given(sink, options)
        table.write.format(sink).options(**given).mode("append").save()

    def write_stream(self, table: DataFrame, sink: str = OURS, **options: str) -> StreamingQuery:
        """Append a table by a stream, in one file's order, and give the query at its end.

        A later call continues from the checkpoint of the one before, with what it adds.
        """
        files = str(self.directory / f"input-{sink}")
        table.coalesce(1).write.mode("append").parquet(files)
        query = (
            self.spark.readStream.schema(table.schema)
            .parquet(files)
            .writeStream.format(sink)
            .options(**self.given(sink, options))
            .option("checkpointLocation", str(self.directory / f"checkpoint-{sink}"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return query

    def stored(self, topic: str) -> list[Stored]:
        table = read(self.spark, self.kafka, PEER, subscribe=topic, includeHeaders="true")
        return [
            Stored(
                row.partition,
                _bytes(row.key),
                _bytes(row.value),
                None
                if row.headers is None
                else tuple((one.key, _bytes(one.value)) for one in row.headers),
                row.timestampType,
            )
            for row in table.orderBy("partition", "offset").collect()
        ]

    def values(self, topic: str) -> list[str]:
        return sorted((stored.value or b"").decode() for stored in self.stored(topic))

    def given(self, sink: str, options: Mapping[str, str]) -> dict[str, str]:
        chosen = {"client": self.client} if sink == OURS else {}
        given = {name.replace("__", "."): value for name, value in options.items()}
        return {**self.kafka.options, **chosen, **given}


def rows_of(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), schema)


def refusal(action: Callable[[], object]) -> str:
    """Return the line of an action's error that has the condition."""
    with pytest.raises(Exception, match=r"\[KAFKA_") as caught:
        action()
    return refusal_line(caught.value)


def refusal_line(error: Exception) -> str:
    _, condition, text = str(error).partition("[KAFKA_")
    assert condition, error
    return f"{condition}{text.splitlines()[0].rstrip()}"


def _bytes(found: bytearray | None) -> bytes | None:
    return None if found is None else bytes(found)
