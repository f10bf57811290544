"""The same query with this source and with the JVM connector, all running while a test acts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from ..spark.queries import read_stream
from .side_by_side import failure
from .sources import ONE_CLIENT, Source, agreed, for_each
from .stream_runs import batch_ends

T = TypeVar("T")

AfterBatch = Callable[[Any], object]
"""Is called with the answer for each batch; if it raises, the query fails in this batch."""

_RUN_SECONDS: Final = int(bound_s(120))
_READ_SECONDS: Final = bound_s(60)


class OpenStream(Protocol):
    """Opens a stream of a source; ``__`` in an option's name stands for a dot."""

    def __call__(self, **options: str) -> DataFrame: ...


def numbers(batch: DataFrame, _number: int) -> list[int]:
    rows = batch.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


@dataclass
class LiveQuery:
    stream: DataFrame
    directory: Path
    function: Callable[[DataFrame, int], Any]
    mode: str
    results: dict[int, Any] = field(default_factory=dict)
    query: StreamingQuery | None = None

    def start(self, after_batch: AfterBatch | None = None, /, **trigger: Any) -> None:
        def take(batch: DataFrame, number: int) -> None:
            self.results[number] = self.function(batch, number)
            if after_batch is not None:
                after_batch(self.results[number])

        self.query = (
            self.stream.writeStream.foreachBatch(take)
            .outputMode(self.mode)
            .option("checkpointLocation", str(self.directory / "checkpoint"))
            .trigger(**(trigger or {"processingTime": "0 seconds"}))
            .start()
        )

    def batches(self) -> list[Any]:
        return [self.results[number] for number in sorted(self.results)]

    def rows(self) -> list[Any]:
        """Return the rows of all batches so far; each answer is a list of rows."""
        return [row for batch in self.batches() for row in batch]

    def ends(self) -> list[dict[str, dict[str, int]]]:
        logs = self.directory / "checkpoint" / "offsets"
        return batch_ends(self.directory) if logs.exists() else []

    def running(self) -> StreamingQuery:
        assert self.query is not None
        return self.query

    def await_batches(self, count: int) -> None:
        self._await(lambda: len(self.results) >= count)
        assert len(self.results) >= count, self.results

    def await_numbers(self, wanted: list[int]) -> None:
        self._await(lambda: sorted(self.rows()) == wanted)
        read = sorted(self.rows())
        assert read == wanted, f"not {wanted}: {read}"

    def await_some_numbers(self, wanted: set[int]) -> None:
        self._await(lambda: wanted <= set(self.rows()))
        assert self.running().isActive, "the query has ended"
        missing = wanted - set(self.rows())
        assert not missing, missing

    def _await(self, is_there: Callable[[], bool]) -> None:
        query = self.running()
        Deadline.after(_READ_SECONDS).poll(lambda: is_there() or not query.isActive, 0.02)
        error = query.exception()
        assert error is None, error


class LiveQueries:
    """The queries; what is done with one is done with all, and their errors are raised together."""

    def __init__(self, queries: Mapping[Source, LiveQuery]) -> None:
        self._queries = queries

    def start(self, after_batch: AfterBatch | None = None, /, **trigger: Any) -> None:
        self.each(lambda one: one.start(after_batch, **trigger))

    def fail(
        self, after_batch: AfterBatch | None = None, /, **trigger: Any
    ) -> dict[Source, Exception]:
        """Start all of them, and return the errors that end them."""
        self.start(after_batch, **trigger)
        return self.each(lambda one: failure(partial(one.running().awaitTermination, _RUN_SECONDS)))

    def run(self, **trigger: Any) -> None:
        self.start(**trigger)
        ended = self.each(lambda one: one.running().awaitTermination(_RUN_SECONDS))
        self.stop()
        assert all(ended.values()), ended

    def settle(self) -> None:
        # A look that began before the last write may end the first wait, but not the second.
        for _ in range(2):
            self.each(lambda one: one.running().processAllAvailable())

    def stop(self) -> None:
        self.each(lambda one: one.query.stop() if one.query is not None else None)

    def await_batches(self, count: int) -> None:
        self.each(lambda one: one.await_batches(count))

    def await_numbers(self, wanted: Iterable[int]) -> None:
        in_order = sorted(wanted)
        self.each(lambda one: one.await_numbers(in_order))

    def await_some_numbers(self, wanted: set[int]) -> None:
        self.each(lambda one: one.await_some_numbers(wanted))

    def results(self, count: int | None = None) -> list[Any]:
        return agreed(self.each(lambda one: one.batches()[:count]))

    def rows(self) -> list[Any]:
        """Return what all of them have found in all batches, however it was divided."""
        return agreed(self.each(lambda one: one.rows()))

    def ends(self, count: int | None = None) -> list[dict[str, dict[str, int]]]:
        return agreed(self.each(lambda one: one.ends()[:count]))

    def last_end(self) -> dict[str, dict[str, int]]:
        """Return the offsets at which the last batch of all of them ends, however many it had."""
        return agreed(self.each(lambda one: one.ends()[-1]))

    def each(self, action: Callable[[LiveQuery], T]) -> dict[Source, T]:
        return for_each(self._queries, lambda source: action(self._queries[source]))


class Live:
    """Makes queries on the run's broker."""

    def __init__(self, spark: SparkSession, kafka: KafkaCluster, directory: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self._directory = directory
        self._made: list[LiveQueries] = []

    def open(self, source: Source, **options: str) -> DataFrame:
        chosen = {"client": source.client} if source.client else {}
        given = {**chosen, **dict(source.options), **options}
        if not any(name.startswith("starting") for name in given):
            given["startingOffsets"] = "earliest"
        return read_stream(self._spark, self._kafka, source.format, **given)

    def queries(
        self,
        stream: Callable[[OpenStream], DataFrame],
        sources: Sequence[Source] = ONE_CLIENT,
        function: Callable[[DataFrame, int], Any] = numbers,
        name: str = "live",
        mode: str = "append",
    ) -> LiveQueries:
        made = LiveQueries(
            {
                source: LiveQuery(
                    stream(partial(self.open, source)),
                    self._directory / name / str(source),
                    function,
                    mode,
                )
                for source in sources
            }
        )
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.stop()
