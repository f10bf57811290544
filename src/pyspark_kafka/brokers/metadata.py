"""Requests to one given broker, about what it knows and what it serves.

Clients choose the broker of a request by themselves; to find out whether all brokers have seen a
change, each needs a request of its own.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# The newest version that identifies topics by name without a topic id.
_VERSION = 9
_ANSWER_SECONDS = 5.0
_RECEIVED_BYTES = 65_536
_UNKNOWN_TOPIC = 3
_LATEST = -1
_LIST_OFFSETS_VERSION = 2
_FEATURES_VERSION = 3


def known_brokers(port: int) -> frozenset[int]:
    """Return the ids of the brokers that are alive according to the one at ``port``.

    :raises OSError: if it does not answer.
    """
    return frozenset(broker.node_id for broker in _metadata(port, []).brokers)


def known_leaders(port: int, topic: str) -> dict[int, int] | None:
    """Return the leaders by partition, -1 for none; ``None`` if the topic is unknown.

    :raises OSError: if the broker does not answer.
    """
    (answer,) = _metadata(port, [topic]).topics
    if answer.error_code == _UNKNOWN_TOPIC:
        return None
    return {partition.partition_index: partition.leader_id for partition in answer.partitions}


def serves_partitions(port: int, topic: str, partitions: Iterable[int]) -> bool:
    """Return whether the broker at ``port`` acts as the leader of partitions.

    :raises OSError: if it does not answer.
    """
    from kafka.protocol.consumer import ListOffsetsRequest

    of_topic = ListOffsetsRequest.ListOffsetsTopic
    latest = [
        of_topic.ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
        for partition in partitions
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[of_topic(name=topic, partitions=latest)],
        version=_LIST_OFFSETS_VERSION,
    )
    (answer,) = _ask(port, request).topics
    return not any(partition.error_code for partition in answer.partitions)


def finalized_features(port: int) -> dict[str, int]:
    """Return the levels of the features that the broker at ``port`` uses (KIP-584).

    :raises OSError: if it does not answer.
    """
    from kafka.protocol.metadata import ApiVersionsRequest

    request = ApiVersionsRequest(
        client_software_name="pyspark-kafka",
        client_software_version="0",
        version=_FEATURES_VERSION,
    )
    found = _ask(port, request).finalized_features or ()
    return {feature.name: feature.max_version_level for feature in found}


def _metadata(port: int, topics: list[str]) -> Any:
    from kafka.protocol.metadata import MetadataRequest

    names = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    request = MetadataRequest(
        topics=names,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
        version=_VERSION,
    )
    return _ask(port, request)


def _ask(port: int, request: Any) -> Any:
    from kafka.protocol.parser import KafkaProtocol

    protocol = KafkaProtocol(client_id="pyspark-kafka")
    protocol.send_request(request)
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS) as connection:
        connection.sendall(protocol.send_bytes())
        while received := connection.recv(_RECEIVED_BYTES):
            for _, response in protocol.receive_bytes(received):
                return response
    raise ConnectionError(f"the broker at port {port} closed the connection")
