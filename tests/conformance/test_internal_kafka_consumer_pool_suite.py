"""InternalKafkaConsumerPoolSuite: how many clients a process keeps."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Sequence

SUITE = "InternalKafkaConsumerPoolSuite"


def options(topic: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "memory", "client": "memory", "subscribe": topic}
    return parse_source_options(given, QueryKind.BATCH)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list of the readers whose containers the pool has closed, as it grows."""
    readers: list[object] = []

    def shut_down(container: Container) -> None:
        readers.append(container.record_reader())
        container.shutdown_resources()

    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", shut_down)
    return readers


def borrow(pool: ContainerPool, topics: Sequence[str]) -> list[object]:
    """Borrow a client for each topic, all at once, and give back the last one first."""
    with ExitStack() as leases:
        return [
            leases.enter_context(pool.lease(options(topic))).record_reader() for topic in topics
        ]


@peer(SUITE, "basic multiple borrows and returns for single key", Held.LIBRARY)
def test_basic_multiple_borrows_and_returns_for_single_key(closed: list[object]) -> None:
    """Tasks at once have a client each, of which three wait to be used again."""
    pool = ContainerPool(max_idle=3)
    readers = borrow(pool, ["t"] * 5)
    assert len(set(map(id, readers))) == 5
    assert closed == [readers[4], readers[3]]
    again = borrow(pool, ["t"] * 3)
    assert set(map(id, again)) == set(map(id, readers[:3]))


@peer(SUITE, "basic borrow and return for multiple keys", Held.LIBRARY)
def test_basic_borrow_and_return_for_multiple_keys(closed: list[object]) -> None:
    """Clients of other options wait side by side, and each goes to its own options again."""
    pool = ContainerPool(max_idle=10)
    topics = [f"t{number}" for number in range(10)]
    readers = borrow(pool, topics)
    assert len(set(map(id, readers))) == 10
    assert all(one is two for one, two in zip(borrow(pool, topics), readers, strict=True))
    assert closed == []


@peer(
    SUITE,
    "borrow more than soft max capacity from pool which is neither free space nor idle object",
    Held.LIBRARY,
)
def test_borrow_more_than_soft_max_capacity_without_idle_object(closed: list[object]) -> None:
    """The bound is one of what waits: a task never waits for another's client."""
    pool = ContainerPool(max_idle=2)
    readers = borrow(pool, ["a", "b", "c", "d"])
    assert len(set(map(id, readers))) == 4
    assert closed == [readers[3], readers[2]]


@peer(
    SUITE,
    "borrow more than soft max capacity from pool frees up idle objects automatically",
    Held.LIBRARY,
)
def test_borrow_more_than_soft_max_capacity_frees_up_idle_objects(closed: list[object]) -> None:
    """A client that comes back where there are too many drives out the one that waited longest."""
    pool = ContainerPool(max_idle=2)
    readers = [borrow(pool, [topic])[0] for topic in ("a", "b", "c", "d")]
    assert closed == readers[:2]
    assert borrow(pool, ["d"]) == readers[3:]


def test_evicting_idle_objects_at_the_next_borrow(
    closed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has waited too long is closed when the next client is asked for."""
    now = 1_000.0
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.time.monotonic", lambda: now)
    pool = ContainerPool(idle_seconds=300)
    readers = borrow(pool, ["a"])
    now = 1_200.0
    readers += borrow(pool, ["b"])
    assert closed == []
    now = 1_301.0
    borrow(pool, ["c"])
    assert closed == readers[:1]
    now = 1_400.0
    assert borrow(pool, ["b"]) == readers[1:]
