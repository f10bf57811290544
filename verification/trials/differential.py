"""The same random queries by this source and by the JVM connector: nothing may differ."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.brokers import KafkaCluster
from tests.conformance.side_by_side import JvmSource, java_causes, read_jvm
from tests.conformance.sources import JVM, ONE_TASK, OURS, Source, sorted_sets
from tests.spark.queries import read, read_stream, run_available_now
from tests.spark.random_topics import Row
from tests.spark.test_differential import assert_same, rows

from .changing_topics import ChangingTopics
from .random_options import Options, RandomOptions

_START_AFTER_END: Final = "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
# What is refused, or is not there, is to be so soon.
_SOON: Final = {"fetchOffset.retryIntervalMs": "10", "kafkaConsumer.pollTimeoutMs": "20000"}
_MASKED: Final = re.compile(r"[0-9]+|(?<=consumer group )\S+")
_MAX_TOLD: Final = 6_000
_CONDITION: Final = re.compile(r"\[(?!STREAM_FAILED|PYTHON_)([A-Z_.]+)\]")


class Answer(NamedTuple):
    """The outcome of a query: an error or none, its rows, and what is in its checkpoint."""

    error: Exception | None
    rows: list[Row]
    log: Mapping[str, Any]


KNOWN: Final[Mapping[str, Callable[[Options, Answer, Answer], bool]]] = {
    # docs/get-started/migrate.md
    "assign with a topic that does not exist": (
        lambda options, *_: "-missing" in options.get("assign", "")
    ),
    "a start after the end of a partition": (
        # The JVM connector reads the others, and may fail with one of them.
        lambda _, ours, __: _START_AFTER_END in str(ours.error)
    ),
}
"""Documented differences, and the queries that may have them."""


@dataclass
class Differential:
    """Rounds of some batches and a stream, each from a seed."""

    spark: SparkSession
    kafka: KafkaCluster
    directory: Path
    say: Callable[[str], None] = print
    batches: int = 8
    runs: int = 4
    counts: Counter[str] = field(default_factory=Counter)

    def run_round(self, seed: int) -> bool:
        """Run a round, and return whether nothing has differed."""
        before = self.counts["different"]
        numbers = itertools.count()
        name = f"trial{seed}-"
        with ChangingTopics(
            self.kafka, self.spark, lambda: f"{name}{next(numbers)}", seed
        ) as topics:
            random = Random(seed)  # noqa: S311  # the same for the same seed
            options = RandomOptions(topics, random)
            for _ in range(self.batches):
                self.run_batch(options.batch(), random)
            self.run_stream(options.stream(), str(topics.seed), topics.change, random)
        self.say(f"seed {seed}: {json.dumps(self.counts)}")
        return self.counts["different"] == before

    def run_batch(self, options: Options, random: Random) -> None:
        """Run a batch query."""
        options = options | _SOON
        ours, jvm = _ours(options, random), random.choice([*JvmSource])
        given = dict(ours.options) | {"client": str(ours.client)} | options
        self._compare(
            f"batch of {ours}, beside {jvm}",
            options,
            _answer(lambda: read(self.spark, self.kafka, ours.format, **given)),
            _answer(lambda: read_jvm(self.spark, self.kafka, jvm, **options)),
        )

    def run_stream(
        self, options: Options, name: str, change: Callable[[], None], random: Random
    ) -> None:
        """Run two streams again and again; the JVM connector may run one of ours in between."""
        options = options | _SOON
        moves, sources = random.random() < 0.5, []
        for number in range(self.runs):
            if number:
                change()
            ours = JVM if moves and random.random() < 0.5 else _ours(options, random)
            sources.append(str(ours))
            left = [
                self._answer_of_stream(source, f"{name}-{side}", options, moves)
                for source, side in ((ours, "ours"), (JVM, "theirs"))
            ]
            if (
                not self._compare(f"stream of {sources}, one after another", options, *left)
                or left[1].error
            ):
                return

    def _answer_of_stream(self, source: Source, name: str, options: Options, moves: bool) -> Answer:
        directory = self.directory / name
        given = {**dict(source.options), **options}
        if source.client:
            given |= {"client": source.client, "metadataPath": f"{directory}/checkpoint/sources/0"}
        stream = read_stream(self.spark, self.kafka, source.format, **given)
        answer = _answer(lambda: run_available_now(stream, directory))
        for query in self.spark.streams.active:
            query.stop()
        if answer.error:
            # What was committed before.
            with suppress(AnalysisException):
                output = self.spark.read.schema(stream.schema).parquet(f"{directory}/output")
                answer = answer._replace(rows=rows(output.toArrow()))
        return answer._replace(log=_log(directory / "checkpoint", moves))

    def _compare(self, what: str, options: Options, ours: Answer, theirs: Answer) -> bool:
        """Count a pair of answers, report their difference, and return whether they are alike."""
        told = difference(ours, theirs)
        known = [name for name, holds in KNOWN.items() if told and holds(options, ours, theirs)]
        kind = "errors" if theirs.error else "rows" if theirs.rows else "empty"
        self.counts[f"known: {known[0]}" if known else "different" if told else kind] += 1
        if told and not known:
            self.say(f"DIFFERENT\n{what}\n{json.dumps(options)}\n{told[:_MAX_TOLD]}")
        return not told


def _ours(options: Options, random: Random) -> Source:
    source, joins = random.choice(OURS), random.random() < 0.3
    return source.given(**ONE_TASK) if joins and "minPartitions" not in options else source


def _answer(query: Callable[[], DataFrame]) -> Answer:
    try:
        return Answer(None, rows(query().toArrow()), {})
    except Exception as error:  # noqa: BLE001  # it is compared
        return Answer(error, [], {})


def _log(checkpoint: Path, moves: bool) -> dict[str, Any]:
    """Return what is in a checkpoint, without the times of batches.

    After a move between connectors, a batch without records may come first: Spark compares offsets
    as text (docs/get-started/migrate.md).
    """
    offsets = [lines[2:] for lines in _entries(checkpoint / "offsets")]
    commits = [lines[1:] for lines in _entries(checkpoint / "commits")]
    if moves:
        offsets = [lines for lines, _ in itertools.groupby(offsets)]
        commits = [lines for lines, _ in itertools.groupby(commits)]
    initial = [lines[1:] for lines in _entries(checkpoint / "sources" / "0")]
    return {"offsets": offsets, "commits": commits, "initial offsets": initial}


def _entries(log: Path) -> Iterable[list[Any]]:
    names = sorted((each.name for each in log.glob("[0-9]*")), key=int)
    for name in names:
        first, *others = (log / name).read_text().splitlines()
        yield [first, *map(json.loads, others)]


def difference(ours: Answer, theirs: Answer) -> str:
    """Return how answers differ, or an empty text."""
    try:
        if ours.error and theirs.error:
            _assert_alike(ours.error, theirs.error)
        else:
            assert ours.error is theirs.error, f"{ours.error}\ninstead of\n{theirs.error}"
        assert_same(ours.rows, theirs.rows)
        for name, entries in theirs.log.items():
            assert ours.log[name] == entries, f"{name}: {ours.log[name]} instead of {entries}"
    except (AssertionError, pytest.fail.Exception) as difference:
        return str(difference)
    return ""


def _assert_alike(ours: Exception, theirs: Exception) -> None:
    """Assert that errors have the same condition, or that ours has the words of a cause of theirs.

    Of several partitions, the JVM connector names any, and it has a group for each query.
    """
    causes = java_causes(theirs)
    conditions = [{*_CONDITION.findall(text)} for text in (str(ours), " ".join(map(str, causes)))]
    messages = [message for cause in causes if (message := cause.getMessage())]
    words = [message.removeprefix("assertion failed: ") for message in messages]
    masked = [sorted_sets(_MASKED.sub("0", text)) for text in (str(ours), *words)]
    if not conditions[0] & conditions[1] and not any(text in masked[0] for text in masked[1:]):
        raise AssertionError("\ninstead of\n".join([str(ours), *words]))
