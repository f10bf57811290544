"""Streaming queries in Spark, beside the JVM connector."""

import json

from pyspark.sql import DataFrame

from .queries import OURS, PEER, assert_same_rows, read_stream, run_available_now


def numbers(table: DataFrame) -> list[int]:
    rows = table.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


def test_rows_are_those_of_the_jvm_connector(spark, kafka, topics, client, tmp_path):
    topic = topics.create(4)
    topics.fill(topic, {1: 300, 3: 30})
    options = {"subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
    ours = run_available_now(
        read_stream(spark, kafka, OURS, client=client, **options), tmp_path / "ours"
    )
    theirs = run_available_now(read_stream(spark, kafka, PEER, **options), tmp_path / "theirs")
    assert theirs.count() == 330
    assert_same_rows(ours, theirs)


def test_a_query_goes_on_from_its_checkpoint(spark, kafka, topics, client, tmp_path):
    topic = topics.create(1)
    stream = read_stream(
        spark, kafka, OURS, client=client, subscribe=topic, startingOffsets="earliest"
    )
    topics.numbers(topic, 0, range(10))
    assert numbers(run_available_now(stream, tmp_path)) == list(range(10))

    topics.numbers(topic, 0, range(10, 15))
    kafka.add_partitions(topic, 3)
    topics.numbers(topic, 2, range(15, 40))
    assert numbers(run_available_now(stream, tmp_path)) == list(range(40))

    assert numbers(run_available_now(stream, tmp_path)) == list(range(40))


def test_the_jvm_connector_takes_a_checkpoint_over_and_gives_it_back(
    spark, kafka, topics, client, tmp_path
):
    topic = topics.create(2)
    for run, source in enumerate((PEER, OURS, PEER, OURS)):
        topics.numbers(topic, run % 2, range(10 * run, 10 * run + 10))
        options = {"client": client} if source == OURS else {}
        stream = read_stream(
            spark, kafka, source, subscribe=topic, startingOffsets="earliest", **options
        )
        assert numbers(run_available_now(stream, tmp_path)) == list(range(10 * run + 10))


def test_a_running_query_reads_what_comes(spark, kafka, topics, client):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(5))
    query = (
        read_stream(spark, kafka, OURS, client=client, subscribe=topic)
        .writeStream.format("memory")
        .queryName(f"{topic}_{client.replace('-', '_')}")
        .start()
    )
    try:
        # The first batch fixes the offsets at which the query begins.
        query.processAllAvailable()
        for start in (5, 15):
            topics.numbers(topic, 0, range(start, start + 5))
            topics.numbers(topic, 1, range(start + 5, start + 10))
            query.processAllAvailable()
            assert numbers(spark.table(query.name)) == list(range(5, start + 10))
        progress = query.lastProgress
        assert progress is not None
        latest = json.loads(progress["sources"][0]["latestOffset"])
        assert latest == {topic: {"0": 15, "1": 10}}
    finally:
        query.stop()
