"""Brokers in racks of their own, and what each has sent to consumers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.settings import Node

_COMPLETED: Final = "kafka.request.logger - Completed request:"


@dataclass(frozen=True)
class Fetch:
    """Bytes of record batches that a broker has sent, and the rack that the consumer named."""

    partition: int
    bytes: int
    broker_rack: str
    named_rack: str


class RackedCluster(KafkaCluster):
    """Brokers in racks ``rack-0``, ``rack-1`` and so on, which serve consumers from replicas."""

    def fetches(self, client_id: str) -> list[Fetch]:
        """Return what consumers with a client's id have got; all of them read the same topic."""
        return [
            fetch
            for node in self._nodes
            for request in _completed(node)
            if request["requestHeader"]["clientId"] == client_id
            for fetch in _sent(node, request)
        ]

    def stored_bytes(self, topic: str, partition: int) -> int:
        """Return the bytes of a partition's record batches, of which each broker has a replica."""
        segments = self._nodes[0].data.glob(f"{topic}-{partition}/*.log")
        return sum(segment.stat().st_size for segment in segments)

    def _properties(self, node: Node) -> dict[str, str]:
        selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        racked = {"broker.rack": _rack_of(node), "replica.selector.class": selector}
        return super()._properties(node) | racked

    def _java_options(self, node: Node) -> Sequence[str]:
        log_requests = "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug"
        return (*super()._java_options(node), log_requests)


def _rack_of(node: Node) -> str:
    return f"rack-{node.id}"


def _completed(node: Node) -> Iterator[dict[str, Any]]:
    """Yield the fetches that a broker's log has; its last line may not be complete."""
    for line in (node.directory / "server.log").read_text().split("\n")[:-1]:
        request = line.partition(_COMPLETED)[2]
        if '"requestApiKeyName":"FETCH"' in request:
            yield json.loads(request)


def _sent(node: Node, completed: dict[str, Any]) -> Iterator[Fetch]:
    """Yield what a fetch got; a leader that only names a replica sends no bytes."""
    named = completed["request"]["rackId"]
    for topic in completed["response"]["responses"]:
        for partition in topic["partitions"]:
            size = partition["recordsSizeInBytes"]
            if size > 0:
                yield Fetch(partition["partitionIndex"], size, _rack_of(node), named)
