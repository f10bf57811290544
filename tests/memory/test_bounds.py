"""Bounds on the memory that users' data takes, as in docs/reference/limits.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Producer

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record
from pyspark_kafka.testing.kafka_world import produce_with

from ..servers.http_server import Response, serving
from . import uses
from .measuring import megabytes

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about memory"),
    pytest.mark.timeout(600),
]

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
ROW: Final = re.compile(r"^\| ([^|]+) \| [^|]+ \| (\d+) MB \| (\d+) MB \|$", re.MULTILINE)
BOUNDS: Final = {
    name: {"kafka-python": int(one), "confluent": int(other)}
    for name, one, other in ROW.findall(PAGE.read_text())
}

LONG, WIDE = (2, 40), (20, 8)
"""Partitions of a topic, and records of 4 MB in each."""

READING: Final[dict[str, tuple[Callable[..., None], tuple[int, int]]]] = {
    "sampling sizes for `maxBytesPerTrigger`": (uses.plan_triggers, LONG),
    "a range that a task reads": (uses.read_ranges, LONG),
    "small ranges that a task fetches together": (uses.read_ranges, WIDE),
    "`pyspark-kafka tail --once`": (uses.tail_once, LONG),
    "a task of a continuous query, `pyspark-kafka tail`": (uses.follow, WIDE),
    "counting dead letters": (uses.count_letters, LONG),
}
WRITING: Final = "a task that writes"
PLANNING: Final = "planning, and committing to a group"
LISTING: Final = "listing a checkpoint's logs"
LAG: Final = "lag that waits for its reader"
REGISTRY: Final = "an answer of a schema registry"
SCHEMA: Final = "decoding with an Avro schema"
PARTITIONS: Final = 1_000
LARGE: Final = bytes(uses.RECORD_BYTES)


@pytest.fixture(scope="module")
def large_topics(kafka, fresh_name):
    """Yield the names of topics by their sizes; the first one is small."""
    config = {"max.message.bytes": str(2 * uses.RECORD_BYTES), "retention.ms": "-1"}
    more = {"message.max.bytes": 2 * uses.RECORD_BYTES}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **more})
    made: dict[tuple[int, int], str] = {}
    for size, content in {(1, 1): b"v", LONG: LARGE, WIDE: LARGE}.items():
        partitions, records = size
        made[size] = fresh_name()
        kafka.create_topic(made[size], partitions, config=config)
        for number in range(partitions):
            for _ in range(records):
                produce_with(producer, TopicPartition(made[size], number), [Record(content)])
    yield made
    for name in made.values():
        kafka.delete_topic(name)


@pytest.mark.parametrize("name", READING)
def test_reading_large_records(kafka, client, large_topics, name):
    use, size = READING[name]
    small, large = (
        (client, kafka.bootstrap_servers, large_topics[each]) for each in ((1, 1), size)
    )
    assert megabytes(use, small, large) < BOUNDS[name][client]


def test_writing_large_records(kafka, client, large_topics):
    given = (client, kafka.bootstrap_servers, large_topics[1, 1])
    assert megabytes(uses.write, (*given, 1), (*given, 60)) < BOUNDS[WRITING][client]


def test_many_partitions(kafka, client, large_topics, fresh_name):
    topic = fresh_name()
    kafka.create_topic(topic, PARTITIONS)
    given = (client, kafka.bootstrap_servers)
    small, large = (*given, large_topics[LONG]), (*given, topic)
    assert megabytes(uses.commit_group, small, large) < BOUNDS[PLANNING][client]
    kafka.delete_topic(topic)


def test_a_log_of_many_batches(tmp_path):
    for name, batches in (("small", 1), ("large", 50_000)):
        for log, text in (("offsets", 'v1\n{}\n{"t":{"0":1}}'), ("commits", "v1\n{}")):
            directory = tmp_path / name / log
            directory.mkdir(parents=True)
            for batch_id in range(batches):
                (directory / str(batch_id)).write_text(text)
    small, large = ((str(tmp_path / name),) for name in ("small", "large"))
    assert megabytes(uses.list_log, small, large) < min(BOUNDS[LISTING].values())


def test_an_answer_of_a_registry_that_is_too_large():
    answers: dict[str, Any] = {"/small": b"{}", "/large": bytes(100_000_000)}

    def respond(request: Any) -> Response:
        return Response(answers["/" + request.path.split("/")[1]])

    with serving(respond) as url:
        measured = megabytes(uses.ask_registry, (f"{url}/small",), (f"{url}/large",))
    assert measured < min(BOUNDS[REGISTRY].values())


@pytest.mark.parametrize(
    ("name", "use", "small", "large"),
    [
        (LAG, uses.report_lag, (1, 1), (10_000, 150)),
        (SCHEMA, uses.decode_fields, (1,), (5_000,)),
    ],
)
def test_what_a_process_keeps(name, use, small, large):
    assert megabytes(use, small, large) < min(BOUNDS[name].values())


def test_every_bound_of_the_page_is_held():
    assert set(BOUNDS) == {*READING, WRITING, PLANNING, LISTING, LAG, REGISTRY, SCHEMA}
