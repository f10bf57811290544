"""Streams of numbers that run while topics change: of this source, and of the JVM connector."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException

from pyspark_kafka.ports.deadline import Deadline

from ..spark.queries import OURS, PEER, read_stream
from .stream_runs import batch_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_kafka.brokers import KafkaCluster

SECONDS: Final = 60.0

Outcome = list[int] | str
"""Numbers in order, or the text of the error that ended a query."""


@dataclass(eq=False, slots=True)
class NumberedStream:
    """Queries of numbers that run one after another from one checkpoint."""

    stream: DataFrame
    directory: Path
    batches: dict[int, list[int]] = field(default_factory=dict)
    _query: StreamingQuery | None = None

    @property
    def query(self) -> StreamingQuery:
        """The last query that was started."""
        assert self._query is not None
        return self._query

    @property
    def numbers(self) -> list[int]:
        """The numbers of all batches, in order."""
        return sorted(number for batch in list(self.batches.values()) for number in batch)

    @property
    def outcome(self) -> Outcome:
        """The error that ended the query, or the numbers until now."""
        error = self.query.exception()
        return self.numbers if error is None else str(error)

    def start(
        self, after_batch: Callable[[list[int]], object] | None = None, /, **trigger: Any
    ) -> None:
        """Start the next query; its batches follow one another at once if no trigger is given.

        ``after_batch`` is called with the numbers of each batch, which is run again if it raises.
        """

        def take(batch: DataFrame, number: int) -> None:
            rows = batch.selectExpr("cast(cast(value as string) as int) as number").collect()
            # A batch that runs again replaces what it gave before.
            self.batches[number] = sorted(row.number for row in rows)
            if after_batch is not None:
                after_batch(self.batches[number])

        self._query = (
            self.stream.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self.directory / "checkpoint"))
            .trigger(**(trigger or {"processingTime": "0 seconds"}))
            .start()
        )

    def stop(self) -> None:
        """Stop the query, if one was started."""
        if self._query is not None:
            self._query.stop()

    def settle(self) -> None:
        """Wait until all is read, or the query has failed."""
        with suppress(StreamingQueryException):
            self.query.processAllAvailable()

    def await_numbers(self, wanted: list[int]) -> Outcome:
        """Wait until these are the numbers, or the query has ended; return how it then stands."""
        query = self.query
        Deadline.after(SECONDS).poll(lambda: self.numbers == wanted or not query.isActive, 0.02)
        return self.outcome

    def await_end(self) -> Outcome:
        """Wait until the query ends by itself, and return how."""
        query = self.query
        assert Deadline.after(SECONDS).poll(lambda: not query.isActive, 0.02)
        return self.outcome

    def ends(self) -> list[dict[str, dict[str, int]]]:
        """Return the offsets at which batches end, in order."""
        return batch_ends(self.directory)


@dataclass(frozen=True)
class Streams:
    """Several streams of the same numbers, whose queries run at the same time.

    All of them are awaited before anything is asserted.
    """

    by_name: Mapping[str, NumberedStream]

    def start(
        self, after_batch: Callable[[list[int]], object] | None = None, /, **trigger: Any
    ) -> None:
        """Start the next queries, as a single stream does."""
        for stream in self.by_name.values():
            stream.start(after_batch, **trigger)

    def stop(self) -> None:
        """Stop the queries."""
        for stream in self.by_name.values():
            stream.stop()

    def settle(self) -> None:
        """Wait until all is read; ``await_numbers`` tells of a query that has failed."""
        for stream in self.by_name.values():
            stream.settle()

    def await_numbers(self, wanted: Iterable[int]) -> None:
        """Wait until these are the numbers that all queries have read, each once."""
        numbers = sorted(wanted)
        found = {name: each.await_numbers(numbers) for name, each in self.by_name.items()}
        others = {name: outcome for name, outcome in found.items() if outcome != numbers}
        assert not others, f"not {numbers}: {others}"

    def await_failures(self, words: str) -> None:
        """Wait until all queries have ended, each with an error that has these words."""
        found = {name: stream.await_end() for name, stream in self.by_name.items()}
        others = {name: outcome for name, outcome in found.items() if words not in str(outcome)}
        assert not others, others

    def await_ends(self) -> list[list[int]]:
        """Wait until all queries have ended, and return their batches: the same in all."""
        found = {name: stream.await_end() for name, stream in self.by_name.items()}
        first, *others = (
            [batch for _, batch in sorted(stream.batches.items())]
            for stream in self.by_name.values()
        )
        assert not any(isinstance(outcome, str) for outcome in found.values()), found
        assert others == [first] * len(others)
        return first

    def last_ends(self) -> dict[str, dict[str, int]]:
        """Return where the last batch ends, which is the same in all."""
        first, *others = (stream.ends()[-1] for stream in self.by_name.values())
        assert others == [first] * len(others)
        return first


@dataclass(frozen=True)
class OpenStreams:
    """Opens streams on the run's broker, with checkpoints in a directory."""

    spark: SparkSession
    kafka: KafkaCluster
    directory: Path

    @contextmanager
    def __call__(self, *opened: NumberedStream) -> Iterator[Streams]:
        """Yield streams, which are stopped at the end."""
        streams = Streams({each.directory.name: each for each in opened})
        try:
            yield streams
        finally:
            streams.stop()

    def ours(self, client: str, name: str = OURS, **options: str) -> NumberedStream:
        """Open a stream of this source; ``name`` is that of its checkpoint."""
        return self._open(OURS, name, {"client": client, **options})

    def theirs(self, name: str = PEER, **options: str) -> NumberedStream:
        """Open a stream of the JVM connector."""
        return self._open(PEER, name, options)

    def _open(self, source: str, name: str, options: dict[str, str]) -> NumberedStream:
        stream = read_stream(self.spark, self.kafka, source, **options)
        return NumberedStream(stream, self.directory / name)
