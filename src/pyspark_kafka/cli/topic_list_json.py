"""Topics as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..domain.cluster.topics import PartitionSummary, TopicSummary


def topic_json(topic: TopicSummary) -> str:
    """Return a topic as one line of JSON; what is not known is ``null``."""
    described = topic.description
    answer = {
        "topic": topic.name,
        "offsets": topic.offsets,
        "bytes": topic.size,
        "retentionMs": described.retention_ms,
        "retentionBytes": described.retention_bytes,
        "cleanupPolicy": described.cleanup_policy,
        "replicationFactor": topic.replication_factor,
        "underReplicated": topic.under_replicated,
        "partitions": [_partition(each) for each in topic.partitions],
    }
    return json.dumps(answer)


def _partition(partition: PartitionSummary) -> dict[str, Any]:
    described = partition.description
    return {
        "partition": partition.number,
        "earliest": partition.earliest,
        "latest": partition.latest,
        "offsets": partition.offsets,
        "bytes": described.size,
        "leader": described.leader,
        "replicas": sorted(described.replicas),
        "inSync": sorted(described.in_sync),
    }
