"""Records that are gone when a query goes on: what both sources do, for both flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.queries import OURS, PEER, read, read_stream

from .peer import Held, peer
from .stream_runs import run_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.brokers import KafkaCluster
    from tests.spark.topics import Topics

SUITE = "KafkaDontFailOnDataLossSuite"
NO_DUPLICATES = "failOnDataLoss=false should not return duplicated records"


@pytest.fixture
def open_stream(spark: SparkSession, kafka: KafkaCluster, client: str) -> Callable[..., DataFrame]:
    """Return a function to open a stream of either source."""

    def opened(source: str, topic: str, fail_on_data_loss: str) -> DataFrame:
        chosen = {"client": client} if source == OURS else {}
        return read_stream(
            spark,
            kafka,
            source,
            subscribe=topic,
            startingOffsets="earliest",
            failOnDataLoss=fail_on_data_loss,
            kafkaConsumer__pollTimeoutMs="2000",
            **chosen,
        )

    return opened


@pytest.fixture
def streams(
    open_stream: Callable[..., DataFrame], tmp_path: Path
) -> Callable[..., list[list[list[int]]]]:
    """Return a function to run a stream of both sources from their checkpoints to their ends."""

    def run(topic: str, fail_on_data_loss: str) -> list[list[list[int]]]:
        return [
            run_once(open_stream(source, topic, fail_on_data_loss), tmp_path / source)
            for source in (OURS, PEER)
        ]

    return run


@peer(SUITE, f"{NO_DUPLICATES}: microbatch v2", Held.BESIDE_JVM)
def test_records_deleted_under_a_checkpoint_are_skipped(
    streams: Callable[..., list[list[list[int]]]], kafka: KafkaCluster, topics: Topics
) -> None:
    """A query that may lose data reads what is left, once, like the JVM connector."""
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    assert streams(topic, "false") == [[list(range(10))]] * 2
    topics.numbers(topic, 0, range(10, 30))
    kafka.delete_records({(topic, 0): 20})
    topics.numbers(topic, 0, range(30, 35))
    assert streams(topic, "false") == [[list(range(20, 35))]] * 2


def test_records_deleted_under_a_checkpoint_fail_the_query(
    streams: Callable[..., list[list[list[int]]]],
    open_stream: Callable[..., DataFrame],
    kafka: KafkaCluster,
    topics: Topics,
    tmp_path: Path,
) -> None:
    """A query that may not lose data fails, and both sources name the same range."""
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    assert streams(topic, "true") == [[list(range(10))]] * 2
    topics.numbers(topic, 0, range(10, 30))
    kafka.delete_records({(topic, 0): 20})
    for source in (OURS, PEER):
        with pytest.raises(Exception, match="Some data may have been lost") as caught:
            run_once(open_stream(source, topic, "true"), tmp_path / source)
        expected = f"Could not read records in offset [10, 30) for topic partition {topic}-0"
        assert expected in str(caught.value)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_made_anew_with_fewer_records(
    streams: Callable[..., list[list[list[int]]]],
    kafka: KafkaCluster,
    topics: Topics,
    fail_on_data_loss: str,
) -> None:
    """A topic that ends before the checkpoint fails the query, or gives nothing twice."""
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    assert streams(topic, fail_on_data_loss) == [[list(range(10))]] * 2
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    topics.numbers(topic, 0, range(100, 103))
    if fail_on_data_loss == "true":
        with pytest.raises(Exception, match="was changed from 10 to 3"):
            streams(topic, "true")
        return
    ours, theirs = streams(topic, "false")
    assert ours == theirs
    topics.numbers(topic, 0, range(103, 106))
    ours, theirs = streams(topic, "false")
    assert ours == theirs == [[103, 104, 105]]


@peer(SUITE, f"{NO_DUPLICATES}: batch v2", Held.BESIDE_JVM)
def test_a_batch_reads_what_is_left(
    spark: SparkSession, kafka: KafkaCluster, topics: Topics, client: str
) -> None:
    """A batch query that may lose data reads what is left of its range, once."""
    topic = topics.create()
    topics.numbers(topic, 0, range(50))
    kafka.delete_records({(topic, 0): 30})
    options = {
        "subscribe": topic,
        "startingOffsets": f'{{"{topic}":{{"0":0}}}}',
        "failOnDataLoss": "false",
        "kafkaConsumer__pollTimeoutMs": "2000",
    }
    found = [
        [row.offset for row in read(spark, kafka, source, **options, **chosen).collect()]
        for source, chosen in ((OURS, {"client": client}), (PEER, {}))
    ]
    assert sorted(found[0]) == sorted(found[1]) == list(range(30, 50))
