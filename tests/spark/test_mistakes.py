"""Spark's output for the usual mistakes: the error of this library, near its beginning."""

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.brokers import KafkaCluster
from tests.mistakes import MISTAKES, Mistake, Query, first_line, name, places_of

from .queries import OURS

QUICK = {
    "kafka.default.api.timeout.ms": "3000",
    "kafka.max.block.ms": "3000",
    "fetchOffset.numRetries": "1",
}
FRAMES = 14
"""Lines that Spark may put before the error: its own condition, and frames of a traceback."""

READ, BATCH, STREAM, WRITE, _ = Query
CASES = [
    (mistake, kind)
    for group in MISTAKES.values()
    for mistake in group
    for kind in {READ: (BATCH, STREAM)}.get(mistake.query, (mistake.query,))
    if kind is not Query.COMMAND
]


@pytest.fixture(scope="module")
def places(kafka, secured, tmp_path_factory):
    kafka.create_topic("mistakes-in-spark", 2)
    return places_of(secured, tmp_path_factory.mktemp("mistakes"), "mistakes-in-spark")


def run(spark: SparkSession, kind: Query, options: dict[str, str], columns: str) -> None:
    match kind:
        case Query.STREAM:
            rows = spark.readStream.format(OURS).options(**options).load()
            query = rows.writeStream.format("noop").trigger(availableNow=True).start()
            query.awaitTermination(120)
        case Query.WRITE:
            rows = spark.sql(f"select {columns}")
            rows.write.format(OURS).options(**options).mode("append").save()
        case _:
            spark.read.format(OURS).options(**options).load().count()


@pytest.mark.parametrize(("mistake", "kind"), CASES, ids=name)
def test_with_spark(spark, kafka, places, mistake, kind):
    check(spark, kafka, places, mistake, kind)


@pytest.mark.parametrize(("mistake", "kind"), CASES, ids=name)
def test_with_spark_connect(connect, kafka, places, mistake, kind):
    check(connect, kafka, places, mistake, kind)


def check(
    spark: SparkSession,
    kafka: KafkaCluster,
    places: dict[str, str],
    mistake: Mistake,
    kind: Query,
) -> None:
    topic = {"topic" if kind is Query.WRITE else "subscribe": places["topic"]}
    given = mistake.given({**kafka.options, **QUICK, **topic}, places)
    with pytest.raises(Exception, match=r"\[KAFKA_") as caught:
        run(spark, kind, given, mistake.columns)
    text = str(caught.value)
    assert mistake.sees.format(**places) in first_line(text)
    before = text.partition("[KAFKA_")[0]
    assert len(before.splitlines()) <= FRAMES, text
