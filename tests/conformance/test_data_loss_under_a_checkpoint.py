"""Records that are gone when a query continues: what both sources do, for both flags."""

from collections.abc import Callable

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.queries import OURS, PEER, read_stream

from .side_by_side import outcome
from .stream_runs import run_once

Streams = Callable[[str, str], list[object]]


@pytest.fixture
def streams(spark, kafka, client, tmp_path):
    """Return a function to run a stream of both sources from their checkpoints to their ends.

    It takes the topic and ``failOnDataLoss``, and returns for each source the numbers of each batch
    that has any, or the error with which the query ended.
    """

    def run(source: str, topic: str, fail_on_data_loss: str) -> list[list[int]]:
        stream = read_stream(
            spark,
            kafka,
            source,
            subscribe=topic,
            startingOffsets="earliest",
            failOnDataLoss=fail_on_data_loss,
            kafkaConsumer__pollTimeoutMs="2000",
            **({"client": client} if source == OURS else {}),
        )
        return run_once(stream, tmp_path / source)

    def outcomes(topic: str, fail_on_data_loss: str) -> list[object]:
        return [
            outcome(lambda: run(OURS, topic, fail_on_data_loss)),
            outcome(lambda: run(PEER, topic, fail_on_data_loss)),
        ]

    return outcomes


def assert_failed(outcomes: list[object], *words: str) -> None:
    for each in outcomes:
        assert isinstance(each, StreamingQueryException)
        assert "Some data may have been lost" in str(each)
        assert all(text in str(each) for text in words)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_made_anew_with_fewer_records(streams, kafka, topics, fail_on_data_loss):
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    assert streams(topic, fail_on_data_loss) == [[list(range(10))]] * 2
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    topics.numbers(topic, 0, range(100, 103))
    if fail_on_data_loss == "true":
        assert_failed(streams(topic, "true"), f"{topic}-0", "was changed from 10 to 3")
        return
    # Both continue from the new end.
    assert streams(topic, "false") == [[]] * 2
    topics.numbers(topic, 0, range(103, 106))
    assert streams(topic, "false") == [[[103, 104, 105]]] * 2
