import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.spark.data_source import CatalogTableError, SaveModeError
from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.checkpoints.offsets import QueryIsRunningError, UnusableOffsetsError
from pyspark_kafka.application.continuous import errors as continuous_errors
from pyspark_kafka.application.continuous.errors import (
    FunctionError,
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
)
from pyspark_kafka.bootstrap.plugins import PluginError
from pyspark_kafka.brokers.errors import BrokerStartError, JarsError, JavaError
from pyspark_kafka.domain import errors as domain_errors
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    DisallowedOptionError,
    DriverLostError,
    FactsError,
    Fault,
    InvalidResponseError,
    KafkaRequestError,
    KernelLibraryError,
    LeaderUnavailableError,
    MetadataLogError,
    MissingDependencyError,
    OptionPolicyError,
    OptionsError,
    PysparkKafkaError,
    UnknownTopicError,
    UnsupportedFeatureError,
    requires_extra,
)
from pyspark_kafka.domain.reading import errors as reading_errors
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    DataLossError,
    FetchTimeoutError,
    LogTruncatedError,
    MalformedTimestampError,
    MissingOffsetsError,
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetOutOfRangeError,
    OffsetsMismatchError,
    OversizedRecordError,
    ResolvedOffsetsError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
    TopicRecreatedError,
    partition_set,
)
from pyspark_kafka.domain.security import errors as security_errors
from pyspark_kafka.domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
    TokenUnavailableError,
)
from pyspark_kafka.domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    group_right,
    topic_right,
    transactional_id_right,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing import errors as writing_errors
from pyspark_kafka.domain.writing.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    NullTopicError,
    ProducerFencedError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    SinkSchemaError,
    TransactionLostError,
    UnknownPartitionError,
)

MODULES = {
    *(each.__name__ for each in (domain_errors, reading_errors, writing_errors)),
    *(continuous_errors.__name__, security_errors.__name__),
    ConcurrentUpdateError.__module__,
    *(kind.__module__ for kind in (SaveModeError, PluginError, JavaError)),
    *(kind.__module__ for kind in (QueryIsRunningError, UnusableOffsetsError)),
}
"""Where errors are defined whose texts are pinned here."""

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)

CATALOG_TABLE = (
    "Spark does not pass the options of a table in its catalog to a Python data source. "
    "Use CREATE TEMPORARY VIEW ... USING pyspark_kafka OPTIONS (...) instead of CREATE "
    "TABLE: such a view can be read, and written with INSERT INTO ... BY NAME."
)

