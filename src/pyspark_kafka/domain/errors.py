"""The errors that the domain raises and that ports promise.

    PysparkKafkaError
    ├── OptionsError               options are invalid
    ├── DisallowedOptionError      the operator forbids an option
    ├── OptionPolicyError          a list of the operator's is invalid
    ├── KernelLibraryError         the package's machine code cannot be used
    ├── MissingDependencyError     an optional package is not installed
    ├── BrokerUnreachableError     no broker answered in time
    ├── UnknownTopicError          a topic does not exist
    ├── KafkaRequestError          a broker refused a request
    │   ├── InvalidResponseError   a broker's response breaks the protocol
    │   └── LeaderUnavailableError the broker that a request has to go to is not available
    ├── OffsetOutOfRangeError      a read starts outside of the broker's log
    ├── LogTruncatedError          a log has other records than were read
    ├── TopicRecreatedError        a topic was deleted and created again while it was read
    ├── MissingOffsetsError        records of a range were deleted
    ├── FetchTimeoutError          a broker has records and does not return them
    ├── CorruptBatchError          a record batch is corrupt
    ├── MalformedTimestampError    a record's timestamp overflows Spark's type
    ├── OversizedRecordError       a record that is read exceeds a limit
    ├── DataLossError              records that the query has not read are gone
    ├── MetadataLogError           a metadata log cannot be read or written
    ├── SinkSchemaError            columns are missing or of a wrong type
    ├── NullTopicError             a row has no topic
    ├── InvalidRecordError         a row cannot become a record
    ├── RecordDeliveryError        a record was not acknowledged
    │   ├── RecordTooLargeError    a record exceeds a size limit
    │   ├── InvalidTimestampError  a record's timestamp is out of its topic's range
    │   ├── UnknownPartitionError  a record is for a partition that does not exist
    │   └── RejectedRecordError    a broker rejected a record by another rule
    ├── ProducerFencedError        another producer took over a transactional id
    ├── TransactionLostError       a transaction was aborted before its commit
    ├── DriverLostError            a task of a continuous query has lost its driver
    └── UnsupportedFeatureError    a client, storage or Spark lacks a feature

``security.errors`` has the ones about logins, rights and TLS. Errors that only one outer layer
raises are defined there: ``application.errors``, ``brokers.errors``, ``bootstrap.plugins``. A
message holds the condition in brackets, the facts, and what to do next, because Spark wraps what a
Python source raises and only the text reaches the user.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from .security.secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .topic_partition import TopicPartition


MAX_NAMED: Final = 5
"""How many names a message lists; there may be thousands."""


class Fault(enum.Enum):
    """Who can fix it."""

    USER = "the query's author"
    CLUSTER = "the Kafka cluster's operator"
    DATA = "the records' producer, or the topic's retention"
    ENVIRONMENT = "the machine's administrator"


class PysparkKafkaError(Exception):
    """The base of every error: a condition, a message made of facts, and a next step."""

    condition: ClassVar[str]
    fault: ClassVar[Fault]
    sql_state: ClassVar[str | None] = None

    def __init__(self, message: str, sub_condition: str = "") -> None:
        message = without_secrets(message)
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
    """One or more options are invalid; ``problems`` holds a message for each."""

    condition = "KAFKA_INVALID_OPTIONS"
    fault = Fault.USER

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(map(without_secrets, problems))
        if not self.problems:
            raise ValueError("an OptionsError names at least one problem")
        if len(self.problems) == 1:
            super().__init__(self.problems[0])
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} options cannot be used:{lines}")


class DisallowedOptionError(PysparkKafkaError, ValueError):
    """The operator of this Spark installation forbids settings of Kafka.

    ``options`` has their names, without the prefix ``kafka.``, with the place that lists each.
    """

    condition = "KAFKA_DISALLOWED_OPTION"
    fault = Fault.USER

    def __init__(self, options: Mapping[str, str], prefix: str = "kafka.") -> None:
        self.options = dict(options)
        # The words of KAFKA_DISALLOWED_OPTION in Spark's kafka-error-conditions.json (SPARK-59328).
        lines = (
            f"The Kafka option '{prefix}{name}' is not allowed because it is listed in {place}."
            for name, place in self.options.items()
        )
        super().__init__(
            "\n".join(
                (*lines, "Remove it from the query, or ask the operator of Spark to allow it.")
            )
        )


class OptionPolicyError(PysparkKafkaError, ValueError):
    """A list of the operator's has an entry without effect; ``rule`` says what entries must be."""

    condition = "KAFKA_INVALID_OPTION_POLICY"
    fault = Fault.ENVIRONMENT

    # Spark's setting has this sentence (StaticSQLConf, SPARK-59328).
    NAMES: ClassVar[str] = "Kafka option names must be listed without the 'kafka.' prefix."

    def __init__(self, place: str, entry: str, rule: str = NAMES) -> None:
        super().__init__(
            f"No query can run: {place} lists '{entry}'. {rule} "
            "Ask the operator of Spark to correct the list."
        )


