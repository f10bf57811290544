"""The errors of offsets that options and commands name, and of checkpoints in use.

PysparkKafkaError
├── OffsetsMismatchError             offsets for other partitions than the query reads
│   └── StreamOffsetsMismatchError   the same in a stream
├── TimestampsMismatchError          times for other partitions than the query reads
├── TopicOffsetsMismatchError        an offset for a topic that the query does not read
├── NoOffsetForTimestampError        a partition has no record at or after a timestamp
├── NoCommittedOffsetError           a consumer group has committed nothing for a partition
├── ResolvedOffsetsError             a batch query's start is greater than its end
├── UnusableOffsetsError             a checkpoint cannot get the offsets that a command names
└── QueryIsRunningError              the query whose checkpoint is changed may be running
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..domain.errors import Fault, PysparkKafkaError, partition_set

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..domain.topic_partition import TopicPartition


class OffsetsMismatchError(PysparkKafkaError, ValueError):
    """The options name offsets for other partitions than the query reads."""

    condition = "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER

    def __init__(
        self, specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
    ) -> None:
        # The words of KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED in Spark's
        # kafka-error-conditions.json.
        super().__init__(
            "Partitions specified for Kafka start offsets don't match what are assigned. "
            "Maybe topic partitions are created \n"
            "or deleted while the query is running. Use -1 for latest, -2 for earliest.\n"
            f"{_specified_and_assigned(specified, assigned)}"
        )


class StreamOffsetsMismatchError(OffsetsMismatchError):
    """The same in a stream, where the JVM connector has other words."""

    def __init__(
        self, specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
    ) -> None:
        # KafkaOffsetReaderAdmin.fetchSpecificOffsets, which asserts this for streams.
        PysparkKafkaError.__init__(
            self,
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions.\n"
            "Use -1 for latest, -2 for earliest, if you don't care.\n"
            f"{_specified_and_assigned(specified, assigned)}",
        )


class TimestampsMismatchError(PysparkKafkaError, ValueError):
    """The options name times for other partitions than the query reads.

    ``position`` is ``start`` or ``end``.
    """

    condition = "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER

    def __init__(
        self, position: str, specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
    ) -> None:
        # The words of the condition in Spark's kafka-error-conditions.json.
        super().__init__(
            f"Partitions specified for Kafka timestamp based {position} offsets don't match what "
            "are assigned. Maybe topic partitions are created \n"
            "or deleted while the query is running, or you didn't specify all the partitions.\n"
            f"{_specified_and_assigned(specified, assigned)}"
        )


class TopicOffsetsMismatchError(PysparkKafkaError, ValueError):
    """The options name an offset for a topic that the query does not read."""

    condition = "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER

    def __init__(self, topics: Iterable[str], assigned: Iterable[TopicPartition]) -> None:
        names = ", ".join(sorted(topics))
        super().__init__(
            f"Topics specified for Kafka topic-level offsets have no assigned partitions: {names}. "
            f"Assigned: {partition_set(assigned)}"
        )


class NoOffsetForTimestampError(PysparkKafkaError, LookupError):
    """A partition has no record at or after a starting timestamp."""

    condition = "KAFKA_NO_OFFSET_FOR_TIMESTAMP"
    fault = Fault.USER

    def __init__(self, partition: TopicPartition, timestamp: int) -> None:
        # KafkaOffsetReaderAdmin has the first sentence.
        super().__init__(
            f"No offset matched from request of topic-partition {partition} and timestamp "
            f"{timestamp}. Set 'startingOffsetsByTimestampStrategy' to 'latest' to start such a "
            "partition at its end."
        )


class NoCommittedOffsetError(PysparkKafkaError, LookupError):
    """The consumer group that a query starts from has committed nothing for a partition."""

    condition = "KAFKA_NO_COMMITTED_OFFSET"
    fault = Fault.USER

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(
            f"The consumer group '{group_id}' has committed no offset for "
            f"{partition_set(partitions)}. Correct the group's name, or set "
            "'startingOffsetsGroupFallback' to 'earliest' or 'latest' to start such a partition "
            "there."
        )


class ResolvedOffsetsError(PysparkKafkaError, ValueError):
    """A batch query's start is greater than its end, once both are offsets of the log."""

    condition = "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
    fault = Fault.USER

    def __init__(self, partition: TopicPartition, start: int, end: int) -> None:
        # The words of the condition in Spark's kafka-error-conditions.json.
        super().__init__(
            f"The resolved start offset {start} is greater than the resolved end offset {end} "
            f"for topic {partition.topic} partition {partition.partition}.\n"
            "Please investigate in this order:\n"
            "1. Check whether start offset is set beyond the end offset or the latest available "
            "offset after resolution. Possible inputs are:\n"
            "  (a) Start offset is set to a timestamp, and the end offset is set to an index of "
            "offset.\n"
            "  (b) Start offset is set to an index of offset, and the end offset is set to a "
            "timestamp.\n"
            "  (c) Start offset is set, and the end offset is set to latest.\n"
            "2. Check whether the Kafka topic-partition is deleted and re-created."
        )


def _specified_and_assigned(
    specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> str:
    return f"Specified: {partition_set(specified)} Assigned: {partition_set(assigned)}"


class UnusableOffsetsError(PysparkKafkaError, ValueError):
    """A query cannot resume at the offsets that a command names."""

    condition = "KAFKA_UNUSABLE_OFFSETS"
    fault = Fault.USER

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"The query cannot resume there: {reason}. {next_step}.")


class QueryIsRunningError(PysparkKafkaError):
    """The query whose checkpoint a command changes may be running; ``sign`` says why."""

    condition = "KAFKA_QUERY_IS_RUNNING"
    fault = Fault.USER

    def __init__(self, path: str, sign: str, next_step: str) -> None:
        super().__init__(
            f"The query of this checkpoint may be running: {sign}. {next_step} ({path})"
        )
