"""Requests about topics, made with kafka-python's admin client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ..domain.errors import BrokerUnreachableError, KafkaRequestError

_NOT_FINALIZED: Final = (0, 0)


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
        # A static quorum of controllers has no feature of its own (KIP-853).
        if name != "kraft.version"
        and feature["supported"][1] > feature.get("finalized", _NOT_FINALIZED)[1]
    }
    answers = admin.update_features(newer) if newer else {}
    refused = {name: answer for name, answer in answers.items() if answer != "OK"}
    if refused:
        raise FeatureUpdateFailedError(str(refused))
    return newer
