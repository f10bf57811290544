"""Streaming queries in Spark, beside the JVM connector."""

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
