import logging
import os
import pickle
import threading
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool, RefusedLogins
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.security.errors import REFUSED_LOGIN_S, AuthenticationError
from pyspark_kafka.testing import await_until


def options(topic: str = "t") -> SourceOptions:
    given = {"kafka.bootstrap.servers": "memory", "subscribe": topic, "client": "memory"}
    return parse_source_options(given, QueryKind.BATCH)


def sink_options(topic: str = "t") -> SinkOptions:
    given = {"kafka.bootstrap.servers": "memory", "topic": topic, "client": "memory"}
    return parse_sink_options(given, QueryKind.BATCH)


@pytest.fixture
def closed(monkeypatch):
    """Return a list of the readers whose containers were shut down."""
    shut: list[object] = []
    # Instances of a declarative container are dynamic; the pool calls this function with them.
    monkeypatch.setattr(
        "pyspark_kafka.bootstrap.pool.shut_down", lambda one: shut.append(one.record_reader())
    )
    return shut


@pytest.fixture
def evictors():
    """Return what lists the threads of this test's pools: other tests' may still wait."""
    before = set(threading.enumerate())
    return lambda: [
        thread
        for thread in threading.enumerate()
        if thread.name == "pyspark-kafka-pool" and thread not in before
    ]


@pytest.fixture
def new_pool(evictors):
    """Yield the pool's class; what is made with it is closed, and its threads end."""
    pools: list[ContainerPool] = []

    def made(**given: Any) -> ContainerPool:
        pools.append(ContainerPool(**given))
        return pools[-1]

    yield made
    for pool in pools:
        pool.close()
    await_until(lambda: not evictors())


def reader(container: Container) -> object:
    return container.record_reader()


def borrow(pool: ContainerPool, topic: str = "t") -> object:
    with pool.lease(options(topic)) as container:
        return reader(container)


def fail_within(pool: ContainerPool) -> object:
    with suppress(ZeroDivisionError), pool.lease(options()) as container:
        failed = reader(container)
        _ = 1 / 0
    return failed


def test_the_same_options_get_the_same_client(new_pool, closed):
    pool = new_pool()
    one = borrow(pool)
    assert borrow(pool) is one
    assert closed == []


def test_the_order_of_options_does_not_matter(new_pool):
    given = {f"kafka.{name}": value for name, value in LOGIN.items()}
    given |= {"subscribe": "t", "client": "memory"}
    pool = new_pool()
    readers = []
    for names in (sorted(given), sorted(given, reverse=True)):
        raw = {name: given[name] for name in names}
        with pool.lease(parse_source_options(raw, QueryKind.BATCH)) as container:
            readers.append(reader(container))
    assert readers[0] is readers[1]


def test_other_options_get_another_client(new_pool):
    pool = new_pool()
    one = borrow(pool, "a")
    assert borrow(pool, "b") is not one


def test_a_client_serves_one_task_at_a_time(new_pool):
    pool = new_pool()
    with pool.lease(options()) as first, pool.lease(options()) as second:
        assert reader(first) is not reader(second)


def test_a_client_of_a_failed_task_is_not_reused(new_pool, closed):
    pool = new_pool()
    failed = fail_within(pool)
    assert closed == [failed]
    assert borrow(pool) is not failed


def test_the_number_of_idle_clients_is_bounded(new_pool, closed):
    pool = new_pool(max_idle=2)
    readers = [borrow(pool, topic) for topic in "abc"]
    assert closed == readers[:1]


def test_a_client_that_is_idle_too_long_is_closed(new_pool, closed):
    pool = new_pool(idle_seconds=-1)
    one = borrow(pool)
    assert borrow(pool) is not one
    assert closed == [one]


def test_a_fork_gets_its_own_client(new_pool, closed, monkeypatch):
    pool = new_pool()
    one = borrow(pool)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert borrow(pool) is not one
    pool.close()
    assert one not in closed


