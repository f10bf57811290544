"""Every error this library raises.

    PysparkKafkaError
    ├── OptionsError               the user's options cannot be used
    ├── OffsetsMismatchError       offsets are given for other partitions than there are
    │   └── StreamOffsetsMismatchError   the same, of a stream
    ├── TimestampsMismatchError    times are given for other partitions than there are
    ├── TopicOffsetsMismatchError  an offset is given for a topic that is not read
    ├── NoOffsetForTimestampError  a partition has no record of a starting time or later
    ├── NoCommittedOffsetError     a consumer group has committed nothing for a partition
    ├── ResolvedOffsetsError       a batch query's start lies behind its end
    ├── MissingDependencyError     an extra is not installed
    ├── PluginError                what another distribution brings cannot be used
    ├── JavaError                  no Java that can run Spark or a broker
    ├── BrokerUnreachableError     no broker answered in time
    ├── UnknownTopicError          a topic that was asked for does not exist
    ├── KafkaRequestError          a broker answered with an error
    ├── OffsetOutOfRangeError      a read begins outside of what the broker holds
    ├── MissingOffsetsError        records of a range are gone from the broker
    ├── FetchTimeoutError          a broker has records and does not hand them out
    ├── CorruptBatchError          bytes of the log are not what Kafka writes
    ├── MalformedTimestampError    a record's timestamp does not fit Spark's type
    ├── DataLossError              what the query was to read is not there any more
    ├── MetadataLogError           a metadata log cannot be read or written
    ├── SinkSchemaError            rows cannot become records
    ├── SaveModeError              Kafka can only be appended to
    ├── NullTopicError             a row names no topic
    ├── RecordDeliveryError        a record was not acknowledged
    │   └── RecordTooLargeError    a record is larger than it may be
    ├── ProducerFencedError        another writer has taken a transaction's id
    ├── TransactionLostError       a batch's transaction was aborted before it was committed
    └── UnsupportedFeatureError    an adapter cannot do what was asked of it

A message holds the condition in brackets, the facts, and what to do next, because Spark wraps
what a Python source raises and only the text reaches the user.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .topic_partition import TopicPartition


_MAX_NAMED: Final = 5
"""How many of what may be thousands an error's text lists."""


class Fault(enum.Enum):
    """Who can mend it."""

    USER = "the query's author"
    CLUSTER = "whoever runs the Kafka cluster"
    DATA = "whoever produces the records, or the topic's retention"
    ENVIRONMENT = "whoever sets up the machine"


class PysparkKafkaError(Exception):
    """The base of every error: a condition, a message made of facts, and a next step."""

    condition: ClassVar[str]
    fault: ClassVar[Fault]
    sql_state: ClassVar[str | None] = None

    def __init__(self, message: str, sub_condition: str = "") -> None:
        condition = f"{self.condition}.{sub_condition}" if sub_condition else self.condition
        super().__init__(f"[{condition}] {message}")
        self.message = message

    def __reduce__(self) -> tuple[type[PysparkKafkaError], tuple[object, ...], dict[str, object]]:
        # Subclasses take facts, not a message: rebuild without their constructor, so that an
        # error survives the pickle between Spark's processes.
        return _rebuild, (type(self), self.args), self.__dict__  # type: ignore[return-value]


def _rebuild(kind: type[PysparkKafkaError], args: tuple[object, ...]) -> PysparkKafkaError:
    error = kind.__new__(kind, *args)
    Exception.__init__(error, *args)
    if isinstance(error, ImportError):
        error.msg = str(args[0])
    return error


class OptionsError(PysparkKafkaError, ValueError):
    """One or more options cannot be used; ``problems`` holds all of them."""

    condition = "KAFKA_INVALID_OPTIONS"
    fault = Fault.USER

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("an OptionsError names at least one problem")
        if len(self.problems) == 1:
            super().__init__(self.problems[0])
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} options cannot be used:{lines}")


