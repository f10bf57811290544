"""InternalKafkaConsumerPoolSuite: how many clients a process keeps.

A Python worker of Spark runs one task at a time. Only a platform that runs tasks in threads borrows
several clients at once.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.testing import await_until

from ..spark.queries import read
from .hurried_source import HurriedSource
from .one_client import one_client
from .peer import Held, peer
from .worker_connections import worker_connections

NewPool = Callable[..., "CountedPool"]

SUITE = "InternalKafkaConsumerPoolSuite"


def options(topic: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "memory", "client": "memory", "subscribe": topic}
    return parse_source_options(given, QueryKind.BATCH)


class CountedPool:
    """A pool whose clients are counted as they are borrowed, returned and closed."""

    def __init__(self, pool: ContainerPool, closed: list[object]) -> None:
        self._pool = pool
        self._leases: dict[object, ExitStack] = {}
        self._idle: set[object] = set()
        self._closed = closed

    def borrow(self, topic: str) -> object:
        lease = ExitStack()
        reader = lease.enter_context(self._pool.lease(options(topic))).record_reader()
        assert reader not in self._leases
        assert reader not in self._closed
        self._leases[reader] = lease
        self._idle.discard(reader)
        return reader

    def give_back(self, *readers: object) -> None:
        for reader in readers:
            self._idle.add(reader)
            self._leases.pop(reader).close()

    @property
    def state(self) -> tuple[int, int]:
        assert not self._leases.keys() & self._closed
        return len(self._idle - set(self._closed)), len(self._leases)


@pytest.fixture
def closed(monkeypatch):
    """Return a list of the readers whose containers the pool has closed, as it grows."""
    readers: list[object] = []

    def shut_down(container: Container) -> None:
        readers.append(container.record_reader())
        container.shutdown_resources()

    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", shut_down)
    return readers


@pytest.fixture
def new_pool(closed):
    with ExitStack() as pools:

        def made(**given: object) -> CountedPool:
            pool = ContainerPool(**given)  # type: ignore[arg-type]
            pools.callback(pool.close)
            return CountedPool(pool, closed)

        yield made


@peer(SUITE, "basic multiple borrows and returns for single key", Held.EMBEDDED)
def test_basic_multiple_borrows_and_returns_for_single_key(new_pool):
    """Tasks that run at once have a client each; three of these wait for the next tasks."""
    pool = new_pool(max_idle=3)
    readers = [pool.borrow("t") for _task in range(3)]
    assert pool.state == (0, 3)
    another = pool.borrow("t")
    assert len({*readers, another}) == 4
    assert pool.state == (0, 4)
    pool.give_back(*readers)
    assert pool.state == (3, 1)
    pool.give_back(another)
    assert pool.state == (3, 0)
    again = {pool.borrow("t") for _task in range(3)}
    assert again < {*readers, another}
    assert pool.state == (0, 3)


@peer(SUITE, "basic borrow and return for multiple keys", Held.EMBEDDED)
def test_basic_borrow_and_return_for_multiple_keys(new_pool):
    pool = new_pool(max_idle=12)
    topics = [f"t{number}" for number in range(12)]
    readers = []
    for number, topic in enumerate(topics):
        readers.append(pool.borrow(topic))
        assert pool.state == (0, number + 1)
    assert len(set(readers)) == 12
    for number, reader in enumerate(readers):
        pool.give_back(reader)
        assert pool.state == (number + 1, 11 - number)
    assert [pool.borrow(topic) for topic in topics] == readers


@peer(
    SUITE,
    "borrow more than soft max capacity from pool which is neither free space nor idle object",
    Held.EMBEDDED,
)
def test_borrow_more_than_soft_max_capacity_without_idle_object(new_pool):
    """A task never waits for another's client: the bound is one of idle clients."""
    pool = new_pool(max_idle=2)
    readers = [pool.borrow(f"t{number}") for number in range(16)]
    pool.borrow("another")
    assert pool.state == (0, 17)
    assert len(set(readers)) == 16


@peer(
    SUITE,
    "borrow more than soft max capacity from pool frees up idle objects automatically",
    Held.EMBEDDED,
)
def test_borrow_more_than_soft_max_capacity_frees_up_idle_objects(new_pool, closed):
    """If there are too many, the client that has been idle longest is closed; busy ones stay."""
    pool = new_pool(max_idle=2)
    readers = [pool.borrow(f"t{number}") for number in range(16)]
    pool.give_back(*readers[:3])
    assert closed == readers[:1]
    assert pool.state == (2, 13)
    pool.give_back(pool.borrow("another"))
    assert closed == readers[:2]
    assert pool.state == (2, 13)
    assert pool.borrow("t2") is readers[2]


@peer(SUITE, "evicting idle objects on background", Held.SPARK)
@peer("InternalKafkaProducerPoolSuite", "expire instances", Held.SPARK)
@one_client
def test_idle_clients_of_a_worker_are_closed(spark, kafka, topics, client):
    spark.dataSource.register(HurriedSource)
    hurried = HurriedSource.name()
    listed = worker_connections(spark, kafka)
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    rows = read(spark, kafka, hurried, subscribe=topic, client=client)
    before = listed()
    assert rows.count() == 10
    read_by = listed() - before
    writer = rows.select("value").write.format(hurried).mode("append")
    writer.options(**kafka.options, client=client, topic=topic).save()
    used = read_by | listed() - before
    assert read_by
    assert used > read_by
    await_until(lambda: not used & listed())
    assert all(Path(f"/proc/{process}").exists() for process, _port in used)
    assert rows.count() == 20
