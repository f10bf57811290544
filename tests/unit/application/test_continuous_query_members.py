"""Properties and methods of a continuous query, with tasks that follow a script."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from pyspark_kafka.application.continuous import query as continuous_query
from pyspark_kafka.application.continuous.errors import TaskFailedError
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.domain.continuous.progress import QueryIdentity
from pyspark_kafka.domain.continuous.settings import ExecutionLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.ports import clock

from .scripted_query import Script, ScriptedQuery, at, task, virtual_time


@pytest.fixture
def scripted(kit, monkeypatch):
    """Return a query in virtual time, for whose end a test waits in real time."""
    virtual = virtual_time(monkeypatch)
    monkeypatch.setattr(clock, "time", time)
    monkeypatch.setattr(continuous_query, "_POLL_S", 0.001)
    return ScriptedQuery(kit, virtual, ExecutionLimits(), {})


def start(
    scripted: ScriptedQuery,
    script: Callable[[ContinuousQuery], Script],
    *,
    name: str | None = None,
    close: Callable[[], None] = lambda: None,
) -> ContinuousQuery:
    """Start a query; its thread runs the script."""
    started: SimpleQueue[ContinuousQuery] = SimpleQueue()

    def wait_and_run() -> Script:
        yield from script(started.get(timeout=30))

    scripted.channel.script = wait_and_run()
    query = ContinuousQuery(
        QueryIdentity("id", "run", name), scripted.execution, scripted.progress, close
    )
    started.put(query)
    return query


def unreachable() -> None:
    raise BrokerUnreachableError("memory", 1)


def test_the_status_follows_the_tasks(scripted):
    scripted.runner.starts_tasks = False

    def status(message: str, *, has_data: bool = False, is_active: bool = False) -> object:
        return {"message": message, "isDataAvailable": has_data, "isTriggerActive": is_active}

    def script(query: ContinuousQuery) -> Script:
        scripted.start(task(0))
        yield None
        assert query.status == status("Waiting for tasks to start")
        scripted.start(task(1))
        yield None
        assert query.status == status("Processing records", is_active=True)
        scripted.report(task(0), at(0, 5), rows=5)
        yield 2
        assert query.status == status("Processing records", has_data=True, is_active=True)

    query = start(scripted, script)
    assert query.awaitTermination()
    assert query.status == status("Stopped")


def test_progress_is_kept_in_the_order_of_the_reports(scripted):
    def script(query: ContinuousQuery) -> Script:
        assert query.lastProgress is None
        assert query.recentProgress == []
        for offset in (2, 5):
            scripted.report(task(0), at(0, offset), rows=offset)
            yield 2

    query = start(scripted, script)
    query.awaitTermination()
    assert [progress["numInputRows"] for progress in query.recentProgress] == [2, 5]
    assert query.lastProgress == query.recentProgress[-1]


@pytest.mark.parametrize("name", [None, "orders"])
def test_the_thread_of_a_query_has_its_name(scripted, name):
    """The id of a query that has none. The thread does not keep Python from its end."""
    threads = []

    def script(_: ContinuousQuery) -> Script:
        threads.append(threading.current_thread())
        yield None

    query = start(scripted, script, name=name)
    query.awaitTermination()
    assert query.name == name
    [thread] = threads
    assert thread.name == f"continuous query {name or 'id'}"
    assert thread.daemon


def test_the_error_of_a_query_is_kept_for_all_who_ask(scripted):
    """Stopping a query that has ended raises nothing; errors in closing are suppressed."""

    def script(_: ContinuousQuery) -> Script:
        scripted.fail(task(0), "it broke", is_permanent=True)
        yield 1

    query = start(scripted, script, close=unreachable)
    with pytest.raises(TaskFailedError) as raised:
        query.awaitTermination()
    assert query.exception() is raised.value
    with pytest.raises(TaskFailedError):
        query.processAllAvailable()
    query.stop()


@pytest.mark.parametrize("error", [BrokerUnreachableError, ZeroDivisionError])
def test_an_error_of_closing_is_the_error_of_the_query(scripted, error):
    """Any error: a query that has ended is not waited for."""

    def close() -> None:
        raise BrokerUnreachableError("memory", 1) if error is BrokerUnreachableError else error

    query = start(scripted, lambda _: iter(()), close=close)
    with pytest.raises(error):
        query.awaitTermination(30)
    assert not query.isActive


def test_a_listener_may_stop_its_query(scripted):
    """A listener runs in the query's thread, and cannot wait there for its end."""
    refused = []

    def script(query: ContinuousQuery) -> Script:
        query.stop()
        for wait in (query.awaitTermination, query.processAllAvailable):
            with pytest.raises(RuntimeError, match="listener") as caught:
                wait()
            refused.append(caught.value)
        yield None

    query = start(scripted, script)
    assert query.awaitTermination(30)
    assert len(refused) == 2
    assert query.exception() is None


def test_what_a_query_uses_is_released_before_its_end_is_told(scripted):
    was_active = []
    is_made = threading.Event()

    def close() -> None:
        is_made.wait(30)
        was_active.append(query.isActive)

    query = start(scripted, lambda _: iter(()), close=close)
    is_made.set()
    assert query.awaitTermination()
    assert was_active == [True]