ERRORS: list[tuple[PysparkKafkaError, type[Exception], Fault, str]] = [
    (
        OptionsError(["one"]),
        ValueError,
        Fault.USER,
        "[KAFKA_INVALID_OPTIONS] one",
    ),
    (
        OptionsError(["one", "two"]),
        ValueError,
        Fault.USER,
        "[KAFKA_INVALID_OPTIONS] 2 options cannot be used:\n  - one\n  - two",
    ),
    (
        DisallowedOptionError({"acks": "THE_LIST", "linger.ms": "ANOTHER"}),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_DISALLOWED_OPTION] "
            "The Kafka option 'kafka.acks' is not allowed because it is listed in THE_LIST.\n"
            "The Kafka option 'kafka.linger.ms' is not allowed because it is listed in ANOTHER.\n"
            "Remove it from the query, or ask the operator of Spark to allow it."
        ),
    ),
    (
        OptionPolicyError("THE_LIST", "kafka.acks"),
        ValueError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_INVALID_OPTION_POLICY] No query can run: THE_LIST lists 'kafka.acks'. "
            "Kafka option names must be listed without the 'kafka.' prefix. "
            "Ask the operator of Spark to correct the list."
        ),
    ),
    (
        OffsetsMismatchError([T0], [T1, T0]),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] "
            "Partitions specified for Kafka start offsets don't match what are assigned. "
            "Maybe topic partitions are created \n"
            "or deleted while the query is running. Use -1 for latest, -2 for earliest.\n"
            "Specified: Set(t-0) Assigned: Set(t-0, t-1)"
        ),
    ),
    (
        StreamOffsetsMismatchError([T0, T1], [T0]),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] "
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions.\n"
            "Use -1 for latest, -2 for earliest, if you don't care.\n"
            "Specified: Set(t-0, t-1) Assigned: Set(t-0)"
        ),
    ),
    (
        TimestampsMismatchError("start", [T0], [T0, T1]),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED] "
            "Partitions specified for Kafka timestamp based start offsets don't match what are "
            "assigned. Maybe topic partitions are created \n"
            "or deleted while the query is running, or you didn't specify all the partitions.\n"
            "Specified: Set(t-0) Assigned: Set(t-0, t-1)"
        ),
    ),
    (
        TopicOffsetsMismatchError(["v", "u"], [T1, T0]),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED] "
            "Topics specified for Kafka topic-level offsets have no assigned partitions: u, v. "
            "Assigned: Set(t-0, t-1)"
        ),
    ),
    (
        NoOffsetForTimestampError(T0, 1_700_000_000_000),
        LookupError,
        Fault.USER,
        (
            "[KAFKA_NO_OFFSET_FOR_TIMESTAMP] "
            "No offset matched from request of topic-partition t-0 and timestamp 1700000000000. "
            "Set 'startingOffsetsByTimestampStrategy' to 'latest' to start such a partition at "
            "its end."
        ),
    ),
    (
        NoCommittedOffsetError("g", [T1, T0]),
        LookupError,
        Fault.USER,
        (
            "[KAFKA_NO_COMMITTED_OFFSET] The consumer group 'g' has committed no offset for "
            "Set(t-0, t-1). Correct the group's name, or set 'startingOffsetsGroupFallback' to "
            "'earliest' or 'latest' to start such a partition there."
        ),
    ),
    (
        PluginError("pkg:client", "why"),
        ImportError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_PLUGIN] The plugin 'pkg:client' cannot be used: why. Fix or uninstall the "
            "package that provides it."
        ),
    ),
    (
        LogTruncatedError(T0, 7, 5),
        Exception,
        Fault.CLUSTER,
        (
            "[KAFKA_LOG_TRUNCATED] t-0 was truncated to offset 5 after it was read up to offset 7. "
            "Ask the cluster's operator why its leader lacked records: it may have been elected "
            "with 'unclean.leader.election.enable', or have lost its disk."
        ),
    ),
    (
        TopicRecreatedError(T0, 7, earliest=0),
        Exception,
        Fault.DATA,
        (
            "[KAFKA_TOPIC_RECREATED] The topic of t-0 was deleted and created again while the "
            "query read it: offset 7 was next, the new log begins at 0. Start the query with a new "
            "checkpoint."
        ),
    ),
    (
        DriverLostError("why"),
        ConnectionError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_DRIVER_LOST] A task of a continuous query has lost its driver and ends: why. "
            "The driver runs the task again if it lives; otherwise start the query again."
        ),
    ),
    (
        MetadataLogError("s3://b/p/0", "What happened."),
        Exception,
        Fault.ENVIRONMENT,
        "[KAFKA_METADATA_LOG] What happened. (s3://b/p/0)",
    ),
    (
        QueryIsRunningError("/c/offsets", "batch 5 began 3 seconds ago", "Stop the query"),
        Exception,
        Fault.USER,
        (
            "[KAFKA_QUERY_IS_RUNNING] The query of this checkpoint may be running: batch 5 began 3 "
            "seconds ago. Stop the query (/c/offsets)"
        ),
    ),
    (
        UnusableOffsetsError("offset 9 of t-0 is not in Kafka", "Choose another"),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_UNUSABLE_OFFSETS] The query cannot resume there: offset 9 of t-0 is not in "
            "Kafka. Choose another."
        ),
    ),
    (
        ResolvedOffsetsError(T0, 3, 1),
        ValueError,
        Fault.USER,
        (
            "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] "
            "The resolved start offset 3 is greater than the resolved end offset 1 for topic t "
            "partition 0.\n"
            "Please investigate in this order:\n"
            "1. Check whether start offset is set beyond the end offset or the latest available "
            "offset after resolution. Possible inputs are:\n"
            "  (a) Start offset is set to a timestamp, and the end offset is set to an index of "
            "offset.\n"
            "  (b) Start offset is set to an index of offset, and the end offset is set to a "
            "timestamp.\n"
            "  (c) Start offset is set, and the end offset is set to latest.\n"
            "2. Check whether the Kafka topic-partition is deleted and re-created."
        ),
    ),
    (
        KernelLibraryError("its file is damaged", "Install pyspark-kafka again"),
        ImportError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_KERNEL_LIBRARY] The library of kernels cannot be used: its file is damaged. "
            "Install pyspark-kafka again"
        ),
    ),
    (
        MissingDependencyError("confluent-kafka", "confluent"),
        ImportError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_MISSING_DEPENDENCY] confluent-kafka is not installed. "
            "Install it with: pip install 'pyspark-kafka[confluent]'"
        ),
    ),
    (
        JavaError("only 11 was found", 17),
        OSError,
        Fault.ENVIRONMENT,
        (
            "[JAVA_NOT_USABLE] Java 17 or newer is required, but only 11 was found. "
            "Install a JDK 17, or set JAVA_HOME to one."
        ),
    ),
    (
        JarsError("Kafka", "no network"),
        Exception,
        Fault.ENVIRONMENT,
        (
            "[JARS_NOT_RESOLVED] The jars of Kafka could not be resolved: no network\n"
            "Check that Maven artifacts can be downloaded from this machine, and try again."
        ),
    ),
    (
        BrokerStartError("Kafka ended", Path("/no/such.log")),
        Exception,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_BROKER_NOT_STARTED] Kafka ended. The end of its log, /no/such.log:\n"
            "([Errno 2] No such file or directory: '/no/such.log')"
        ),
    ),
    (
        BrokerUnreachableError("b:9092", 30.0),
        ConnectionError,
        Fault.CLUSTER,
        (
            "[KAFKA_BROKER_UNREACHABLE] No Kafka broker answered at b:9092 within 30 s. "
            "Check the option 'kafka.bootstrap.servers', that the brokers are running, and that "
            "this machine can reach their advertised listeners."
        ),
    ),
    (
        BrokerUnreachableError("b:9092", 1.5, "connection refused"),
        ConnectionError,
        Fault.CLUSTER,
        (
            "[KAFKA_BROKER_UNREACHABLE] No Kafka broker answered at b:9092 within 1.5 s "
            "(connection refused). "
            "Check the option 'kafka.bootstrap.servers', that the brokers are running, and that "
            "this machine can reach their advertised listeners."
        ),
    ),
    (
        AuthenticationError("b:9092", "PLAIN", "ada", "Invalid username or password"),
        PermissionError,
        Fault.USER,
        (
            "[KAFKA_AUTHENTICATION_FAILED] The login of the user 'ada' by PLAIN at b:9092 was "
            "refused: Invalid username or password. It is not tried again for five minutes, so "
            "that no account is locked. Correct the login in the options 'kafka.sasl.*', or the "
            "credentials of the environment if it uses them."
        ),
    ),
    (
        AuthenticationError("b:9092", "OAUTHBEARER", "", "invalid_token."),
        PermissionError,
        Fault.USER,
        (
            "[KAFKA_AUTHENTICATION_FAILED] The login by OAUTHBEARER at b:9092 was refused: "
            "invalid_token. It is not tried again for five minutes, so that no account is locked. "
            "Correct the login in the options 'kafka.sasl.*', or the credentials of the "
            "environment if it uses them."
        ),
    ),
    (
        TokenUnavailableError("https://idp/token", "it did not answer in time"),
        ConnectionError,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_TOKEN_UNAVAILABLE] There is no token from https://idp/token for the login: it "
            "did not answer in time. Check that the driver and the executors can reach the issuer."
        ),
    ),
    (
        TlsError("b:9092", TlsFailure.CERTIFICATE_EXPIRED, "certificate has expired"),
        ConnectionError,
        Fault.CLUSTER,
        (
            "[KAFKA_TLS_FAILED.CERTIFICATE_EXPIRED] No TLS connection to b:9092: certificate has "
            "expired. Renew the brokers' certificate, or correct the clock of this machine if the "
            "certificate is valid."
        ),
    ),
    (
        AuthorizationError(
            "a fetch", [topic_right(Operation.READ, "t")], "b:9092,c:9092", "User:ada"
        ),
        PermissionError,
        Fault.USER,
        (
            "[KAFKA_AUTHORIZATION_FAILED] User:ada lacks a right for a fetch: Read on the topic "
            "'t'. An administrator of the cluster can grant it:\n"
            "  kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal User:ada "
            "--operation Read --topic t"
        ),
    ),
    (
        AuthorizationError(
            "a write",
            [
                IDEMPOTENT_WRITE,
                group_right(Operation.DESCRIBE, "my group"),
                *(transactional_id_right(Operation.WRITE, f"x{number}") for number in range(4)),
            ],
            "b:9092",
        ),
        PermissionError,
        Fault.USER,
        (
            "[KAFKA_AUTHORIZATION_FAILED] The user of the query lacks a right for a write: "
            "IdempotentWrite on the cluster, Describe on the group 'my group', Write on the "
            "transactional id 'x0', Write on the transactional id 'x1', Write on the transactional "
            "id 'x2' and 1 more. An administrator of the cluster can grant it:\n"
            "  kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal 'User:<name>' "
            "--operation IdempotentWrite --cluster\n"
            "  kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal 'User:<name>' "
            "--operation Describe --group 'my group'"
            + "".join(
                "\n  kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal "
                f"'User:<name>' --operation Write --transactional-id x{number}"
                for number in range(3)
            )
        ),
    ),
    (
        UnknownTopicError(["a"], "subscribe", "b:9092"),
        LookupError,
        Fault.USER,
        (
            "[KAFKA_UNKNOWN_TOPIC] Topic 'a' does not exist at b:9092. "
            "Create the topic, or correct the option 'subscribe'."
        ),
    ),
    (
        UnknownTopicError(["a"], "topic", "b:9092"),
        LookupError,
        Fault.USER,
        (
            "[KAFKA_UNKNOWN_TOPIC] Topic 'a' does not exist at b:9092. "
            "Create the topic, or correct the option or column 'topic'."
        ),
    ),
    (
        UnknownTopicError(["a", "b"], "assign", "b:9092"),
        LookupError,
        Fault.USER,
        (
            "[KAFKA_UNKNOWN_TOPIC] Topics 'a', 'b' do not exist at b:9092. "
            "Create the topics, or correct the option 'assign'."
        ),
    ),
    (
        KafkaRequestError("ListOffsets", "not authorized"),
        Exception,
        Fault.CLUSTER,
        (
            "[KAFKA_REQUEST_FAILED] Kafka refused ListOffsets: not authorized. If permissions "
            "(ACLs) are missing, grant them to the query's Kafka user; otherwise see the brokers' "
            "logs."
        ),
    ),
    (
        KafkaRequestError("a request", "30 s have passed.", outcome="did not complete"),
        Exception,
        Fault.CLUSTER,
        (
            "[KAFKA_REQUEST_FAILED] Kafka did not complete a request: 30 s have passed. See "
            "the brokers' logs."
        ),
    ),
    (
        InvalidResponseError("a fetch from t-0", "the response has t-0 twice."),
        KafkaRequestError,
        Fault.CLUSTER,
        (
            "[KAFKA_INVALID_RESPONSE] Kafka answered a fetch from t-0 with an invalid response: "
            "the response has t-0 twice. Check that 'kafka.bootstrap.servers' and the brokers' "
            "advertised listeners name Kafka brokers, and that no proxy in between changes "
            "responses. Otherwise, see the brokers' logs."
        ),
    ),
    (
        OffsetOutOfRangeError(T0, 5, earliest=10, latest=20),
        Exception,
        Fault.DATA,
        (
            "[KAFKA_OFFSET_OUT_OF_RANGE] Offset 5 of t-0 is out of range: the broker holds "
            "[10, 20). Start at an offset that it holds."
        ),
    ),
    (
        MissingOffsetsError(T0, 5, 10),
        Exception,
        Fault.DATA,
        (
            "[KAFKA_MISSING_OFFSETS] Offsets [5, 10) of t-0 were deleted before they could be "
            "read. Raise the topic's retention ('retention.ms', 'retention.bytes'), or read sooner."
        ),
    ),
    (
        FetchTimeoutError(T0, 5, 512),
        TimeoutError,
        Fault.CLUSTER,
        (
            "[KAFKA_FETCH_TIMEOUT] Cannot fetch record for offset 5 in 512 milliseconds. "
            "The partition is t-0. Check that its broker is running; if it is slow or overloaded, "
            "raise 'kafkaConsumer.pollTimeoutMs'."
        ),
    ),
    (
        CorruptBatchError(T0, 5, "its checksum does not match"),
        Exception,
        Fault.CLUSTER,
        (
            "[KAFKA_CORRUPT_BATCH] The record batch at offset 5 of t-0 is corrupt: its checksum "
            "does not match. Ask the cluster's operator to check the replica's log with "
            "kafka-dump-log.sh. To skip the batch, start at a later offset."
        ),
    ),
    (
        OversizedRecordError(T1, 5, 30, "headers", "maxRecordHeaders", 20),
        Exception,
        Fault.DATA,
        (
            "[KAFKA_OVERSIZED_RECORD] The record at offset 5 of t-1 has 30 headers, and the option "
            "'maxRecordHeaders' allows 20. If you trust its producer, raise 'maxRecordHeaders'. To "
            "skip such records with a warning, set the option 'skipOversizedRecords' to 'true'."
        ),
    ),
    (
        MalformedTimestampError(T1, 5, 2**62),
        OverflowError,
        Fault.DATA,
        (
            "[KAFKA_MALFORMED_RECORD_TIMESTAMP] Record at topic t partition 1 offset 5 has "
            "timestamp value 4611686018427387904 that overflows when converting to Spark's "
            "microsecond-precision TimestampType.\n"
            "Kafka record timestamps must be in milliseconds since epoch per the Kafka protocol. "
            "The provided value suggests the producer may be writing timestamps in microseconds or "
            "nanoseconds instead.\n"
            "Ensure the Kafka producer sets the ProducerRecord timestamp in milliseconds."
        ),
    ),
    (
        UnsupportedFeatureError("memory", "read by pattern"),
        NotImplementedError,
        Fault.USER,
        "[KAFKA_UNSUPPORTED_FEATURE] memory cannot read by pattern.",
    ),
    (
        SinkSchemaError(["one", "two"]),
        ValueError,
        Fault.USER,
        "[KAFKA_SINK_SCHEMA] one\ntwo",
    ),
    (
        CatalogTableError(),
        ValueError,
        Fault.USER,
        "[KAFKA_CATALOG_TABLE] " + CATALOG_TABLE,
    ),
    (
        SaveModeError("Overwrite"),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_SAVE_MODE] Save mode Overwrite not allowed for Kafka. "
            "Allowed save modes are Append and ErrorIfExists (default)."
        ),
    ),
    (
        NullTopicError(),
        ValueError,
        Fault.DATA,
        (
            "[KAFKA_NULL_TOPIC_IN_DATA] The Kafka message data sent to the producer contains a "
            "null topic. Use the `topic` option for setting a default topic."
        ),
    ),
    (
        InvalidRecordError("a header has no key", "Do this."),
        ValueError,
        Fault.DATA,
        "[KAFKA_INVALID_RECORD] A record cannot be written: a header has no key. Do this.",
    ),
    (
        RecordDeliveryError("t", 1, 20, "no leader."),
        Exception,
        Fault.CLUSTER,
        (
            "[KAFKA_DELIVERY_FAILED] A record of 20 bytes for t-1 was not delivered: no leader. "
            "Check that the partition has a leader and enough replicas in sync. If its broker is "
            "slow, raise 'kafka.delivery.timeout.ms'. Earlier records may be in Kafka already: "
            "unless the query is exactly-once, a retried task writes them again."
        ),
    ),
    (
        InvalidTimestampError("t", 1, 20, "Timestamp 5 of message with offset 0 is out of range."),
        RecordDeliveryError,
        Fault.DATA,
        (
            "[KAFKA_INVALID_TIMESTAMP] A record of 20 bytes for t-1 was not delivered: Timestamp 5 "
            "of message with offset 0 is out of range. Correct the column 'timestamp', which must "
            "not be too far from the broker's clock; without such a column, correct the clock of "
            "the machine that ran the task, or of the broker. To accept the record, raise the "
            "topic's 'message.timestamp.before.max.ms' or 'message.timestamp.after.max.ms' "
            "(brokers older than Kafka 3.6: 'message.timestamp.difference.max.ms')."
        ),
    ),
    (
        UnknownPartitionError("t", 7, 20, "the topic's partitions are 0 to 1"),
        RecordDeliveryError,
        Fault.DATA,
        (
            "[KAFKA_UNKNOWN_PARTITION] A record of 20 bytes for t-7 was not delivered: the topic's "
            "partitions are 0 to 1. Correct the column 'partition' or the partitioner, drop the "
            "column so that keys choose the partitions, or add partitions to the topic."
        ),
    ),
    (
        RejectedRecordError("t", 1, 20, "it has no key"),
        RecordDeliveryError,
        Fault.DATA,
        (
            "[KAFKA_RECORD_REJECTED] A record of 20 bytes for t-1 was not delivered: it has no "
            "key. A topic with 'cleanup.policy=compact' accepts only records with a key. For other "
            "reasons, see the topic's settings and the broker's logs."
        ),
    ),
    (
        LeaderUnavailableError("a request for offsets", "broker 7 has no address."),
        KafkaRequestError,
        Fault.CLUSTER,
        (
            "[KAFKA_LEADER_UNAVAILABLE] No broker can serve a request for offsets: broker 7 has no "
            "address. Ask the cluster's operator to start the missing brokers, and to check that "
            "each of them advertises the listener that 'kafka.bootstrap.servers' uses: "
            "'kafka-topics.sh --describe --unavailable-partitions' lists the partitions without a "
            "leader."
        ),
    ),
    (
        RecordTooLargeError("t", None, 20, "a request holds 10 bytes"),
        RecordDeliveryError,
        Fault.DATA,
        (
            "[KAFKA_RECORD_TOO_LARGE] A record of 20 bytes for t was not delivered: a request "
            "holds 10 bytes. Make it smaller, or raise the limit that it exceeds: "
            "'kafka.max.request.size' or the topic's 'max.message.bytes'."
        ),
    ),
    (
        ProducerFencedError("p-q-0-0"),
        Exception,
        Fault.USER,
        (
            "[KAFKA_PRODUCER_FENCED] Another producer took over the transactional id 'p-q-0-0', "
            "or its transaction lasted longer than 'kafka.transaction.timeout.ms'. If no other "
            "attempt of this task is running and batches are shorter than that, two queries share "
            "a checkpoint: stop one of them."
        ),
    ),
    (
        FunctionError(T0, 3, 9, "ValueError: why"),
        Exception,
        Fault.USER,
        (
            "[KAFKA_FUNCTION_FAILED] The function of the continuous query failed for topic t "
            "partition 0 offsets [3, 9): ValueError: why. Correct the function, or catch the error "
            "in it; the query then goes on with these records."
        ),
    ),
    (
        NotEnoughSlotsError(5, 2, " within 60 s"),
        Exception,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_NOT_ENOUGH_SLOTS] A continuous query with 5 tasks needs as many task slots at "
            "once, and only 2 were free within 60 s: 3 are missing. Add cores to the cluster, end "
            "other jobs, or set 'tasks' to a lower number, so that a task reads more partitions."
        ),
    ),
    (
        TaskFailedError("[KAFKA_CORRUPT_BATCH] What the task said."),
        Exception,
        Fault.ENVIRONMENT,
        "[KAFKA_CORRUPT_BATCH] What the task said.",
    ),
    (
        TaskFailedError("SystemError: why"),
        Exception,
        Fault.ENVIRONMENT,
        "[KAFKA_TASK_FAILED] SystemError: why",
    ),
    (
        RestartsExhaustedError(3, 600, "why"),
        Exception,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_TOO_MANY_RESTARTS] The tasks of the continuous query failed again after 3 "
            "restarts within 600 s: why. Remove the cause and start the query again; it goes on "
            "after its last epoch."
        ),
    ),
    (
        ConcurrentUpdateError(MemoryMetadataLog(), 7),
        MetadataLogError,
        Fault.USER,
        (
            "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs "
            "detected for 7. Please make sure only one streaming job runs on a specific "
            "checkpoint location at a time (a metadata log in memory)"
        ),
    ),
    (
        TransactionLostError(["p-q-0-0", "p-q-1-0"], "they timed out", "Do this."),
        Exception,
        Fault.ENVIRONMENT,
        (
            "[KAFKA_TRANSACTION_LOST] The transactions 'p-q-0-0', 'p-q-1-0' cannot be "
            "committed: they timed out. Do this."
        ),
    ),
]
# Its texts have tests of their own, with the findings of data loss.
LONG_ERRORS: list[tuple[PysparkKafkaError, type[Exception], Fault, str]] = [
    (
        DataLossError("PARTITIONS_DELETED", "Partitions Set(t-0) have been deleted."),
        Exception,
        Fault.DATA,
        "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] ",
    ),
]


