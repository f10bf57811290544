"""The errors of writing.

PysparkKafkaError
├── SinkSchemaError            columns are missing or of a wrong type
├── NullTopicError             a row has no topic
├── InvalidRecordError         a row cannot become a record
├── RecordDeliveryError        a record was not acknowledged
│   ├── RecordTooLargeError    a record exceeds a size limit
│   ├── InvalidTimestampError  a record's timestamp is out of its topic's range
│   ├── UnknownPartitionError  a record is for a partition that does not exist
│   └── RejectedRecordError    a broker rejected a record by another rule
├── ProducerFencedError        another producer took over a transactional id
├── QueryReplacedError         a run of a continuous query may no longer write
└── TransactionLostError       a transaction was aborted before its commit
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ..errors import MAX_NAMED, FactsError, Fault, PysparkKafkaError, Recovery


class SinkSchemaError(PysparkKafkaError, ValueError):
    """Columns are missing or of a wrong type; ``problems`` holds a message for each."""

    condition = "KAFKA_SINK_SCHEMA"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class NullTopicError(FactsError, ValueError):
    """A row has no topic, and the option ``topic`` is not set."""

    condition = "KAFKA_NULL_TOPIC_IN_DATA"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    # The words of the condition in Spark's kafka-error-conditions.json.
    text = (
        "The Kafka message data sent to the producer contains a null topic. "
        "Use the `topic` option for setting a default topic."
    )


class InvalidRecordError(FactsError, ValueError):
    """A row cannot become a record."""

    condition = "KAFKA_INVALID_RECORD"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    text = "A record cannot be written: {reason}. {next_step}"
    reason: str
    next_step: str


class RecordDeliveryError(PysparkKafkaError):
    """A record was not acknowledged; ``size`` is its key, value and headers in bytes.

    ``partition`` is ``None`` if none was chosen yet. The message has none of the record's content.
    """

    condition = "KAFKA_DELIVERY_FAILED"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE
    next_step: ClassVar[str] = (
        "Check that the partition has a leader and enough replicas in sync. If its broker is slow, "
        "raise 'kafka.delivery.timeout.ms'. Earlier records may be in Kafka already: unless the "
        "query is exactly-once, a retried task writes them again."
    )

    def __init__(self, topic: str, partition: int | None, size: int, reason: str) -> None:
        self.topic = topic
        self.partition = partition
        self.size = size
        where = topic if partition is None else f"{topic}-{partition}"
        super().__init__(
            f"A record of {size} bytes for {where} was not delivered: {reason.rstrip('.')}. "
            f"{self.next_step}"
        )


class RecordTooLargeError(RecordDeliveryError):
    """A record exceeds the limit of a producer setting or of its topic."""

    condition = "KAFKA_RECORD_TOO_LARGE"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    next_step = (
        "Make it smaller, or raise the limit that it exceeds: 'kafka.max.request.size' or the "
        "topic's 'max.message.bytes'."
    )


class InvalidTimestampError(RecordDeliveryError):
    """A record's timestamp is out of the range that its topic accepts (KIP-937)."""

    condition = "KAFKA_INVALID_TIMESTAMP"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    next_step = (
        "Correct the column 'timestamp', which must not be too far from the broker's clock; "
        "without such a column, correct the clock of the machine that ran the task, or of the "
        "broker. To accept the record, raise the topic's 'message.timestamp.before.max.ms' or "
        "'message.timestamp.after.max.ms' (brokers older than Kafka 3.6: "
        "'message.timestamp.difference.max.ms')."
    )


class UnknownPartitionError(RecordDeliveryError):
    """A record is for a partition that its topic does not have."""

    condition = "KAFKA_UNKNOWN_PARTITION"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    next_step = (
        "Correct the column 'partition' or the partitioner, drop the column so that keys choose "
        "the partitions, or add partitions to the topic."
    )


class RejectedRecordError(RecordDeliveryError):
    """A broker rejected a record, and would reject it again."""

    condition = "KAFKA_RECORD_REJECTED"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    next_step = (
        "A topic with 'cleanup.policy=compact' accepts only records with a key. For other reasons, "
        "see the topic's settings and the broker's logs."
    )


class ProducerFencedError(FactsError):
    """Another producer began a transaction under the same transactional id."""

    condition = "KAFKA_PRODUCER_FENCED"
    fault = Fault.USER
    recovery = Recovery.RETRIABLE
    text = (
        "Another producer took over the transactional id '{transactional_id}', or its "
        "transaction lasted longer than 'kafka.transaction.timeout.ms'. If no other attempt of "
        "this task is running and batches are shorter than that, two queries share a "
        "checkpoint: stop one of them."
    )
    transactional_id: str


class QueryReplacedError(FactsError):
    """A run of an exactly-once continuous query may no longer write."""

    condition = "KAFKA_QUERY_REPLACED"
    fault = Fault.USER
    recovery = Recovery.FATAL
    text = (
        "This run of the continuous query may no longer write: {reason}. Nothing was committed. If "
        "the checkpoint is an older backup, restore the newest one. If no other query uses the "
        "checkpoint now, start the query again."
    )
    reason: str


class TransactionLostError(PysparkKafkaError):
    """A transaction was aborted before its commit, so that its records are never visible.

    With ``may_be_committed`` it is unknown whether it was aborted or committed.
    """

    condition = "KAFKA_TRANSACTION_LOST"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    def __init__(
        self,
        transactional_ids: Iterable[str],
        reason: str,
        next_step: str,
        *,
        may_be_committed: bool = False,
    ) -> None:
        self.transactional_ids = tuple(transactional_ids)
        self.may_be_committed = may_be_committed
        names = ", ".join(f"'{name}'" for name in self.transactional_ids[:MAX_NAMED])
        if len(self.transactional_ids) > MAX_NAMED:
            names += f" and {len(self.transactional_ids) - MAX_NAMED} more"
        super().__init__(f"The transactions {names} cannot be committed: {reason}. {next_step}")
