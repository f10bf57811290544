"""Which Kafka a run tests, and what clients can do with it."""

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from pyspark_kafka.testing import ALL, Capability
from tests.servers.tested_kafka import VARIABLE, capabilities_of, kafka_of_run, version_of_run
from tests.servers.zookeeper_kafka import ZooKeeperKafka


@pytest.mark.parametrize(
    ("version", "kind"),
    [("2.8.2", ZooKeeperKafka), ("3.9.2", KafkaCluster), ("4.3.1", KafkaCluster)],
)
def test_the_matrix_chooses_the_broker(version, kind, monkeypatch):
    monkeypatch.setenv(VARIABLE, version)
    assert type(kafka_of_run({})) is kind
    assert version_of_run() == version


def test_without_the_matrix_it_is_the_newest(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert version_of_run() == KAFKA_VERSION


def test_clients_can_do_everything_with_new_brokers():
    assert capabilities_of("kafka-python", "3.10.0") == ALL
    never = {Capability.CONTINUOUS_TRANSACTIONS, Capability.TRANSACTIONAL_WRITES}
    assert capabilities_of("confluent", "4.3.1") == ALL - never


def test_old_brokers_take_capabilities_away():
    assert ALL - capabilities_of("kafka-python", "3.0.2") == {
        Capability.RECREATED_RANGES,
        Capability.RECREATED_STREAMS,
        Capability.TIMESTAMP_LIMITS,
    }
    assert Capability.DESCRIBED_TRANSACTIONS not in capabilities_of("kafka-python", "2.8.2")
