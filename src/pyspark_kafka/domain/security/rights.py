"""The rights of a user in a cluster: operations on resources, as Kafka's ACLs name them."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..topic_partition import TopicPartition


class Operation(enum.Enum):
    """An operation of Kafka's ACLs (``org.apache.kafka.common.acl.AclOperation``)."""

    DESCRIBE = "Describe"
    READ = "Read"
    WRITE = "Write"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"


_OPERATION_CODES: Final[Mapping[int, Operation]] = {
    3: Operation.READ,
    4: Operation.WRITE,
    8: Operation.DESCRIBE,
    12: Operation.IDEMPOTENT_WRITE,
}
"""The operations by their codes in Kafka's protocol (KIP-430)."""


class ResourceType(enum.Enum):
    """A type of resource; the value is the option of ``kafka-acls`` that names one."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


@final
@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource; a cluster has no name."""

    operation: Operation
    resource: ResourceType
    name: str = ""

    def __str__(self) -> str:
        """Return the right as in a sentence: ``Read on the topic 'orders'``."""
        kind = self.resource.value.replace("-", " ")
        named = f" '{self.name}'" if self.name else ""
        return f"{self.operation.value} on the {kind}{named}"

    def acl_command(self, bootstrap_servers: str, principal: str | None) -> str:
        """Return the command line that grants it; an unknown principal is ``User:<name>``."""
        words = [
            *("--bootstrap-server", bootstrap_servers.partition(",")[0]),
            *("--add", "--allow-principal", principal or _UNKNOWN),
            *("--operation", self.operation.value, f"--{self.resource.value}"),
        ]
        if self.resource is not ResourceType.CLUSTER:
            words.append(self.name)
        return shlex.join(("kafka-acls.sh", *words))


_UNKNOWN: Final = "User:<name>"


def operations_of(codes: Iterable[int] | None) -> frozenset[Operation] | None:
    """Return the operations that a broker reports; ``None`` if it reports none."""
    if codes is None:
        return None
    return frozenset(_OPERATION_CODES[code] for code in codes if code in _OPERATION_CODES)


def topic_right(operation: Operation, topic: str) -> Right:
    """Return an operation on a topic."""
    return Right(operation, ResourceType.TOPIC, topic)


def group_right(operation: Operation, group_id: str) -> Right:
    """Return an operation on a consumer group."""
    return Right(operation, ResourceType.GROUP, group_id)


def transactional_id_right(operation: Operation, transactional_id: str) -> Right:
    """Return an operation on a transactional id."""
    return Right(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def topic_rights(operation: Operation, partitions: Iterable[TopicPartition]) -> list[Right]:
    """Return an operation on the topics of partitions."""
    return [topic_right(operation, topic) for topic in sorted({each.topic for each in partitions})]


def group_rights(
    operation: Operation, group_id: str, partitions: Iterable[TopicPartition]
) -> list[Right]:
    """Return the rights that an operation on a group's offsets of partitions needs."""
    return [group_right(operation, group_id), *topic_rights(operation, partitions)]


def transaction_rights(transactional_id: str, partitions: Iterable[TopicPartition]) -> list[Right]:
    """Return the rights that writing to partitions in a transaction needs."""
    return [
        transactional_id_right(Operation.WRITE, transactional_id),
        *topic_rights(Operation.WRITE, partitions),
    ]


def offset_transaction_rights(
    transactional_ids: Iterable[str], group_id: str, partitions: Iterable[TopicPartition]
) -> list[Right]:
    """Return the rights that committing a group's offsets in transactions needs."""
    return [
        *(transactional_id_right(Operation.WRITE, name) for name in transactional_ids),
        *group_rights(Operation.READ, group_id, partitions),
    ]


DESCRIBE_BROKERS: Final = Right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
"""Lets a user see the settings of brokers."""

IDEMPOTENT_WRITE: Final = Right(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
"""Lets a producer be idempotent. Brokers since 2.8 take ``Write`` on any topic instead."""