class OffsetsMismatchError(PysparkKafkaError, ValueError):
    """The options name offsets of other partitions than Kafka has."""

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
    """The same, of a stream, in the words of another Spark class."""

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
    """The options name times for other partitions than Kafka has; ``position``: start or end."""

    condition = "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER

    def __init__(
        self,
        position: str,
        specified: Iterable[TopicPartition],
        assigned: Iterable[TopicPartition],
    ) -> None:
        # The words of the condition in Spark's kafka-error-conditions.json.
        super().__init__(
            f"Partitions specified for Kafka timestamp based {position} offsets don't match what "
            "are assigned. Maybe topic partitions are created \n"
            "or deleted while the query is running, or you didn't specify all the partitions.\n"
            f"{_specified_and_assigned(specified, assigned)}"
        )


class TopicOffsetsMismatchError(PysparkKafkaError, ValueError):
    """The options name an offset for a whole topic of which no partition is read."""

    condition = "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    fault = Fault.USER

    def __init__(self, topics: Iterable[str], assigned: Iterable[TopicPartition]) -> None:
        names = ", ".join(sorted(topics))
        super().__init__(
            f"Topics specified for Kafka topic-level offsets have no assigned partitions: {names}. "
            f"Assigned: {partition_set(assigned)}"
        )


class NoOffsetForTimestampError(PysparkKafkaError, LookupError):
    """A partition has no record of a starting time or later."""

    condition = "KAFKA_NO_OFFSET_FOR_TIMESTAMP"
    fault = Fault.USER

    def __init__(self, partition: TopicPartition, timestamp: int) -> None:
        # The first sentence is that of KafkaOffsetReaderAdmin.
        super().__init__(
            f"No offset matched from request of topic-partition {partition} and timestamp "
            f"{timestamp}. Set 'startingOffsetsByTimestampStrategy' to 'latest' to begin such a "
            "partition at its end."
        )


class NoCommittedOffsetError(PysparkKafkaError, LookupError):
    """A query is to begin with the offsets of a consumer group that has not committed all."""

    condition = "KAFKA_NO_COMMITTED_OFFSET"
    fault = Fault.USER

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(
            f"The consumer group '{group_id}' has committed no offset for "
            f"{partition_set(partitions)}. Correct the group's name, or set "
            "'startingOffsetsGroupFallback' to 'earliest' or 'latest' to begin such a partition "
            "there."
        )


class ResolvedOffsetsError(PysparkKafkaError, ValueError):
    """A batch query's start lies behind its end, once both are offsets of the log."""

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


class MissingDependencyError(PysparkKafkaError, ImportError):
    """A piece that is an extra of this distribution is not installed."""

    condition = "KAFKA_MISSING_DEPENDENCY"
    fault = Fault.ENVIRONMENT

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} is not installed. Install it with: pip install 'pyspark-kafka[{extra}]'"
        )