class MissingDependencyError(PysparkKafkaError, ImportError):
    """An optional package is not installed: ``extra`` brings it or, without one, ``package``."""

    condition = "KAFKA_MISSING_DEPENDENCY"
    fault = Fault.ENVIRONMENT

    def __init__(self, what: str, extra: str = "", *, package: str = "") -> None:
        wanted = f"'pyspark-kafka[{extra}]'" if extra else package
        super().__init__(f"{what} is not installed. Install it with: pip install {wanted}")


class KernelLibraryError(PysparkKafkaError, ImportError):
    """The library of machine code cannot be used; ``remedy`` says what brings one."""

    condition = "KAFKA_KERNEL_LIBRARY"
    fault = Fault.ENVIRONMENT

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"The library of kernels cannot be used: {problem}. {remedy}")


@contextmanager
def requires_extra(extra: str, module: str, what: str) -> Iterator[None]:
    """Raise ``MissingDependencyError`` if an import within does not find ``module``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module:
            raise
        raise MissingDependencyError(what, extra) from error


class BrokerUnreachableError(PysparkKafkaError, ConnectionError):
    """No broker answered in time; ``cause`` is the client's: a failed TLS handshake, say."""

    condition = "KAFKA_BROKER_UNREACHABLE"
    fault = Fault.CLUSTER

    def __init__(self, bootstrap_servers: str, seconds: float, cause: str = "") -> None:
        reason = f" ({cause})" if cause else ""
        super().__init__(
            f"No Kafka broker answered at {bootstrap_servers} within {seconds:g} s{reason}. "
            "Check the option 'kafka.bootstrap.servers', that the brokers are running, and that "
            "this machine can reach their advertised listeners."
        )


class UnknownTopicError(PysparkKafkaError, LookupError):
    """Topics do not exist; ``option`` is the one that named them."""

    condition = "KAFKA_UNKNOWN_TOPIC"
    fault = Fault.USER

    def __init__(self, topics: Sequence[str], option: str, bootstrap_servers: str) -> None:
        self.topics = tuple(topics)
        names = ", ".join(f"'{topic}'" for topic in topics)
        plural, verb = ("s", "do") if len(topics) > 1 else ("", "does")
        # A sink's topic may be named by each row instead.
        place = "option or column" if option == "topic" else "option"
        super().__init__(
            f"Topic{plural} {names} {verb} not exist at {bootstrap_servers}. "
            f"Create the topic{plural}, or correct the {place} '{option}'."
        )


class KafkaRequestError(PysparkKafkaError):
    """A broker refused a request, and retries did not help.

    ``request`` is a noun with its article, such as ``a request for offsets``; ``reason`` is the
    broker's. ``outcome`` is the verb, where nothing was refused.
    """

    condition = "KAFKA_REQUEST_FAILED"
    fault = Fault.CLUSTER

    def __init__(self, request: str, reason: str, *, outcome: str = "refused") -> None:
        next_step = "See the brokers' logs."
        if outcome == "refused":
            next_step = (
                "If permissions (ACLs) are missing, grant them to the query's Kafka user; "
                "otherwise see the brokers' logs."
            )
        super().__init__(f"Kafka {outcome} {request}: {reason.rstrip('.')}. {next_step}")


class InvalidResponseError(KafkaRequestError):
    """A broker's response breaks Kafka's protocol, and retries did not help.

    ``request`` is a noun with its article; ``problem`` says what is wrong with the response.
    """

    condition = "KAFKA_INVALID_RESPONSE"

    def __init__(self, request: str, problem: str) -> None:
        PysparkKafkaError.__init__(
            self,
            f"Kafka answered {request} with an invalid response: {problem.rstrip('.')}. Check that "
            "'kafka.bootstrap.servers' and the brokers' advertised listeners name Kafka brokers, "
            "and that no proxy in between changes responses. Otherwise, see the brokers' logs.",
        )