def test_closing_the_pool_closes_idle_clients(new_pool, closed):
    pool = new_pool()
    one = borrow(pool)
    pool.close()
    assert closed == [one]


def test_objects_of_the_first_task_are_frozen(new_pool, monkeypatch):
    """A process freezes them once, after its first successful task."""
    calls: list[bool] = []
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.freeze_gc", lambda: calls.append(True))
    pool = new_pool()
    fail_within(pool)
    assert calls == []
    for topic in ("a", "a", "b"):
        borrow(pool, topic)
    assert calls == [True]


def test_a_sink_and_a_source_have_separate_clients(new_pool):
    pool = new_pool()
    with pool.lease(options()) as source, pool.lease(sink_options()) as sink:
        read_by, written_by = reader(source), sink.record_writer()
    with pool.lease(sink_options()) as again:
        assert again.record_writer() is written_by
    assert borrow(pool) is read_by


def test_writers_expire_after_ten_minutes_and_readers_after_five(new_pool):
    """Like Spark's own caches: ``spark.kafka.producer.cache.timeout`` and the consumer's."""
    clock = MemoryClock()
    pool = new_pool(clock=clock)
    with pool.lease(options()) as source, pool.lease(sink_options()) as sink:
        read_by, written_by = reader(source), sink.record_writer()
    clock.sleep_ms(300_001)
    assert borrow(pool) is not read_by
    clock.sleep_ms(299_999)
    with pool.lease(sink_options()) as again:
        assert again.record_writer() is written_by
    clock.sleep_ms(600_001)
    with pool.lease(sink_options()) as late:
        assert late.record_writer() is not written_by


@pytest.fixture
def clock():
    """Return the time of the pool whose thread looks for idle clients all the time."""
    return MemoryClock()


@pytest.fixture
def evicting(new_pool, clock):
    """Return a pool whose thread looks for idle clients every millisecond."""
    return new_pool(eviction_interval_seconds=0.001, clock=clock)


def borrow_each(pool: ContainerPool, topics: str) -> list[object]:
    with ExitStack() as stack:
        leases = [pool.lease(options(topic)) for topic in reversed(topics)]
        return [reader(stack.enter_context(lease)) for lease in leases][::-1]


def test_idle_clients_are_closed_without_a_further_lease(evictors, evicting, clock, closed):
    with evicting.lease(options("in-use")):
        first = borrow_each(evicting, "ab")
        clock.sleep_ms(200_000)
        second = borrow_each(evicting, "c")
        clock.sleep_ms(100_001)
        await_until(lambda: closed == first)
        clock.sleep_ms(200_000)
        await_until(lambda: closed == first + second)
        clock.sleep_ms(1_000_000)
        await_until(lambda: not evictors())
    assert closed == first + second


def test_the_thread_that_closes_idle_clients_ends_and_starts_again(
    evictors, evicting, clock, closed
):
    assert not evictors()
    for _time in range(2):
        borrow_each(evicting, "ab")
        assert len(evictors()) == 1
        clock.sleep_ms(300_001)
        await_until(lambda: not evictors())
    assert len(closed) == 4


def test_closing_the_pool_ends_its_thread(evictors, new_pool, closed):
    pool = new_pool(eviction_interval_seconds=600)
    borrow_each(pool, "a")
    pool.close()
    await_until(lambda: not evictors())
    assert len(closed) == 1


def test_a_client_that_cannot_be_closed_does_not_keep_the_others_open(
    evicting, clock, monkeypatch, caplog
):
    shut: list[object] = []

    def fail_once(container: Container) -> None:
        shut.append(reader(container))
        if len(shut) == 1:
            raise OSError("the socket is gone")

    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", fail_once)
    readers = borrow_each(evicting, "ab")
    with caplog.at_level(logging.ERROR, "pyspark_kafka"):
        clock.sleep_ms(300_001)
        await_until(lambda: shut == readers)
    assert [record.getMessage() for record in caplog.records] == [
        "An idle client could not be closed"
    ]


