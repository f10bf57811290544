"""Records that a query reads after its first batch failed and either source restarted it."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from ..conformance.stream_runs import run_once
from .queries import OURS, PEER, read_stream

FAILURE = "the first batch fails"
BEFORE, AFTER = "before it is planned", "after it is planned"


def fail_first_batch(stream: DataFrame, directory: Path, when: str) -> None:
    def fail(_batch: DataFrame, _number: int) -> None:
        raise RuntimeError(FAILURE)

    query = (
        stream.writeStream.foreachBatch(fail)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .start()
    )
    with pytest.raises(StreamingQueryException, match=FAILURE):
        query.awaitTermination(60)
    if when == BEFORE:
        # What a driver leaves that ends between the two: Spark asks where to begin, then plans.
        for log in (directory / "checkpoint" / "offsets").iterdir():
            log.unlink()


def options_of(source: str, client: str, directory: Path | None) -> dict[str, str]:
    if source == PEER:
        return {}
    path = {} if directory is None else {"metadataPath": f"{directory}/checkpoint/sources/0"}
    return {"client": client, **path}


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize(
    ("first", "second"), [(OURS, OURS), (PEER, OURS), (OURS, PEER)], ids="-".join
)
def test_nothing_is_lost_when_the_first_batch_fails(
    spark, kafka, topics, client, tmp_path, first, second, when
):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(5))
    options = options_of(first, client, tmp_path)
    fail_first_batch(read_stream(spark, kafka, first, subscribe=topic, **options), tmp_path, when)
    topics.numbers(topic, 1, range(5, 10))
    options = options_of(second, client, tmp_path)
    batches = run_once(read_stream(spark, kafka, second, subscribe=topic, **options), tmp_path)
    assert batches == [[5, 6, 7, 8, 9]]


def test_without_a_log_what_came_before_the_restart_is_lost(spark, kafka, topics, client, tmp_path):
    """Spark passes no directory to Python sources: without one a query begins at the end again."""
    topic = topics.create()
    topics.numbers(topic, 0, range(5))
    stream = read_stream(spark, kafka, OURS, subscribe=topic, **options_of(OURS, client, None))
    fail_first_batch(stream, tmp_path, BEFORE)
    topics.numbers(topic, 0, range(5, 10))
    assert run_once(stream, tmp_path) == []


def test_without_a_log_a_planned_batch_that_fails_loses_nothing(
    spark, kafka, topics, client, tmp_path
):
    """A batch that starts at the latest offsets ends there, so that its logged end is its start."""
    topic = topics.create()
    topics.numbers(topic, 0, range(5))
    stream = read_stream(spark, kafka, OURS, subscribe=topic, **options_of(OURS, client, None))
    fail_first_batch(stream, tmp_path, AFTER)
    topics.numbers(topic, 0, range(5, 10))
    assert run_once(stream, tmp_path) == [[5, 6, 7, 8, 9]]


def test_without_a_log_a_planned_batch_survives_a_new_partition(
    spark, kafka, topics, client, tmp_path
):
    topic = topics.create()
    topics.numbers(topic, 0, range(5))
    starting = {"startingOffsets": f'{{"{topic}":{{"0":2}}}}', "client": client}
    stream = read_stream(spark, kafka, OURS, subscribe=topic, **starting)
    fail_first_batch(stream, tmp_path, AFTER)
    topics.cluster.add_partitions(topic, 2)
    topics.numbers(topic, 1, range(5, 10))
    assert run_once(stream, tmp_path) == [[2, 3, 4], [5, 6, 7, 8, 9]]
