from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka.brokers import KafkaCluster

from .queries import OURS, read


def write(spark: SparkSession, kafka: KafkaCluster, topic: str, number: int) -> None:
    rows = spark.sql(f"SELECT binary('{number}') AS value")
    rows.write.format(OURS).options(**kafka.options, topic=topic).mode("append").save()


def test_threads_write_with_an_active_session(spark, kafka, topics):
    topic = topics.create()
    activate = pyspark_kafka.set_active_session
    with ThreadPoolExecutor(2, initializer=activate, initargs=(spark,)) as pool:
        writes = [pool.submit(write, spark, kafka, topic, number) for number in range(4)]
        for each in writes:
            each.result()
    values = read(spark, kafka, OURS, subscribe=topic).select("value").collect()
    assert {bytes(row.value) for row in values} == {b"0", b"1", b"2", b"3"}


@pytest.mark.usefixtures("spark")
def test_a_thread_that_asks_for_the_session_has_it(kafka, topics):
    """As a cell of a notebook that runs again after another was interrupted."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: write(pyspark_kafka.session(), kafka, topics.create(), 0)).result()


def test_a_thread_without_one_cannot_find_the_source(spark, kafka):
    """Spark does not look into the session of the data frame: the function is needed."""
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(write, spark, kafka, "unused", 0).exception()
    assert "DATA_SOURCE_NOT_FOUND" in str(error)