@contextmanager
def requires_extra(extra: str, module: str, what: str) -> Iterator[None]:
    """Raise ``MissingDependencyError`` if the imports within fail for want of ``module``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module:
            raise
        raise MissingDependencyError(what, extra) from error


class PluginError(PysparkKafkaError, ImportError):
    """An entry point of another distribution cannot be used."""

    condition = "KAFKA_PLUGIN"
    fault = Fault.ENVIRONMENT

    def __init__(self, entry_point: str, reason: str) -> None:
        super().__init__(
            f"The plugin '{entry_point}' cannot be used: {reason}. Mend or uninstall the "
            "distribution that brings it."
        )


class JavaError(PysparkKafkaError, OSError):
    """No Java that is new enough can be found."""

    condition = "JAVA_NOT_USABLE"
    fault = Fault.ENVIRONMENT

    def __init__(self, found: str, required: int) -> None:
        super().__init__(
            f"Java {required} or newer is needed, and {found}. "
            f"Install a JDK {required}, or point JAVA_HOME at one."
        )


class BrokerUnreachableError(PysparkKafkaError, ConnectionError):
    """No broker answered within the time that the options allow."""

    condition = "KAFKA_BROKER_UNREACHABLE"
    fault = Fault.CLUSTER

    def __init__(self, bootstrap_servers: str, seconds: float, cause: str = "") -> None:
        reason = f" ({cause})" if cause else ""
        super().__init__(
            f"No Kafka broker answered at {bootstrap_servers} within {seconds:g} s{reason}. "
            "Check the option 'kafka.bootstrap.servers', that the brokers run, and that their "
            "advertised listeners can be reached from here."
        )


class UnknownTopicError(PysparkKafkaError, LookupError):
    """Topics that the query asks for by name do not exist."""

    condition = "KAFKA_UNKNOWN_TOPIC"
    fault = Fault.USER

    def __init__(self, topics: Sequence[str], option: str, bootstrap_servers: str) -> None:
        names = ", ".join(f"'{topic}'" for topic in topics)
        plural = "s" if len(topics) > 1 else ""
        verb = "do" if len(topics) > 1 else "does"
        super().__init__(
            f"Topic{plural} {names} {verb} not exist at {bootstrap_servers}. "
            f"Create what is missing, or correct the option '{option}'."
        )


class KafkaRequestError(PysparkKafkaError):
    """A broker answered a request with an error that no retry mended."""

    condition = "KAFKA_REQUEST_FAILED"
    fault = Fault.CLUSTER

    def __init__(self, request: str, reason: str) -> None:
        super().__init__(f"Kafka did not answer {request}: {reason}")


class OffsetOutOfRangeError(PysparkKafkaError):
    """A read begins at an offset that the broker does not hold.

    ``earliest`` and ``latest`` are the offsets that it does hold: ``[earliest, latest)``.
    """

    condition = "KAFKA_OFFSET_OUT_OF_RANGE"
    fault = Fault.DATA

    def __init__(
        self, partition: TopicPartition, offset: int, *, earliest: int, latest: int
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.earliest = earliest
        self.latest = latest
        super().__init__(
            f"Offset {offset} of {partition} is out of range: "
            f"the broker holds [{earliest}, {latest})."
        )


class MissingOffsetsError(PysparkKafkaError):
    """The offsets ``[start, end)`` fell behind the start of the log while they were to be read."""

    condition = "KAFKA_MISSING_OFFSETS"
    fault = Fault.DATA

    def __init__(self, partition: TopicPartition, start: int, end: int) -> None:
        self.partition = partition
        self.start = start
        self.end = end
        super().__init__(
            f"Offsets [{start}, {end}) of {partition} were deleted before they could be read."
        )


class FetchTimeoutError(PysparkKafkaError, TimeoutError):
    """A broker holds an offset, and no fetch moved past it in time."""

    condition = "KAFKA_FETCH_TIMEOUT"
    fault = Fault.CLUSTER

    def __init__(self, partition: TopicPartition, offset: int, milliseconds: int) -> None:
        super().__init__(
            # The first sentence is that of Spark's InternalKafkaConsumer.
            f"Cannot fetch record for offset {offset} in {milliseconds} milliseconds. "
            f"The partition is {partition}; a slow or overloaded broker may need a higher "
            "'kafkaConsumer.pollTimeoutMs'."
        )


class CorruptBatchError(PysparkKafkaError):
    """Bytes of the log are not what Kafka writes: rows cannot be made of them.

    ``offset`` is the first one of the batch that they belong to.
    """

    condition = "KAFKA_CORRUPT_BATCH"
    fault = Fault.CLUSTER

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(
            f"The record batch at offset {offset} of {partition} is corrupt: {reason}. "
            "Let the cluster's operator check that replica's log (kafka-dump-log); to read on "
            "behind it, start at a later offset."
        )


class MalformedTimestampError(PysparkKafkaError, OverflowError):
    """A record's timestamp does not fit Spark's microseconds."""

    condition = "KAFKA_MALFORMED_RECORD_TIMESTAMP"
    fault = Fault.DATA
    sql_state = "22008"

    def __init__(self, partition: TopicPartition, offset: int, timestamp: int) -> None:
        # The words of KAFKA_MALFORMED_RECORD_TIMESTAMP in Spark's kafka-error-conditions.json.
        super().__init__(
            f"Record at topic {partition.topic} partition {partition.partition} offset {offset} "
            f"has timestamp value {timestamp} that overflows when converting to Spark's "
            "microsecond-precision TimestampType.\n"
            "Kafka record timestamps must be in milliseconds since epoch per the Kafka protocol. "
            "The provided value suggests the producer may be writing timestamps in microseconds "
            "or nanoseconds instead.\n"
            "Ensure the Kafka producer sets the ProducerRecord timestamp in milliseconds."
        )


class DataLossError(PysparkKafkaError):
    """Records that the query was to read are gone, and ``failOnDataLoss`` is true."""

    condition = "KAFKA_DATA_LOSS"
    fault = Fault.DATA
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


class MetadataLogError(PysparkKafkaError):
    """What stands in a metadata log cannot be used, or its storage fails.

    ``path`` is the file, without credentials.
    """

    condition = "KAFKA_METADATA_LOG"
    fault = Fault.ENVIRONMENT

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{problem} ({path})")


class SinkSchemaError(PysparkKafkaError, ValueError):
    """Columns are missing or of a wrong type; ``problems`` holds all of what is wrong."""

    condition = "KAFKA_SINK_SCHEMA"
    fault = Fault.USER

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class SaveModeError(PysparkKafkaError, ValueError):
    """Rows are to replace what a topic holds."""

    condition = "KAFKA_SAVE_MODE"
    fault = Fault.USER

    def __init__(self, mode: str) -> None:
        # The words of Spark's KafkaSourceProvider.createRelation.
        super().__init__(
            f"Save mode {mode} not allowed for Kafka. "
            "Allowed save modes are Append and ErrorIfExists (default)."
        )


class NullTopicError(PysparkKafkaError, ValueError):
    """A row names no topic, and no option does."""

    condition = "KAFKA_NULL_TOPIC_IN_DATA"
    fault = Fault.DATA

    def __init__(self) -> None:
        # The words of the condition in Spark's kafka-error-conditions.json.
        super().__init__(
            "The Kafka message data sent to the producer contains a null topic. "
            "Use the `topic` option for setting a default topic."
        )


class RecordDeliveryError(PysparkKafkaError):
    """A record was not acknowledged; ``size`` is that of its key, value and headers, in bytes.

    ``partition`` is ``None`` where none was chosen yet. Nothing tells what the record holds.
    """

    condition = "KAFKA_DELIVERY_FAILED"
    fault = Fault.CLUSTER
    next_step: ClassVar[str] = (
        "Records before it may be in Kafka, and a task that is tried again writes them anew."
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
    """A record is larger than a setting, or its topic, lets it be."""

    condition = "KAFKA_RECORD_TOO_LARGE"
    fault = Fault.DATA
    next_step = (
        "Make it smaller, or raise what it is larger than: 'kafka.max.request.size', or the "
        "topic's 'max.message.bytes'."
    )


class ProducerFencedError(PysparkKafkaError):
    """Another writer has begun a transaction under the same id."""

    condition = "KAFKA_PRODUCER_FENCED"
    fault = Fault.USER

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"Another writer has taken over the transactional id '{transactional_id}', or its "
            "transaction lasted longer than 'kafka.transaction.timeout.ms'. If neither another "
            "attempt of this task runs nor a batch takes that long, two queries share a "
            "checkpoint: stop one of them."
        )


class TransactionLostError(PysparkKafkaError):
    """A transaction was aborted before it could be committed, and its records with it."""

    condition = "KAFKA_TRANSACTION_LOST"
    fault = Fault.ENVIRONMENT

    def __init__(self, transactional_ids: Iterable[str], why: str, next_step: str) -> None:
        self.transactional_ids = tuple(transactional_ids)
        names = ", ".join(f"'{name}'" for name in self.transactional_ids[:_MAX_NAMED])
        if len(self.transactional_ids) > _MAX_NAMED:
            names += f" and {len(self.transactional_ids) - _MAX_NAMED} more"
        super().__init__(f"The transactions of {names} cannot be committed: {why}. {next_step}")


class UnsupportedFeatureError(PysparkKafkaError, NotImplementedError):
    """An adapter was asked for something that its client cannot do."""

    condition = "KAFKA_UNSUPPORTED_FEATURE"
    fault = Fault.USER

    def __init__(self, adapter: str, feature: str) -> None:
        super().__init__(f"{adapter} cannot {feature}.")


def _specified_and_assigned(
    specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> str:
    return f"Specified: {partition_set(specified)} Assigned: {partition_set(assigned)}"


def partition_set(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as Spark prints a set of them: ``Set(t-0, t-1)``, here always in order."""
    return f"Set({', '.join(str(partition) for partition in sorted(partitions))})"