def kinds(kind: type[PysparkKafkaError] = PysparkKafkaError) -> Iterator[type[PysparkKafkaError]]:
    """Every kind of error of these modules that can be raised."""
    for child in kind.__subclasses__():
        if child.__module__ in MODULES and child is not FactsError:
            yield child
        yield from kinds(child)


def name(value: object) -> str | None:
    return type(value).__name__ if isinstance(value, PysparkKafkaError) else None


def test_every_error_is_tried():
    """No kind of error is missing from the tables of this module."""
    assert {type(row[0]) for row in ERRORS + LONG_ERRORS} == set(kinds())


@pytest.mark.parametrize(
    "module", [domain_errors, reading_errors, writing_errors, continuous_errors]
)
def test_tree(module):
    """The tree at the head of a module draws each of its errors and nothing else."""
    drawn = re.findall(r"[├└]── (\w+)", module.__doc__ or "")
    assert sorted(drawn) == sorted(
        kind.__name__ for kind in kinds() if kind.__module__ == module.__name__
    )


def test_conditions_are_distinct():
    """No two kinds of error share a condition, unless one is the other's special case."""
    own = [kind for kind in kinds() if "condition" in vars(kind)]
    assert set(kinds()) - set(own) == {StreamOffsetsMismatchError}
    assert len({kind.condition for kind in own}) == len(own)