def test_a_fork_has_a_thread_of_its_own(evicting, clock, closed, monkeypatch):
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.ContainerPool._evict", lambda _pool: None)
    borrow_each(evicting, "a")
    monkeypatch.undo()
    monkeypatch.setattr("pyspark_kafka.bootstrap.pool.shut_down", closed.append)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    borrow_each(evicting, "b")
    clock.sleep_ms(300_001)
    await_until(lambda: len(closed) == 1)


def test_no_process_forks_while_the_lock_is_held(new_pool, monkeypatch):
    """The child can lease, since the fork waited for the lock and released it."""
    hooks = {}
    monkeypatch.setattr(os, "register_at_fork", lambda **given: hooks.update(given))
    pool = new_pool()
    pool.hold_across_forks()
    hooks["before"]()
    task = threading.Thread(target=borrow_each, args=(pool, "a"))
    task.start()
    task.join(0.05)
    assert task.is_alive()
    hooks["after_in_child"]()
    task.join(10)
    assert not task.is_alive()
    hooks["before"]()
    hooks["after_in_parent"]()
    borrow_each(pool, "a")
    pool.close()


def test_a_writer_of_a_failed_task_is_not_reused(new_pool):
    """A failed task's writer may have buffered rows, which another task must not send."""
    pool = new_pool()
    with suppress(ZeroDivisionError), pool.lease(sink_options()) as container:
        failed = container.record_writer()
        _ = 1 / 0
    with pool.lease(sink_options()) as second:
        assert second.record_writer() is not failed


LOGIN = {"bootstrap.servers": "memory", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "secret"}


def source(**changed: str) -> SourceOptions:
    settings = LOGIN | {name.replace("_", "."): value for name, value in changed.items()}
    given = {f"kafka.{name}": value for name, value in settings.items()}
    return parse_source_options({**given, "subscribe": "t", "client": "memory"}, QueryKind.BATCH)


def sink() -> SinkOptions:
    given = {f"kafka.{name}": value for name, value in LOGIN.items()}
    return parse_sink_options({**given, "client": "memory"}, QueryKind.BATCH)


@pytest.fixture
def pool(clock):
    """Return a pool in which the login of ``source()`` was refused."""
    pool = ContainerPool(clock=clock)
    refused = AuthenticationError("memory", "PLAIN", "ada", "wrong password")
    with pytest.raises(AuthenticationError) as raised, pool.lease(source()):
        raise refused
    assert raised.value is refused
    return pool


@pytest.mark.parametrize("options", [source(), source(fetch_min_bytes="2"), sink()])
def test_a_refused_login_is_not_tried_again(pool, options):
    with pytest.raises(AuthenticationError, match=r"'ada' by PLAIN .*: wrong password"):
        pool.lease(options).__enter__()


def test_another_login_is_tried(pool):
    for changed in ({"sasl_jaas_config": "corrected"}, {"bootstrap_servers": "other"}):
        for _ in range(2):
            with suppress(ZeroDivisionError), pool.lease(source(**changed)):
                _ = 1 / 0
    pool.close()


def test_no_password_is_kept(clock):
    logins = RefusedLogins(clock)
    refused = AuthenticationError("memory", "PLAIN", "ada", "wrong password")
    with suppress(AuthenticationError), logins.remember(source(sasl_jaas_config="hunter2")):
        raise refused
    assert b"hunter2" not in pickle.dumps(logins._refusals)


def test_a_refused_login_is_tried_after_a_time(pool, clock):
    """The password may have been corrected on the brokers."""
    clock.sleep_ms(round(REFUSED_LOGIN_S * 1_000) - 1)
    with pytest.raises(AuthenticationError):
        pool.lease(source()).__enter__()
    clock.sleep_ms(1)
    with pool.lease(source()):
        pass
    pool.close()
