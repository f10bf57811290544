import gc
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from pyspark_kafka.adapters.confluent import idle_watch
from pyspark_kafka.adapters.confluent.cluster_settings import ClusterSettings
from pyspark_kafka.adapters.confluent.idle_watch import IdleWatch
from pyspark_kafka.testing import await_until


@dataclass
class Adapter:
    has_client: bool = True
    handled: int = 0

    def handle_idle_events(self) -> bool:
        self.handled += 1
        return self.has_client


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(idle_watch, "_EVERY_S", 0.001)


def watch(*, has_login: bool = True) -> IdleWatch:
    return IdleWatch(cast("ClusterSettings", SimpleNamespace(has_login=has_login)))


def watching() -> int:
    names = [thread.name for thread in threading.enumerate()]
    return names.count("pyspark-kafka-idle-watch")


def test_events_are_handled_until_the_client_is_closed():
    adapter, watched = Adapter(), watch()
    for _ in range(2):
        adapter.has_client = True
        for _ in range(2):
            watched.start(adapter)
        adapter.handled = 0
        await_until(lambda: adapter.handled > 2)
        assert watching() == 1
        adapter.has_client = False
        await_until(lambda: watching() == 0)


def test_the_user_of_a_client_handles_its_events():
    """Two threads must not: one of them may close the client."""
    adapter, watched = Adapter(), watch()
    with watched.in_use():
        watched.start(adapter)
        with watched.in_use():
            pass
        time.sleep(0.05)
        assert adapter.handled == 0
    await_until(lambda: adapter.handled > 0)
    adapter.has_client = False
    await_until(lambda: watching() == 0)


def test_an_adapter_without_references_is_not_watched():
    adapters, watched = [Adapter()], watch()
    watched.start(adapters[0])
    await_until(lambda: adapters[0].handled > 0)
    adapters.clear()
    gc.collect()
    await_until(lambda: watching() == 0)


def test_a_client_without_a_login_needs_no_watch():
    adapter = Adapter()
    watch(has_login=False).start(adapter)
    assert watching() == 0


def test_an_unexpected_error_ends_no_watch(monkeypatch, caplog):
    """The error is logged once: a client whose events nobody handles may log in again and again."""
    adapter, watched = Adapter(), watch()

    def fail() -> bool:
        adapter.handled += 1
        raise KeyError("what no adapter expects")

    monkeypatch.setattr(adapter, "handle_idle_events", fail)
    watched.start(adapter)
    await_until(lambda: adapter.handled > 2)
    monkeypatch.undo()
    adapter.has_client = False
    await_until(lambda: watching() == 0)
    assert len(caplog.records) == 1