@pytest.mark.parametrize(("error", "builtin", "fault", "text"), ERRORS, ids=name)
def test_error(error, builtin, fault, text):
    """An error tells its condition, the facts and the next step, and is what Python calls it."""
    assert str(error) == text
    assert error.fault is fault
    assert isinstance(error, builtin)


@pytest.mark.parametrize(("error", "builtin", "fault", "start"), LONG_ERRORS, ids=name)
def test_long_error(error, builtin, fault, start):
    """An error with the words of a condition of Spark's begins with that condition."""
    assert str(error) == f"{start}{error.message}"
    assert error.fault is fault
    assert isinstance(error, builtin)


@pytest.mark.parametrize("error", [row[0] for row in ERRORS + LONG_ERRORS], ids=name)
def test_pickle(error):
    """An error survives the pickle between Spark's processes, and a copy, with all of its facts."""
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.args == error.args
        assert vars(twin) == vars(error)
        assert (twin.condition, twin.sql_state) == (error.condition, error.sql_state)


def test_notes_survive_a_pickle():
    """What was noted on an error on its way crosses to the other process with it."""
    error = KafkaRequestError("ListOffsets", "not authorized")
    error.add_note("while the batch was planned")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while the batch was planned"]  # noqa: S301


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (OptionsError(p for p in ("one", "two")), {"problems": ("one", "two")}),
        (
            OffsetOutOfRangeError(T0, 5, earliest=10, latest=20),
            {"partition": T0, "offset": 5, "earliest": 10, "latest": 20},
        ),
        (DisallowedOptionError({"acks": "L"}), {"options": {"acks": "L"}}),
        (LogTruncatedError(T0, 7, 5), {"partition": T0, "offset": 7, "diverges_at": 5}),
        (MissingOffsetsError(T0, 5, 10), {"partition": T0, "start": 5, "end": 10}),
        (DataLossError("PARTITIONS_DELETED", "gone"), {"sub_condition": "PARTITIONS_DELETED"}),
        (SinkSchemaError(p for p in ("one", "two")), {"problems": ("one", "two")}),
        (
            RecordTooLargeError("t", None, 20, "why"),
            {"topic": "t", "partition": None, "size": 20},
        ),
        (
            TransactionLostError(iter(["a", "b"]), "why", "Do this."),
            {"transactional_ids": ("a", "b")},
        ),
    ],
    ids=name,
)
def test_facts(error, facts):
    """What a caller needs to act on stands on the error as attributes."""
    assert {fact: getattr(error, fact) for fact in facts} == facts


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (MalformedTimestampError(T0, 5, 1), "22008"),
        (DataLossError("PARTITIONS_DELETED", "gone"), "22000"),
        (OptionsError(["one"]), None),
    ],
    ids=name,
)
def test_sql_state(error, state):
    """An error has the SQL state that Spark gives its condition, if it gives one."""
    assert error.sql_state == state