class LeaderUnavailableError(KafkaRequestError):
    """The broker that a request has to go to is not available, and retries did not help.

    ``request`` is a noun with its article; ``reason`` is the client's.
    """

    condition = "KAFKA_LEADER_UNAVAILABLE"

    def __init__(self, request: str, reason: str) -> None:
        PysparkKafkaError.__init__(
            self,
            f"No broker can serve {request}: {reason.rstrip('.')}. Ask the cluster's operator to "
            "start the missing brokers, and to check that each of them advertises the listener "
            "that 'kafka.bootstrap.servers' uses: 'kafka-topics.sh --describe "
            "--unavailable-partitions' lists the partitions without a leader.",
        )


class OffsetOutOfRangeError(PysparkKafkaError):
    """A read starts at an offset that the broker does not hold: it holds ``[earliest, latest)``."""

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
            f"the broker holds [{earliest}, {latest}). Start at an offset that it holds."
        )


class LogTruncatedError(PysparkKafkaError):
    """A log has other records than were read: Java's ``LogTruncationException``.

    They are the same up to ``diverges_at``; ``offset`` was the next one to read.
    """

    condition = "KAFKA_LOG_TRUNCATED"
    fault = Fault.CLUSTER

    def __init__(self, partition: TopicPartition, offset: int, diverges_at: int) -> None:
        self.partition = partition
        self.offset = offset
        self.diverges_at = diverges_at
        super().__init__(
            f"{partition} was truncated to offset {diverges_at} after it was read up to offset "
            f"{offset}. Ask the cluster's operator why its leader lacked records: it may have been "
            "elected with 'unclean.leader.election.enable', or have lost its disk."
        )


class TopicRecreatedError(PysparkKafkaError):
    """A topic was deleted and created again; ``offset`` was the next one to read of the old one."""

    condition = "KAFKA_TOPIC_RECREATED"
    fault = Fault.DATA

    def __init__(self, partition: TopicPartition, offset: int, *, earliest: int) -> None:
        self.partition = partition
        self.offset = offset
        self.earliest = earliest
        super().__init__(
            f"The topic of {partition} was deleted and created again while the query read it: "
            f"offset {offset} was next, the new log begins at {earliest}. Start the query with a "
            "new checkpoint."
        )


class MissingOffsetsError(PysparkKafkaError):
    """The offsets ``[start, end)`` were deleted before they could be read."""

    condition = "KAFKA_MISSING_OFFSETS"
    fault = Fault.DATA

    def __init__(self, partition: TopicPartition, start: int, end: int) -> None:
        self.partition = partition
        self.start = start
        self.end = end
        super().__init__(
            f"Offsets [{start}, {end}) of {partition} were deleted before they could be read. "
            "Raise the topic's retention ('retention.ms', 'retention.bytes'), or read sooner."
        )


class FetchTimeoutError(PysparkKafkaError, TimeoutError):
    """A broker holds an offset, and no fetch returned it in time."""

    condition = "KAFKA_FETCH_TIMEOUT"
    fault = Fault.CLUSTER

    def __init__(self, partition: TopicPartition, offset: int, milliseconds: int) -> None:
        super().__init__(
            # Spark's InternalKafkaConsumer has the first sentence.
            f"Cannot fetch record for offset {offset} in {milliseconds} milliseconds. "
            f"The partition is {partition}. Check that its broker is running; if it is slow or "
            "overloaded, raise 'kafkaConsumer.pollTimeoutMs'."
        )


class CorruptBatchError(PysparkKafkaError):
    """A record batch of the log is corrupt; ``offset`` is its first one."""

    condition = "KAFKA_CORRUPT_BATCH"
    fault = Fault.CLUSTER

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(
            f"The record batch at offset {offset} of {partition} is corrupt: {reason}. "
            "Ask the cluster's operator to check the replica's log with kafka-dump-log.sh. To skip "
            "the batch, start at a later offset."
        )


class MalformedTimestampError(PysparkKafkaError, OverflowError):
    """A record's timestamp overflows Spark's microseconds."""

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


