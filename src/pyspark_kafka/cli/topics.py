"""``pyspark-kafka topics``: list topics."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from .arguments import Commands, Connection, add_command, add_connection
from .output import ending_with_the_pipe, logs_redirected_to, print_whole

if TYPE_CHECKING:
    import argparse

    from ..domain.cluster.topics import PartitionSummary, TopicSummary

ANY: Final = ".*"

_TOPICS: Final = """\
List topics with their partitions, offsets, sizes, retention and leaders.

Records are counted in offsets, an upper bound that includes transaction markers and
compacted records. Sizes are those of the leaders' logs; the client confluent cannot
tell them. What the broker does not tell is shown as "-".
"""


def add_topics(commands: Commands) -> None:
    """Add the command ``topics``."""
    topics = add_command(commands, "topics", "list topics", _TOPICS, run_topics)
    topics.add_argument(
        "pattern",
        nargs="?",
        default=ANY,
        metavar="PATTERN",
        help="only topics whose name has a match of this regular expression; without one, all "
        "topics but Kafka's internal ones",
    )
    add_connection(topics)
    topics.add_argument("--partitions", action="store_true", help="list each partition")
    topics.add_argument("--json", action="store_true", help="print a line of JSON per topic")


def run_topics(given: argparse.Namespace) -> int:
    """List topics, and return the exit status.

    :raises PysparkKafkaError: if the cluster cannot be asked.
    """
    from ..bootstrap.container import closing_clients, container_for

    options = Connection.given(given).source_options(subscribePattern=given.pattern)
    with (
        logs_redirected_to(logging.NullHandler()),
        closing_clients(container_for(options)) as container,
    ):
        topics = container.topic_list().fetch(options.subscription)
    with ending_with_the_pipe():
        if given.json:
            for topic in topics:
                print(_topic_json(topic), flush=True)
        else:
            from .topics_view import topic_list

            print_whole(*topic_list(topics, by_partition=given.partitions))
    return 0


def _topic_json(topic: TopicSummary) -> str:
    """Return a topic as one line of JSON; unknown values are ``null``."""
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
