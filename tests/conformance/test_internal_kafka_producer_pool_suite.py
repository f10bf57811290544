"""InternalKafkaProducerPoolSuite: how long a process keeps what writes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.bootstrap.container import SinkContainer
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.options import QueryKind, SinkOptions, parse_sink_options

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = "InternalKafkaProducerPoolSuite"

TEN_MINUTES = 600.0


def options(client: str, **given: str) -> SinkOptions:
    settings = {name.replace("__", "."): value for name, value in given.items()}
    needed = {"kafka.bootstrap.servers": "127.0.0.1:1", "client": client, "topic": "t"}
    return parse_sink_options({**needed, **settings}, QueryKind.BATCH)


def borrow(pool: ContainerPool, wanted: SinkOptions) -> object:
    """Borrow a writer, and give it back."""
    with pool.lease(wanted) as container:
        writer: object = container.record_writer()
    return writer


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list of the writers whose containers the pool has closed, as it grows."""
    writers: list[object] = []

    def shut_down(container: SinkContainer) -> None:
        writers.append(container.record_writer())
        container.shutdown_resources()

    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", shut_down)
    return writers


@pytest.fixture
def pool(closed: list[object]) -> Iterator[ContainerPool]:
    """Yield a pool for this test."""
    assert closed == []
    made = ContainerPool()
    yield made
    made.close()


@peer(
    SUITE, "Should return same cached instance on calling acquire with same params.", Held.LIBRARY
)
def test_should_return_same_cached_instance_with_same_params(
    pool: ContainerPool, client: str, closed: list[object]
) -> None:
    """The next task of the same options writes by the same client, which stays connected."""
    one = borrow(pool, options(client, kafka__acks="1"))
    assert borrow(pool, options(client, kafka__acks="1")) is one
    assert closed == []


@peer(
    SUITE,
    "Should return different cached instances on calling acquire with different params.",
    Held.LIBRARY,
)
@pytest.mark.parametrize(
    "other", [{"kafka__acks": "0"}, {"topic": "u"}, {"kafka__client__id": "another"}]
)
def test_should_return_different_cached_instances_with_different_params(
    pool: ContainerPool, client: str, other: dict[str, str]
) -> None:
    """Options that differ in anything have clients of their own."""
    one = borrow(pool, options(client, kafka__acks="1"))
    assert borrow(pool, options(client, **{"kafka__acks": "1", **other})) is not one
    assert borrow(pool, options(client, kafka__acks="1")) is one


@peer(SUITE, "expire instances", Held.LIBRARY)
def test_expire_instances(
    pool: ContainerPool, client: str, closed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that waits for ten minutes is closed, and one that is in use never."""
    now = 1_000.0
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.time.monotonic", lambda: now)
    wanted, other = options(client), options(client, topic="u")
    with pool.lease(wanted) as container:
        one = container.record_writer()
        now += 2 * TEN_MINUTES
        borrow(pool, other)
        assert closed == []
    now += TEN_MINUTES
    assert borrow(pool, wanted) is one
    now += TEN_MINUTES + 1
    assert borrow(pool, wanted) is not one
    assert one in closed


@peer(SUITE, "reference counting with concurrent access", Held.LIBRARY)
def test_reference_counting_with_concurrent_access(
    pool: ContainerPool, client: str, closed: list[object]
) -> None:
    """Tasks at once never share a client, and no client is closed while a task has it."""
    in_use: set[int] = set()
    lock = threading.Lock()

    def use(number: int) -> None:
        with pool.lease(options(client, topic=f"t{number % 2}")) as container:
            writer = container.record_writer()
            with lock:
                assert id(writer) not in in_use
                in_use.add(id(writer))
            assert writer not in closed
            with lock:
                in_use.remove(id(writer))

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(use, number) for number in range(200)]:
            done.result()