class OversizedRecordError(PysparkKafkaError):
    """A record that is read exceeds a limit of the source.

    ``size`` is in units of ``unit``, ``option`` is the option that sets the limit.
    """

    condition = "KAFKA_OVERSIZED_RECORD"
    fault = Fault.DATA

    def __init__(
        self, partition: TopicPartition, offset: int, size: int, unit: str, option: str, limit: int
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.size = size
        self.option = option
        self.limit = limit
        super().__init__(
            f"The record at offset {offset} of {partition} has {size} {unit}, and the option "
            f"'{option}' allows {limit}. If you trust its producer, raise '{option}'. To skip such "
            "records with a warning, set the option 'skipOversizedRecords' to 'true'."
        )


class DataLossError(PysparkKafkaError):
    """Records that the query has not read are gone, and ``failOnDataLoss`` is true."""

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
    """A metadata log cannot be read or written.

    ``problem`` says what happened and what to do next; ``path`` is the file, without credentials.
    """

    condition = "KAFKA_METADATA_LOG"
    fault = Fault.ENVIRONMENT

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{problem} ({path})")


class SinkSchemaError(PysparkKafkaError, ValueError):
    """Columns are missing or of a wrong type; ``problems`` holds a message for each."""

    condition = "KAFKA_SINK_SCHEMA"
    fault = Fault.USER

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class NullTopicError(PysparkKafkaError, ValueError):
    """A row has no topic, and the option ``topic`` is not set."""

    condition = "KAFKA_NULL_TOPIC_IN_DATA"
    fault = Fault.DATA

    def __init__(self) -> None:
        # The words of the condition in Spark's kafka-error-conditions.json.
        super().__init__(
            "The Kafka message data sent to the producer contains a null topic. "
            "Use the `topic` option for setting a default topic."
        )


class InvalidRecordError(PysparkKafkaError, ValueError):
    """A row cannot become a record."""

    condition = "KAFKA_INVALID_RECORD"
    fault = Fault.DATA

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"A record cannot be written: {reason}. {next_step}")


class RecordDeliveryError(PysparkKafkaError):
    """A record was not acknowledged; ``size`` is its key, value and headers in bytes.

    ``partition`` is ``None`` if none was chosen yet. The message has none of the record's content.
    """

    condition = "KAFKA_DELIVERY_FAILED"
    fault = Fault.CLUSTER
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
    next_step = (
        "Make it smaller, or raise the limit that it exceeds: 'kafka.max.request.size' or the "
        "topic's 'max.message.bytes'."
    )


class InvalidTimestampError(RecordDeliveryError):
    """A record's timestamp is out of the range that its topic accepts (KIP-937)."""

    condition = "KAFKA_INVALID_TIMESTAMP"
    fault = Fault.DATA
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
    next_step = (
        "Correct the column 'partition' or the partitioner, drop the column so that keys choose "
        "the partitions, or add partitions to the topic."
    )


class RejectedRecordError(RecordDeliveryError):
    """A broker rejected a record, and would reject it again."""

    condition = "KAFKA_RECORD_REJECTED"
    fault = Fault.DATA
    next_step = (
        "A topic with 'cleanup.policy=compact' accepts only records with a key. For other reasons, "
        "see the topic's settings and the broker's logs."
    )


class ProducerFencedError(PysparkKafkaError):
    """Another producer began a transaction under the same transactional id."""

    condition = "KAFKA_PRODUCER_FENCED"
    fault = Fault.USER

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"Another producer took over the transactional id '{transactional_id}', or its "
            "transaction lasted longer than 'kafka.transaction.timeout.ms'. If no other attempt of "
            "this task is running and batches are shorter than that, two queries share a "
            "checkpoint: stop one of them."
        )


class TransactionLostError(PysparkKafkaError):
    """A transaction was aborted before its commit, so that its records are never visible.

    With ``may_be_committed`` it is unknown whether it was aborted or committed.
    """

    condition = "KAFKA_TRANSACTION_LOST"
    fault = Fault.ENVIRONMENT

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


class DriverLostError(PysparkKafkaError, ConnectionError):
    """A task of a continuous query has lost the connection to its driver."""

    condition = "KAFKA_DRIVER_LOST"
    fault = Fault.ENVIRONMENT

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"A task of a continuous query has lost its driver and ends: {reason}. The driver runs "
            "the task again if it lives; otherwise start the query again."
        )


class UnsupportedFeatureError(PysparkKafkaError, NotImplementedError):
    """A client, a storage or Spark lacks a feature: "``adapter`` cannot ``feature``"."""

    condition = "KAFKA_UNSUPPORTED_FEATURE"
    fault = Fault.USER

    def __init__(self, adapter: str, feature: str) -> None:
        super().__init__(f"{adapter} cannot {feature}.")


def partition_set(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as Spark prints a set of them, here in order: ``Set(t-0, t-1)``."""
    return f"Set({', '.join(str(partition) for partition in sorted(partitions))})"
