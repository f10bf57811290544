"""What consumer groups have committed, as an independent client sees it."""

from collections.abc import Sequence
from typing import Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

_ADMIN_S: Final = 30.0


def committed_offsets(cluster: KafkaCluster, groups: Sequence[str]) -> dict[str, PartitionOffsets]:
    """Return the committed offsets of groups, by the plain listeners."""
    with admin_client(cluster.bootstrap_servers, "offsets of groups", _ADMIN_S) as admin:
        found = admin.list_group_offsets(list(groups))
    return {
        group: PartitionOffsets(
            (TopicPartition(one.topic, one.partition), value.offset)
            for one, value in offsets.items()
            if value.offset >= 0
        )
        for group, offsets in found.items()
    }
