"""Both clients with the oldest Kafka that is tested, and with its ZooKeeper.

The readers read what is written. ``make matrix`` runs their own suites, and other versions.
"""

import pytest

from pyspark_kafka.testing import KafkaWorld, RecordWriterContract, TransactionsContract
from tests.servers.tested_kafka import capabilities_of
from tests.servers.zookeeper_kafka import ZooKeeperKafka
from verification.matrix.cells import BROKERS

OLDEST = BROKERS[0]


@pytest.fixture(scope="module")
def oldest():
    # Tests write records with old timestamps.
    with ZooKeeperKafka(OLDEST, {"log.retention.ms": "-1"}) as kafka:
        yield kafka


class _WithOldestBroker:
    @pytest.fixture
    def world(self, client, fresh_name, oldest):
        return KafkaWorld(client, fresh_name, oldest, capabilities_of(client, OLDEST))


class TestWriterOfOldestBroker(_WithOldestBroker, RecordWriterContract):
    """The contract of writers, and of readers that see what they wrote."""


@pytest.mark.parametrize("client", ["kafka-python"])
class TestTransactionsOfOldestBroker(_WithOldestBroker, TransactionsContract):
    """The contract of transactions."""
