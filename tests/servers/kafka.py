"""The run's Kafka, as a process sees it that did not start it."""

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.settings import Node


class SharedKafka(KafkaCluster):
    """A cluster whose brokers are up, and are processes of another owner."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        super().__init__(len(nodes))
        self._nodes = nodes

    def _live_nodes(self) -> tuple[Node, ...]:
        return self._nodes
