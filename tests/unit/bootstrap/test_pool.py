"""Containers that a process keeps between tasks."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.options import (
    QueryKind,
    SinkOptions,
    SourceOptions,
    parse_sink_options,
    parse_source_options,
)


def options(topic: str = "t") -> SourceOptions:
    given = {"kafka.bootstrap.servers": "memory", "subscribe": topic, "client": "memory"}
    return parse_source_options(given, QueryKind.BATCH)


def sink_options(topic: str = "t") -> SinkOptions:
    given = {"kafka.bootstrap.servers": "memory", "topic": topic, "client": "memory"}
    return parse_sink_options(given, QueryKind.BATCH)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list of the readers whose containers were shut down."""
    shut: list[object] = []
    # Instances of a declarative container are dynamic; the pool calls this function with them.
    monkeypatch.setattr(
        "pyspark_kafka.bootstrap.pool.shut_down", lambda one: shut.append(one.record_reader())
    )
    return shut


def reader(container: Container) -> object:
    return container.record_reader()


def fail_within(pool: ContainerPool) -> object:
    with suppress(ZeroDivisionError), pool.lease(options()) as container:
        failed = reader(container)
        _ = 1 / 0
    return failed


def test_the_same_options_get_the_same_client(closed: list[object]) -> None:
    """A second task of a query reuses the first one's client."""
    pool = ContainerPool()
    with pool.lease(options()) as first:
        one = reader(first)
    with pool.lease(options()) as second:
        assert reader(second) is one
    assert closed == []


def test_other_options_get_another_client() -> None:
    """Queries with different options do not share clients."""
    pool = ContainerPool()
    with pool.lease(options("a")) as first:
        one = reader(first)
    with pool.lease(options("b")) as second:
        assert reader(second) is not one


def test_a_client_serves_one_task_at_a_time() -> None:
    """Two concurrent tasks have a client each."""
    pool = ContainerPool()
    with pool.lease(options()) as first, pool.lease(options()) as second:
        assert reader(first) is not reader(second)


def test_a_client_of_a_failed_task_is_not_reused(closed: list[object]) -> None:
    """A client is closed after an error, with its state."""
    pool = ContainerPool()
    failed = fail_within(pool)
    assert closed == [failed]
    with pool.lease(options()) as second:
        assert reader(second) is not failed


def test_the_number_of_idle_clients_is_bounded(closed: list[object]) -> None:
    """The client that has been idle longest is closed when another is returned."""
    pool = ContainerPool(max_idle=2)
    readers = []
    for topic in "abc":
        with pool.lease(options(topic)) as container:
            readers.append(reader(container))
    assert closed == readers[:1]


def test_a_client_that_is_idle_too_long_is_closed(closed: list[object]) -> None:
    """An expired client is closed at the next lease."""
    pool = ContainerPool(idle_seconds=-1)
    with pool.lease(options()) as first:
        one = reader(first)
    with pool.lease(options()) as second:
        assert reader(second) is not one
    assert closed == [one]


def test_a_fork_gets_its_own_client(closed: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process neither uses nor closes its parent's clients."""
    pool = ContainerPool()
    with pool.lease(options()) as first:
        one = reader(first)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pool.lease(options()) as second:
        assert reader(second) is not one
    pool.close()
    assert one not in closed


def test_closing_the_pool_closes_idle_clients(closed: list[object]) -> None:
    """A closed pool has no open clients."""
    pool = ContainerPool()
    with pool.lease(options()) as first:
        one = reader(first)
    pool.close()
    assert closed == [one]


def test_objects_of_the_first_task_are_frozen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process freezes them once, after its first successful task."""
    calls: list[bool] = []
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.freeze_gc", lambda: calls.append(True))
    pool = ContainerPool()
    fail_within(pool)
    assert calls == []
    for topic in ("a", "a", "b"):
        with pool.lease(options(topic)):
            pass
    assert calls == [True]


def test_a_sink_and_a_source_have_separate_clients() -> None:
    """Tasks that read and tasks that write each reuse their own client."""
    pool = ContainerPool()
    with pool.lease(options()) as source, pool.lease(sink_options()) as sink:
        read_by, written_by = reader(source), sink.record_writer()
    with pool.lease(sink_options()) as again:
        assert again.record_writer() is written_by
    with pool.lease(options()) as other:
        assert reader(other) is read_by


def test_writers_expire_after_ten_minutes_and_readers_after_five(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Like Spark's own caches: ``spark.kafka.producer.cache.timeout`` and the consumer's."""
    now = 1_000.0
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.time.monotonic", lambda: now)
    pool = ContainerPool()
    with pool.lease(options()) as source, pool.lease(sink_options()) as sink:
        read_by, written_by = reader(source), sink.record_writer()
    now += 301
    with pool.lease(options()) as other:
        assert reader(other) is not read_by
    now += 299
    with pool.lease(sink_options()) as again:
        assert again.record_writer() is written_by
    now += 601
    with pool.lease(sink_options()) as late:
        assert late.record_writer() is not written_by


def test_a_writer_of_a_failed_task_is_not_reused() -> None:
    """It may have buffered rows, which another task must not send."""
    pool = ContainerPool()
    with suppress(ZeroDivisionError), pool.lease(sink_options()) as container:
        failed = container.record_writer()
        _ = 1 / 0
    with pool.lease(sink_options()) as second:
        assert second.record_writer() is not failed
