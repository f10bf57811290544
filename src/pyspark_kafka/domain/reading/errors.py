"""The errors of reading, with the texts of the JVM connector where it has them.

PysparkKafkaError
├── OffsetsMismatchError           offsets for other partitions than the query reads
│   └── StreamOffsetsMismatchError the same in a stream
├── TimestampsMismatchError        times for other partitions than the query reads
├── TopicOffsetsMismatchError      an offset for a topic that the query does not read
├── NoOffsetForTimestampError      a partition has no record at or after a timestamp
├── NoCommittedOffsetError         a consumer group has committed nothing for a partition
├── ResolvedOffsetsError           a batch query's start is greater than its end
├── OffsetOutOfRangeError          a read starts outside of the broker's log
├── LogTruncatedError              a log has other records than were read
├── TopicRecreatedError            a topic was deleted and created again while it was read
├── MissingOffsetsError            records of a range were deleted
├── FetchTimeoutError              a broker has records and does not return them
├── CorruptBatchError              a record batch is corrupt
├── MalformedTimestampError        a record's timestamp overflows Spark's type
├── OversizedRecordError           a record that is read exceeds a limit
└── DataLossError                  records that the query has not read are gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import FactsError, Fault, PysparkKafkaError, Recovery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..topic_partition import TopicPartition


class OffsetsMismatchError(PysparkKafkaError, ValueError):
    """The options name offsets for other partitions than the query reads."""

    condition = "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

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
    recovery = Recovery.PERMANENT

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
    recovery = Recovery.PERMANENT

    def __init__(self, topics: Iterable[str], assigned: Iterable[TopicPartition]) -> None:
        names = ", ".join(sorted(topics))
        super().__init__(
            f"Topics specified for Kafka topic-level offsets have no assigned partitions: {names}. "
            f"Assigned: {partition_set(assigned)}"
        )


class NoOffsetForTimestampError(FactsError, LookupError):
    """A partition has no record at or after a starting timestamp."""

    condition = "KAFKA_NO_OFFSET_FOR_TIMESTAMP"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    # KafkaOffsetReaderAdmin has the first sentence.
    text = (
        "No offset matched from request of topic-partition {partition} and timestamp "
        "{timestamp}. Set 'startingOffsetsByTimestampStrategy' to 'latest' to start such a "
        "partition at its end."
    )
    partition: TopicPartition
    timestamp: int


class NoCommittedOffsetError(PysparkKafkaError, LookupError):
    """The consumer group that a query starts from has committed nothing for a partition."""

    condition = "KAFKA_NO_COMMITTED_OFFSET"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(
            f"The consumer group '{group_id}' has committed no offset for "
            f"{partition_set(partitions)}. Correct the group's name, or set "
            "'startingOffsetsGroupFallback' to 'earliest' or 'latest' to start such a partition "
            "there."
        )


class ResolvedOffsetsError(FactsError, ValueError):
    """A batch query's start is greater than its end, once both are offsets of the log."""

    condition = "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    # The words of the condition in Spark's kafka-error-conditions.json.
    text = (
        "The resolved start offset {start} is greater than the resolved end offset {end} "
        "for topic {partition.topic} partition {partition.partition}.\n"
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
    partition: TopicPartition
    start: int
    end: int


def _specified_and_assigned(
    specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> str:
    return f"Specified: {partition_set(specified)} Assigned: {partition_set(assigned)}"


class OffsetOutOfRangeError(FactsError):
    """A read starts at an offset that the broker does not hold: it holds ``[earliest, latest)``."""

    condition = "KAFKA_OFFSET_OUT_OF_RANGE"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("failOnDataLoss=false",)
    text = (
        "Offset {offset} of {partition} is out of range: "
        "the broker holds [{earliest}, {latest}). Start at an offset that it holds."
    )
    partition: TopicPartition
    offset: int
    earliest: int
    latest: int


class LogTruncatedError(FactsError):
    """A log has other records than were read: Java's ``LogTruncationException``.

    They are the same up to ``diverges_at``; ``offset`` was the next one to read.
    """

    condition = "KAFKA_LOG_TRUNCATED"
    fault = Fault.CLUSTER
    recovery = Recovery.PERMANENT
    tolerated_by = ("failOnDataLoss=false",)
    text = (
        "{partition} was truncated to offset {diverges_at} after it was read up to offset "
        "{offset}. Ask the cluster's operator why its leader lacked records: it may have been "
        "elected with 'unclean.leader.election.enable', or have lost its disk."
    )
    partition: TopicPartition
    offset: int
    diverges_at: int


class TopicRecreatedError(FactsError):
    """A topic was deleted and created again; ``offset`` was the next one to read of the old one."""

    condition = "KAFKA_TOPIC_RECREATED"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("failOnDataLoss=false",)
    text = (
        "The topic of {partition} was deleted and created again while the query read it: "
        "offset {offset} was next, the new log begins at {earliest}. Start the query with a "
        "new checkpoint."
    )
    partition: TopicPartition
    offset: int
    earliest: int


class MissingOffsetsError(FactsError):
    """The offsets ``[start, end)`` were deleted before they could be read."""

    condition = "KAFKA_MISSING_OFFSETS"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("failOnDataLoss=false",)
    text = (
        "Offsets [{start}, {end}) of {partition} were deleted before they could be read. "
        "Raise the topic's retention ('retention.ms', 'retention.bytes'), or read sooner."
    )
    partition: TopicPartition
    start: int
    end: int


class FetchTimeoutError(FactsError, TimeoutError):
    """A broker holds an offset, and no fetch returned it in time."""

    condition = "KAFKA_FETCH_TIMEOUT"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE
    # Spark's InternalKafkaConsumer has the first sentence.
    text = (
        "Cannot fetch record for offset {offset} in {milliseconds} milliseconds. "
        "The partition is {partition}. Check that its broker is running; if it is slow or "
        "overloaded, raise 'kafkaConsumer.pollTimeoutMs'."
    )
    partition: TopicPartition
    offset: int
    milliseconds: int


class CorruptBatchError(FactsError):
    """A record batch of the log is corrupt; ``offset`` is its first one."""

    condition = "KAFKA_CORRUPT_BATCH"
    fault = Fault.CLUSTER
    recovery = Recovery.PERMANENT
    text = (
        "The record batch at offset {offset} of {partition} is corrupt: {reason}. "
        "Ask the cluster's operator to check the replica's log with kafka-dump-log.sh. To skip "
        "the batch, start at a later offset."
    )
    partition: TopicPartition
    offset: int
    reason: str


class MalformedTimestampError(FactsError, OverflowError):
    """A record's timestamp overflows Spark's microseconds."""

    condition = "KAFKA_MALFORMED_RECORD_TIMESTAMP"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    sql_state = "22008"
    # The words of KAFKA_MALFORMED_RECORD_TIMESTAMP in Spark's kafka-error-conditions.json.
    text = (
        "Record at topic {partition.topic} partition {partition.partition} offset {offset} "
        "has timestamp value {timestamp} that overflows when converting to Spark's "
        "microsecond-precision TimestampType.\n"
        "Kafka record timestamps must be in milliseconds since epoch per the Kafka protocol. "
        "The provided value suggests the producer may be writing timestamps in microseconds "
        "or nanoseconds instead.\n"
        "Ensure the Kafka producer sets the ProducerRecord timestamp in milliseconds."
    )
    partition: TopicPartition
    offset: int
    timestamp: int


class OversizedRecordError(FactsError):
    """A record that is read exceeds a limit of the source.

    ``size`` is in units of ``unit``, ``option`` is the option that sets the limit.
    """

    condition = "KAFKA_OVERSIZED_RECORD"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("skipOversizedRecords=true",)
    text = (
        "The record at offset {offset} of {partition} has {size} {unit}, and the option "
        "'{option}' allows {limit}. If you trust its producer, raise '{option}'. To skip such "
        "records with a warning, set the option 'skipOversizedRecords' to 'true'."
    )
    partition: TopicPartition
    offset: int
    size: int
    unit: str
    option: str
    limit: int


class DataLossError(PysparkKafkaError):
    """Records that the query has not read are gone, and ``failOnDataLoss`` is true."""

    condition = "KAFKA_DATA_LOSS"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("failOnDataLoss=false",)
    sql_state = "22000"

    def __init__(self, sub_condition: str, reason: str) -> None:
        self.sub_condition = sub_condition
        # The words of KAFKA_DATA_LOSS in Spark's kafka-error-conditions.json.
        super().__init__(
            "Some data may have been lost because they are not available in Kafka any more;\n"
            "either the data was aged out by Kafka or the topic may have been deleted before all "
            "the data in the\n"
            "topic was processed.\n"
            "If you don't want your streaming query to fail on such cases, set the source option "
            "failOnDataLoss to false.\n"
            f"Reason: {reason}",
            sub_condition,
        )


def partition_set(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as Spark prints a set of them, here in order: ``Set(t-0, t-1)``."""
    return f"Set({', '.join(str(partition) for partition in sorted(partitions))})"
