"""Idle clients whose login is refused: the password was changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent import admin, idle_watch
from pyspark_kafka.adapters.confluent import cluster as clusters
from pyspark_kafka.adapters.confluent.cluster_describer import ConfluentClusterDescriber
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.adapters.confluent.cluster import Cluster

    Use: TypeAlias = Callable[[], object]

PARTITION = TopicPartition("t", 0)
OPTIONS = {
    "client": "confluent",
    "kafka.bootstrap.servers": "b:9092",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ada" password="secret";'
    ),
}


@dataclass
class Broker:
    """Refuses logins once the password is changed, which clients hear at their next events."""

    is_changed: bool = False
    clients: list[Client] = field(default_factory=list)

    def connect(self, cluster: Cluster) -> Client:
        cluster.require_login()
        self.clients.append(Client(self, cluster))
        return self.clients[-1]


@dataclass
class Client:
    """Is an ``OffsetsAdmin``, a consumer and a producer, as far as the adapters need it."""

    broker: Broker
    cluster: Cluster
    is_closed: bool = False

    def poll(self, _timeout_s: float) -> None:
        if self.broker.is_changed:
            text = "sasl_ssl://b:9092/1: SASL authentication error: wrong password"
            self.cluster.errors.remember_error(KafkaError(KafkaError._AUTHENTICATION, text))

    def handle_events(self) -> None:
        self.poll(0)
        self.cluster.errors.raise_refusal()

    def wait(self, _seconds: float) -> None:
        self.handle_events()

    def close(self) -> None:
        self.is_closed = True

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe_topics(self, _topics: object, **_: object) -> dict[str, Any]:
        return {}


@pytest.fixture
def broker(monkeypatch):
    """Return a broker that has accepted the first login."""
    monkeypatch.setattr(clusters, "check_login", lambda *_: True)
    monkeypatch.setattr(idle_watch, "_EVERY_S", 0.001)
    return Broker()


def fetching(broker: Broker, patch: pytest.MonkeyPatch) -> Use:
    options = parse_source_options({**OPTIONS, "subscribe": "t"}, QueryKind.BATCH)
    fetcher = ConfluentOffsetFetcher(options)
    connect = broker.connect
    patch.setattr(admin, "OffsetsAdmin", lambda *_, **__: connect(fetcher._cluster))
    return lambda: fetcher.partitions(Assign(frozenset({TopicPartition("t", 0)})))


def describing(broker: Broker, patch: pytest.MonkeyPatch) -> Use:
    options = parse_source_options({**OPTIONS, "subscribe": "t"}, QueryKind.BATCH)
    describer = ConfluentClusterDescriber(options)
    connect = broker.connect
    patch.setattr(admin, "OffsetsAdmin", lambda *_, **__: connect(describer._cluster))
    return lambda: describer.describe_topics(["t"])


def reading(broker: Broker, patch: pytest.MonkeyPatch) -> Use:
    options = parse_source_options({**OPTIONS, "subscribe": "t"}, QueryKind.BATCH)
    reader = ConfluentRecordReader(options)
    patch.setattr(reader, "_new_client", lambda: broker.connect(reader._cluster))
    return reader._client


def writing(broker: Broker, patch: pytest.MonkeyPatch) -> Use:
    writer = ConfluentRecordWriter(parse_sink_options(OPTIONS, QueryKind.BATCH))
    patch.setattr(writer, "_new_client", lambda: broker.connect(writer._cluster))
    return writer._session


@pytest.mark.parametrize("adapter", [fetching, describing, reading, writing])
def test_an_idle_client_is_closed_when_its_login_is_refused(broker, monkeypatch, adapter):
    use = adapter(broker, monkeypatch)
    for _ in range(2):
        use()
    [client] = broker.clients
    assert not client.is_closed
    broker.is_changed = True
    await_until(lambda: client.is_closed)
    with pytest.raises(AuthenticationError, match="wrong password"):
        use()
    assert broker.clients == [client]
