"""InternalKafkaProducerPoolSuite: how long a process keeps what writes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.bootstrap.container import SinkContainer
from pyspark_kafka.bootstrap.pool import MAX_IDLE, ContainerPool
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options

from ..spark.queries import OURS, read
from .one_client import one_client
from .peer import Held, peer
from .worker_connections import Connections, worker_connections

SUITE = "InternalKafkaProducerPoolSuite"


def options(client: str, **given: str) -> SinkOptions:
    settings = {name.replace("__", "."): value for name, value in given.items()}
    needed = {"kafka.bootstrap.servers": "127.0.0.1:1", "client": client, "topic": "t"}
    return parse_sink_options({**needed, **settings}, QueryKind.BATCH)


def borrow(pool: ContainerPool, wanted: SinkOptions) -> object:
    with pool.lease(wanted) as container:
        writer: object = container.record_writer()
    return writer


@pytest.fixture
def closed(monkeypatch):
    """Return a list of the writers whose containers the pool has closed, as it grows."""
    writers: list[object] = []

    def shut_down(container: SinkContainer) -> None:
        writers.append(container.record_writer())
        container.shutdown_resources()

    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", shut_down)
    return writers


@pytest.fixture
def pool(closed):
    assert closed == []
    made = ContainerPool()
    yield made
    made.close()


@peer(SUITE, "Should return same cached instance on calling acquire with same params.", Held.SPARK)
@peer(
    SUITE,
    "Should return different cached instances on calling acquire with different params.",
    Held.SPARK,
)
@one_client
def test_tasks_with_the_same_params_keep_their_clients(spark, kafka, topics, client):
    topic = topics.create()
    listed = worker_connections(spark, kafka)

    def new_connections(**given: str) -> Connections:
        before = listed()
        write(spark, kafka, topic, client=client, **given)
        return listed() - before

    first = new_connections(kafka__acks="1")
    assert first
    # Spark takes its idle workers in turn, and each makes a client once.
    more = [new_connections(kafka__acks="1") for _task in range(7)]
    assert not any(more[-2:])
    assert new_connections(kafka__acks="all")
    assert first <= listed()
    assert read(spark, kafka, OURS, subscribe=topic, client=client).count() == 9


def write(spark: SparkSession, kafka: KafkaCluster, topic: str, **given: str) -> None:
    row = spark.range(1).selectExpr("cast(id as string) as value").coalesce(1)
    settings = {name.replace("__", "."): value for name, value in given.items()}
    writer = row.write.format(OURS).options(**kafka.options, **settings)
    writer.mode("append").option("topic", topic).save()


@peer(SUITE, "reference counting with concurrent access", Held.EMBEDDED)
def test_reference_counting_with_concurrent_access(pool, client, closed):
    in_use: set[object] = set()
    used: set[object] = set()
    lock = threading.Lock()

    def use(_number: int) -> None:
        with pool.lease(options(client)) as container:
            writer = container.record_writer()
            with lock:
                assert writer not in in_use
                in_use.add(writer)
                used.add(writer)
            assert writer not in closed
            with lock:
                in_use.remove(writer)

    with ThreadPoolExecutor(16) as threads:
        assert len(list(threads.map(use, range(500)))) == 500
    assert len(used) - len(closed) <= MAX_IDLE
    assert borrow(pool, options(client)) in used - set(closed)
    pool.close()
    assert len(closed) == len(used)
    assert set(closed) == used
