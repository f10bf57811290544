"""Running continuous queries of numbers on the run's broker."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_kafka import continuous
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, await_until
from tests.slowness import bound_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pyspark_kafka.application.continuous.query import ContinuousQuery
    from pyspark_kafka.ports.continuous import RecordFunction

Pair = tuple[str | None, str | None]

SECONDS: Final = bound_s(60)
FAST: Final = "100 milliseconds"


@dataclass(frozen=True, slots=True)
class Appending:
    """A sink: appends keys and values to a file, a line per record, from any process."""

    path: str

    def __call__(self, records: pa.RecordBatch) -> None:
        pairs = zip(_texts(records, "key"), _texts(records, "value"), strict=True)
        with Path(self.path).open("a", encoding="utf-8", buffering=1 << 20) as file:
            file.write("".join(f"{json.dumps(pair)}\n" for pair in pairs))


def _texts(records: pa.RecordBatch, column: str) -> list[str | None]:
    values = records.column(column).to_pylist()
    return [None if value is None else value.decode() for value in values]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs queries from one checkpoint after another, and keeps what all of them output."""

    spark: SparkSession | None
    world: KafkaWorld
    directory: Path

    @contextmanager
    def query(
        self,
        function: RecordFunction | None = None,
        sink: Mapping[str, str] | None = None,
        /,
        **source: str,
    ) -> Iterator[ContinuousQuery]:
        """Run a query in a block; ``__`` in names of the source's options stands for a dot.

        Without a function, records are appended to the output.
        """
        given = {name.replace("__", "."): value for name, value in source.items()}
        common = {**self.world.addresses, "client": self.world.client}
        query = continuous.start(
            self.spark,
            function or Appending(str(self.directory / "output")),
            source={**common, "fetchOffset.retryIntervalMs": "50", **given},
            sink=None if sink is None else {**common, **sink},
            checkpointLocation=str(self.directory / "checkpoint"),
            epoch=FAST,
            # A slot is left for what a test reads with Spark.
            tasks=1,
        )
        try:
            yield query
        finally:
            query.stop()

    def pairs(self) -> list[Pair]:
        output = self.directory / "output"
        lines = output.read_text("utf-8").splitlines() if output.exists() else []
        found = [json.loads(line) for line in lines]
        return [(key, value) for key, value in found]

    def numbers(self) -> list[int]:
        return sorted(int(value) for _, value in self.pairs() if value is not None)

    def await_numbers(self, query: ContinuousQuery, numbers: Iterable[int]) -> None:
        wanted = sorted(numbers)
        await_until(lambda: self.numbers() == wanted or not query.isActive, SECONDS)
        query.awaitTermination(0)
        assert self.numbers() == wanted


def numbered(numbers: Iterable[int]) -> list[Record]:
    return [Record(b"%d" % number) for number in numbers]


def await_partitions(query: ContinuousQuery, partitions: Iterable[TopicPartition]) -> None:
    """Wait until these are the partitions that a query reads."""
    wanted = set(partitions)

    def are_read() -> bool:
        query.awaitTermination(0)
        progress = query.lastProgress
        if progress is None:
            return False
        read = progress["sources"][0]["endOffset"]
        return {TopicPartition(name, int(each)) for name in read for each in read[name]} == wanted

    await_until(are_read, SECONDS)
