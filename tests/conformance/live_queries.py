"""The same query with this source and with the JVM connector, all running while a test acts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pytest

from ..spark import queries
from ..spark.queries import read_stream
from .side_by_side import failure
from .stream_runs import await_until, batch_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_kafka.brokers import KafkaCluster

T = TypeVar("T")

_RUN_SECONDS = 120


class Source(NamedTuple):
    """A source, and the client with which ours reads."""

    format: str
    client: str | None = None

    def __str__(self) -> str:
        return self.client or self.format


JVM = Source(queries.PEER)
OURS = tuple(Source(queries.OURS, client) for client in ("confluent", "kafka-python"))
ONE_CLIENT = (*OURS[1:], JVM)
"""For what is decided before any client is asked, or from offsets that contract suites check."""

BOTH_CLIENTS = (*OURS, JVM)


class OpenStream(Protocol):
    """Opens a stream of a source; ``__`` in an option's name stands for a dot."""

    def __call__(self, **options: str) -> DataFrame: ...


def numbers(batch: DataFrame, _number: int) -> list[int]:
    """Return the values of a batch as numbers, in ascending order."""
    rows = batch.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


def for_each(sources: Iterable[Source], action: Callable[[Source], T]) -> dict[Source, T]:
    """Return what an action answers for each source, after it was tried for all of them.

    :raises BaseExceptionGroup: with the errors of all, if it failed for any.
    """
    answers: dict[Source, T] = {}
    errors: list[BaseException] = []
    for source in sources:
        try:
            answers[source] = action(source)
        # The failure of an assertion, or of pytest.raises, does not end the others' turn either.
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
            error.add_note(f"with {source}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup("not all sources did it", errors)
    return answers


def agreed(answers: Mapping[Source, T]) -> T:
    """Return the answer that all of them gave."""
    assert len(answers) > 1
    *_, answer = answers.values()
    assert answers == dict.fromkeys(answers, answer)
    return answer


def assert_same_words(errors: Mapping[Source, Exception], theirs: str) -> None:
    """Assert that a message of the JVM connector is in all the other errors.

    Scala's sets and maps have no order; ours are sorted.
    """
    for source, error in errors.items():
        assert source == JVM or _sorted_sets(theirs) in _sorted_sets(str(error))


def _sorted_sets(text: str) -> str:
    def in_order(found: re.Match[str]) -> str:
        kind, entries = found.groups()
        return f"{kind}({', '.join(sorted(entries.split(', ')))})"

    return re.sub(r"(?:Hash)?(Set|Map)\(([^()]*)\)", in_order, text)


@dataclass
class LiveQuery:
    """A query that hands each batch to a function, and keeps the last answer for each batch."""

    stream: DataFrame
    directory: Path
    function: Callable[[DataFrame, int], Any]
    mode: str
    results: dict[int, Any] = field(default_factory=dict)
    query: StreamingQuery | None = None

    def start(self, **trigger: Any) -> None:
        """Start it, or go on from its checkpoint."""
        self.query = (
            self.stream.writeStream.foreachBatch(self._take)
            .outputMode(self.mode)
            .option("checkpointLocation", str(self.directory / "checkpoint"))
            .trigger(**(trigger or {"processingTime": "0 seconds"}))
            .start()
        )

    def ends(self) -> list[dict[str, dict[str, int]]]:
        """Return the offsets at which the batches so far end."""
        logs = self.directory / "checkpoint" / "offsets"
        return batch_ends(self.directory) if logs.exists() else []

    def running(self) -> StreamingQuery:
        """Return the query.

        :raises AssertionError: if it was not started.
        """
        assert self.query is not None
        return self.query

    def _take(self, batch: DataFrame, number: int) -> None:
        self.results[number] = self.function(batch, number)


class LiveQueries:
    """The queries; what is done with one is done with all, and their errors are raised together."""

    def __init__(self, queries: Mapping[Source, LiveQuery]) -> None:
        self._queries = queries

    def start(self, **trigger: Any) -> None:
        """Start all of them, by default to look for records all the time."""
        self.each(lambda one: one.start(**trigger))

    def fail(self, **trigger: Any) -> dict[Source, Exception]:
        """Start all of them, and return the errors that end them."""
        self.start(**trigger)
        return self.each(lambda one: failure(partial(one.running().awaitTermination, _RUN_SECONDS)))

    def run(self, **trigger: Any) -> None:
        """Let all of them run to their ends."""
        self.start(**trigger)
        ended = self.each(lambda one: one.running().awaitTermination(_RUN_SECONDS))
        self.stop()
        assert all(ended.values()), ended

    def settle(self) -> None:
        """Wait until all of them have read what there is."""
        # A look that began before the last write may end the first wait, but not the second.
        for _ in range(2):
            self.each(lambda one: one.running().processAllAvailable())

    def stop(self) -> None:
        """Stop those that run."""
        self.each(lambda one: one.query.stop() if one.query is not None else None)

    def await_batches(self, count: int) -> None:
        """Wait until all of them have read so many batches."""
        self.each(partial(_await_batches, count=count))

    def results(self, count: int | None = None) -> list[Any]:
        """Return what all of them have found in their batches, or in the first ones."""
        return agreed(
            self.each(lambda one: [one.results[number] for number in sorted(one.results)][:count])
        )

    def rows(self) -> list[Any]:
        """Return what all of them have found in all batches, however it was divided."""
        return agreed(
            self.each(
                lambda one: [row for number in sorted(one.results) for row in one.results[number]]
            )
        )

    def ends(self, count: int | None = None) -> list[dict[str, dict[str, int]]]:
        """Return the offsets at which the batches of all of them end, or the first ones."""
        return agreed(self.each(lambda one: one.ends()[:count]))

    def each(self, action: Callable[[LiveQuery], T]) -> dict[Source, T]:
        """Return what an action answers for each query."""
        return for_each(self._queries, lambda source: action(self._queries[source]))


class Live:
    """Makes queries on the run's broker."""

    def __init__(self, spark: SparkSession, kafka: KafkaCluster, directory: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self._directory = directory
        self._made: list[LiveQueries] = []

    def open(self, source: Source, **options: str) -> DataFrame:
        """Open a stream from the earliest offsets, or from those of the options."""
        chosen = {"client": source.client} if source.client else {}
        return read_stream(
            self._spark,
            self._kafka,
            source.format,
            **{"startingOffsets": "earliest", **chosen, **options},
        )

    def queries(
        self,
        stream: Callable[[OpenStream], DataFrame],
        sources: Sequence[Source] = ONE_CLIENT,
        function: Callable[[DataFrame, int], Any] = numbers,
        name: str = "live",
        mode: str = "append",
    ) -> LiveQueries:
        """Make the same query for each source; ``name`` tells the checkpoints of a test apart."""
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
        """Stop all that runs."""
        for made in self._made:
            made.stop()


def _await_batches(one: LiveQuery, count: int) -> None:
    def are_there() -> bool:
        error = one.running().exception()
        assert error is None, error
        return len(one.results) >= count

    await_until(are_there)
