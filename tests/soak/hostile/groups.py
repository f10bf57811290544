"""What a consumer group has committed, as an independent client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark_kafka.brokers import KafkaCluster

_ADMIN_S: Final = 30.0


def committed_offsets(cluster: KafkaCluster, group: str) -> PartitionOffsets:
    """Return the committed offsets of a group, from the plain listeners."""
    with admin_client(cluster.bootstrap_servers, f"offsets of '{group}'", _ADMIN_S) as admin:
        found = admin.list_group_offsets(group)[group]
    return PartitionOffsets(
        (TopicPartition(one.topic, one.partition), value.offset)
        for one, value in found.items()
        if value.offset >= 0
    )
