"""Requests to brokers: with kafka-python's admin client, and to one given broker.

Clients choose the broker of a request by themselves; to find out whether all brokers have seen a
change, each broker needs its own request.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ..domain.errors import BrokerUnreachableError, KafkaRequestError

_NOT_FINALIZED: Final = (0, 0)

# The newest version that identifies topics by name without a topic id.
_VERSION = 9
_ANSWER_SECONDS = 5.0
_RECEIVED_BYTES = 65_536
_UNKNOWN_TOPIC = 3
_LATEST = -1
_LIST_OFFSETS_VERSION = 2
_FEATURES_VERSION = 3


@contextmanager
def admin_client(bootstrap_servers: str, request: str, timeout_seconds: float) -> Iterator[Any]:
    """Yield an admin client, whose errors become this library's errors.

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises KafkaRequestError: if a broker refuses ``request``.
    """
    from kafka import KafkaAdminClient, errors

    timeout_ms = int(timeout_seconds * 1_000)
    try:
        with KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            bootstrap_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
        ) as admin:
            yield admin
    except (errors.KafkaTimeoutError, errors.KafkaConnectionError) as error:
        raise BrokerUnreachableError(bootstrap_servers, timeout_seconds) from error
    except errors.KafkaError as error:
        raise KafkaRequestError(request, str(error)) from error


@contextmanager
def temporary_topics(
    bootstrap_servers: str, partitions: Mapping[str, int], timeout_seconds: float
) -> Iterator[None]:
    """Create topics, by name and number of partitions, and delete them after the block.

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises KafkaRequestError: if a broker refuses to create or delete one.
    """
    names = list(partitions)
    with admin_client(
        bootstrap_servers, f"the creation of topics {names}", timeout_seconds
    ) as admin:
        admin.create_topics(
            {name: {"num_partitions": count} for name, count in partitions.items()},
            wait_for_metadata=True,
        )
    try:
        yield
    finally:
        with admin_client(
            bootstrap_servers, f"the deletion of topics {names}", timeout_seconds
        ) as admin:
            admin.delete_topics(names)


def reassign_partition(admin: Any, topic: str, partition: int, brokers: Sequence[int]) -> None:
    """Begin to move the replicas of a partition.

    :raises KafkaError: of kafka-python, if the controller refuses.
    """
    from kafka.structs import TopicPartition

    key = TopicPartition(topic, partition)
    refusal = admin.alter_partition_reassignments({key: list(brokers)})[key]
    if refusal is not None:
        raise refusal


def is_assigned(admin: Any, topic: str, partition: int, brokers: Sequence[int]) -> bool:
    """Return whether exactly these brokers are in-sync replicas of a partition, in this order."""
    [answer] = admin.describe_topics([topic])
    [found] = (each for each in answer["partitions"] if each["partition_index"] == partition)
    return found["replica_nodes"] == list(brokers) and set(found["isr_nodes"]) == set(brokers)


def upgrade_features(admin: Any) -> dict[str, int]:
    """Finalize each feature at the newest level that all brokers support; return the new levels.

    :raises KafkaError: of kafka-python, if the controller refuses.
    """
    from kafka.errors import FeatureUpdateFailedError

    newer = {
        name: feature["supported"][1]
        for name, feature in admin.describe_features().items()
        # A static quorum of controllers does not have its own feature (KIP-853).
        if name != "kraft.version"
        and feature["supported"][1] > feature.get("finalized", _NOT_FINALIZED)[1]
    }
    answers = admin.update_features(newer) if newer else {}
    refused = {name: answer for name, answer in answers.items() if answer != "OK"}
    if refused:
        raise FeatureUpdateFailedError(str(refused))
    return newer


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
