"""Idle clients: who handles their events, and what happens when their login is refused."""

import gc
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent import admin, idle_watch
from pyspark_kafka.adapters.confluent import cluster as clusters
from pyspark_kafka.adapters.confluent.cluster_describer import ConfluentClusterDescriber
from pyspark_kafka.adapters.confluent.cluster_settings import ClusterSettings
from pyspark_kafka.adapters.confluent.idle_watch import IdleWatch
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

from ..options import ADA, sink_of, source_of


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


T0 = frozenset({TopicPartition("t", 0)})


class Broker:
    """Refuses logins once the password is changed, which clients hear at their next events."""

    def __init__(self) -> None:
        self.is_changed = False
        self.clients: list[Any] = []

    def connect(self, cluster: clusters.Cluster) -> Any:
        """Return an ``OffsetsAdmin``, a consumer and a producer, as far as the adapters need it."""
        cluster.require_login()

        def poll(_timeout_s: float) -> None:
            if self.is_changed:
                text = "sasl_ssl://b:9092/1: SASL authentication error: wrong password"
                cluster.errors.remember_error(KafkaError(KafkaError._AUTHENTICATION, text))

        def handle_events(*_: object) -> None:
            poll(0)
            cluster.errors.raise_refusal()

        made = MagicMock(poll=poll, handle_events=handle_events, wait=handle_events)
        made.describe_topics.return_value = {}
        self.clients.append(made)
        return made


def is_closed(client: Any) -> bool:
    return bool(client.close.called or client.__exit__.called)


@pytest.mark.parametrize(
    ("adapter_of", "use"),
    [
        (ConfluentOffsetFetcher, lambda fetcher: fetcher.partitions(Assign(T0))),
        (ConfluentClusterDescriber, lambda describer: describer.describe_topics(["t"])),
        (ConfluentRecordReader, ConfluentRecordReader._client),
        (ConfluentRecordWriter, ConfluentRecordWriter._session),
    ],
)
def test_an_idle_client_is_closed_when_its_login_is_refused(monkeypatch, adapter_of, use):
    broker = Broker()
    options = sink_of if adapter_of is ConfluentRecordWriter else source_of
    adapter = adapter_of(options("confluent", ADA))
    monkeypatch.setattr(clusters, "check_login", lambda *_: True)
    monkeypatch.setattr(idle_watch, "_EVERY_S", 0.001)
    monkeypatch.setattr(admin, "OffsetsAdmin", lambda *_, **__: broker.connect(adapter._cluster))
    monkeypatch.setattr(
        adapter_of, "_new_client", lambda _: broker.connect(adapter._cluster), raising=False
    )
    for _ in range(2):
        use(adapter)
    [client] = broker.clients
    assert not is_closed(client)
    broker.is_changed = True
    await_until(lambda: is_closed(client))
    with pytest.raises(AuthenticationError, match="wrong password"):
        use(adapter)
    assert broker.clients == [client]
