"""The same topics through every reader there is: no difference may be found.

Topics are random, from a seed that each test's name contains. The environment variable
``PYSPARK_KAFKA_SEEDS`` gives others: ``PYSPARK_KAFKA_SEEDS=7,8``.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
import pytest

from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import RecordReader
from pyspark_kafka.ports.record_schema import record_schema

from .queries import OURS, PEER, read
from .random_topics import LEVELS, RandomTopics, Row

SEEDS = [int(seed) for seed in os.environ.get("PYSPARK_KAFKA_SEEDS", "1,2").split(",")]

FETCH_SIZES = ("10000", "200000")
RANGES = 5
MAX_SHOWN = 200

Span = tuple[int, int]


@dataclass(frozen=True)
class Judged:
    """Topics, and what kafka-python's own consumer finds in them, by isolation level."""

    written: RandomTopics
    rows: Mapping[str, Mapping[TopicPartition, Sequence[Row]]]

    def of(self, level: str, spans: Mapping[TopicPartition, Span]) -> list[Row]:
        return [
            row
            for partition, (start, end) in sorted(spans.items())
            for row in _between(self.rows[level][partition], start, end)
        ]

    def whole(self, level: str) -> dict[TopicPartition, Span]:
        return {part: (0, end) for part, end in self.written.ends_for(level).items()}

    def parts(self, level: str, random: Random) -> dict[TopicPartition, Span]:
        return {
            partition: _span(end, random) for partition, end in self.written.ends_for(level).items()
        }


@pytest.fixture(scope="module", params=SEEDS, ids="seed={}".format)
def judged(request, spark, kafka, fresh_name):
    with RandomTopics(kafka, spark, fresh_name, request.param) as written:
        yield Judged(written, {level: written.read_by_judge(level) for level in LEVELS})


@pytest.fixture(params=LEVELS)
def level(request):
    """Return each isolation level in turn."""
    return request.param


@pytest.fixture
def random(judged, level):
    return Random(f"{judged.written.seed} {level}")  # noqa: S311


@pytest.fixture
def through_spark(spark, kafka, judged, level):
    def through(source: str, spans: Mapping[TopicPartition, Span], **options: str) -> list[Row]:
        table = read(
            spark,
            kafka,
            source,
            subscribe=",".join(judged.written.topics),
            kafka__isolation__level=level,
            startingOffsets=_offsets({part: start for part, (start, _) in spans.items()}),
            endingOffsets=_offsets({part: end for part, (_, end) in spans.items()}),
            **options,
        )
        return rows(table.toArrow())

    return through


def test_the_jvm_connector_reads_what_the_judge_reads(judged, level, random, through_spark):
    """The two that are not ours agree, on whole topics and on parts of them."""
    for spans in (judged.whole(level), judged.parts(level, random)):
        expected = judged.of(level, spans)
        assert expected
        assert_same(through_spark(PEER, spans, includeHeaders="true"), expected)


@pytest.mark.parametrize("headers", [True, False])
def test_whole_topics_are_the_same_in_spark(judged, level, client, headers, spark, kafka):
    table = read(
        spark,
        kafka,
        OURS,
        client=client,
        subscribe=",".join(judged.written.topics),
        kafka__isolation__level=level,
        includeHeaders=str(headers).lower(),
    )
    expected = judged.of(level, judged.whole(level))
    assert_same(rows(table.toArrow()), expected if headers else without_headers(expected))


def test_parts_of_topics_are_the_same_in_spark(judged, level, client, random, through_spark):
    spans = judged.parts(level, random)
    expected = judged.of(level, spans)
    assert expected
    assert_same(through_spark(OURS, spans, client=client, includeHeaders="true"), expected)


def test_ranges_are_the_same_through_the_port(judged, level, client, random, kafka):
    for fetch_bytes in FETCH_SIZES:
        options = {
            **kafka.options,
            "client": client,
            "subscribe": "any",
            "kafka.isolation.level": level,
            "kafka.max.partition.fetch.bytes": fetch_bytes,
        }
        container = container_for(parse_source_options(options, QueryKind.BATCH))
        try:
            reader: RecordReader = container.record_reader()
            for partition, end in judged.written.ends_for(level).items():
                spans = [(0, end), *(_span(end, random) for _ in range(RANGES))]
                for start, until in spans:
                    projection = random.choice((ALL_COLUMNS, WITHOUT_HEADERS))
                    batches = list(reader.read(OffsetRange(partition, start, until), projection))
                    expected = judged.of(level, {partition: (start, until)})
                    if projection is WITHOUT_HEADERS:
                        expected = without_headers(expected)
                    assert_same(
                        rows(pa.Table.from_batches(batches, record_schema(projection))), expected
                    )
        finally:
            container.shutdown_resources()


def test_the_topics_hold_what_they_are_to_hold(judged):
    """Compaction, aborted transactions and an open one have left gaps, and all shapes occur."""
    everything, committed = (judged.of(level, judged.whole(level)) for level in LEVELS)
    assert len(committed) < len(everything) < sum(judged.written.ends.values())
    assert {row.timestamp_type for row in everything} == {0, 1}
    for column in ("key", "value"):
        texts = {getattr(row, column) for row in everything}
        assert {None, b""} < texts
        assert any(text is not None and len(text) == 200_000 for text in texts)
    pairs = [row.headers for row in everything]
    assert None in pairs
    assert any(len({key for key, _ in row}) < len(row) for row in pairs if row)


def _between(found: Sequence[Row], start: int, end: int) -> Sequence[Row]:
    first, behind = (bisect_left(found, at, key=lambda row: row.offset) for at in (start, end))
    return found[first:behind]


def rows(table: pa.Table) -> list[Row]:
    columns = {name: table.column(name) for name in table.column_names}
    columns["timestamp"] = columns["timestamp"].cast(pa.int64())
    lists = {name: column.to_pylist() for name, column in columns.items()}
    shown = [
        None if pairs is None else tuple((each["key"], each["value"]) for each in pairs)
        for pairs in lists.get("headers") or [None] * table.num_rows
    ]
    others = (lists[name] for name in WITHOUT_HEADERS.columns)
    found = [Row(*parts) for parts in zip(*others, shown, strict=True)]
    return sorted(found, key=_place)


def without_headers(expected: Sequence[Row]) -> list[Row]:
    return [row._replace(headers=None) for row in expected]


def assert_same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    if found == expected:
        return
    for ours, theirs in zip(found, expected, strict=False):
        assert ours == theirs, f"{_shown(ours)}\ninstead of\n{_shown(theirs)}"
    longer = found if len(found) > len(expected) else expected
    first = _shown(longer[min(len(found), len(expected))])
    pytest.fail(f"{len(found)} rows instead of {len(expected)}, the first of the rest is {first}")


def _shown(row: Row) -> str:
    return ", ".join(f"{name}={str(part)[:MAX_SHOWN]}" for name, part in row._asdict().items())


def _place(row: Row) -> tuple[str, int, int]:
    return row.topic, row.partition, row.offset


def _span(end: int, random: Random) -> Span:
    start, until = sorted((random.randint(0, end), random.randint(0, end)))
    return start, until


def _offsets(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for partition, offset in offsets.items():
        by_topic.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return json.dumps(by_topic)