def test_no_problem_is_no_error():
    """Options without a problem cannot be complained about."""
    with pytest.raises(ValueError, match=r"^an OptionsError names at least one problem$"):
        OptionsError([])


def test_a_stream_s_mismatch_is_a_mismatch():
    """The mismatch of a stream is a subclass of a batch query's mismatch."""
    assert isinstance(StreamOffsetsMismatchError([T0], [T1]), OffsetsMismatchError)


def test_mismatches_name_their_end():
    """The message for times that do not fit names the query's start or end."""
    assert "timestamp based end offsets" in str(TimestampsMismatchError("end", [T0], [T1]))


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        ([], "Set()"),
        ([T0], "Set(t-0)"),
        ([TopicPartition("t", 10), TopicPartition("t", 2), T0], "Set(t-0, t-2, t-10)"),
    ],
)
def test_partition_set(partitions, text):
    """Partitions are printed like a set in Scala, in order."""
    assert partition_set(partitions) == text


def test_of_many_lost_transactions_some_are_named():
    """A batch may have thousands; the error has all of them, and its text the first five."""
    names = [f"p-q-{number}-0" for number in range(1_000)]
    error = TransactionLostError(names, "they timed out", "Do this.")
    assert error.transactional_ids == tuple(names)
    assert "'p-q-4-0' and 995 more cannot be committed" in str(error)


def test_a_missing_package_that_no_extra_has():
    """Such a package is installed by its own name."""
    error = MissingDependencyError("A package", package="vendor")
    assert str(error).endswith("A package is not installed. Install it with: pip install vendor")


def test_a_missing_dependency_keeps_its_message_between_processes():
    """What ImportError holds besides its arguments survives a pickle, too."""
    error = MissingDependencyError("a client", "confluent")
    assert pickle.loads(pickle.dumps(error)).msg == error.msg == str(error)  # noqa: S301


@pytest.mark.parametrize("missing", ["vendor", "vendor.part"])
def test_a_module_that_is_not_installed_names_its_extra(missing):
    """The import's own error is its cause; nothing happens where the module is there."""
    with requires_extra("tls", "vendor", "the vendor"):
        pass
    with (
        pytest.raises(
            MissingDependencyError, match=r"the vendor .*'pyspark-kafka\[tls\]'"
        ) as caught,
        requires_extra("tls", "vendor", "the vendor"),
    ):
        raise ModuleNotFoundError(name=missing)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_missing_module_of_another_kind_is_no_matter_of_an_extra():
    """Another module's error stays as it is."""
    with pytest.raises(ModuleNotFoundError), requires_extra("tls", "vendor", "the vendor"):
        raise ModuleNotFoundError(name="vendors")


def test_an_authorization_error_names_a_right():
    """An error without a right would not say what to grant."""
    with pytest.raises(ValueError, match="at least one right"):
        AuthorizationError("a request", [], "b:9092")


def test_facts_contain_no_secret():
    """A client's text may have a password: neither the message nor a pickle of the error has it."""
    error = DriverLostError("cannot connect to http://ann:hunter2@host")
    assert error.reason == "cannot connect to http://host"
    assert b"hunter2" not in pickle.dumps(error)
