"""The entries of the page of errors: an example of each error, its causes and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.spark.data_source import CatalogTableError, SaveModeError
from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.checkpoints.offsets import QueryIsRunningError, UnusableOffsetsError
from pyspark_kafka.application.continuous.errors import (
    FunctionError,
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
    UncertainEndError,
)
from pyspark_kafka.bootstrap.plugins import PluginError
from pyspark_kafka.brokers.errors import BrokerStartError, JarsError, JavaError
from pyspark_kafka.cli.spark import SparkQueryError
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    DisallowedOptionError,
    DriverLostError,
    InvalidResponseError,
    KafkaRequestError,
    KernelLibraryError,
    LeaderUnavailableError,
    MetadataLogError,
    MissingDependencyError,
    NoCheckpointError,
    OptionPolicyError,
    OptionsError,
    UnknownTopicError,
    UnsupportedFeatureError,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import data_loss
from pyspark_kafka.domain.reading.available_now import (
    EndBeyondLatestError,
    EndBeyondPrefetchedError,
    LostPartitionsError,
    PartitionsNotPrefetchedError,
)
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
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
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
    TopicRecreatedError,
)
from pyspark_kafka.domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
    TokenUnavailableError,
)
from pyspark_kafka.domain.security.rights import Operation, topic_right
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import (
    DeadLetterLoopError,
    DecodedTooLargeError,
    FailureReason,
    IncompatibleSchemaError,
    MalformedValueError,
    NewSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnencodableValueError,
    UnknownSchemaError,
    describe_failure,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.domain.writing.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    NullTopicError,
    ProducerFencedError,
    QueryReplacedError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    SinkSchemaError,
    TransactionLostError,
    UnknownPartitionError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.domain.errors import PysparkKafkaError

BROKER: Final = "broker:9092"
REGISTRY: Final = "https://registry.example.com"
P0: Final = TopicPartition("orders", 0)
P1: Final = TopicPartition("orders", 1)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """An error as a user may see it, what causes it, and what to do, step by step."""

    error: PysparkKafkaError
    cause: str
    steps: tuple[str, ...]


OPTIONS: Final = (
    Entry(
        OptionsError(["Option 'startingoffset' is not known. Did you mean 'startingOffsets'?"]),
        "An option does not exist, has an invalid value, or contradicts another option. The error "
        "lists all problems of the query.",
        (
            (
                "Correct each option that the message names. [Options](../reference/options.md) "
                "lists all of them, with their values and defaults."
            ),
            "An option of Kafka's client needs the prefix `kafka.`.",
            (
                "If the message says that a setting needs permission, ask the operator of Spark to "
                "[allow it](../connect/security.md#allowing-settings)."
            ),
        ),
    ),
    Entry(
        DisallowedOptionError({"sasl.jaas.config": "PYSPARK_KAFKA_DISALLOWED_OPTIONS"}),
        "The operator of Spark [forbids the setting](../reference/options.md#forbidding-settings) "
        "in a list.",
        (
            "Remove the setting from the query.",
            "If you need it, ask the operator of Spark to remove it from the list.",
        ),
    ),
    Entry(
        OptionPolicyError("PYSPARK_KAFKA_DISALLOWED_OPTIONS", "kafka.sasl.jaas.config"),
        "One of the operator's lists has an entry that would have no effect. No query runs until "
        "it is corrected, because the operator believes that something is forbidden.",
        (
            (
                "Correct the environment variable or the Spark setting that the message names; see "
                "[security](../connect/security.md#what-options-may-do)."
            ),
        ),
    ),
    Entry(
        MissingDependencyError("The client 'confluent'", "confluent"),
        "A feature needs a package that is not installed for the Python that ran this code.",
        (
            "Install the package that the message names, on the driver and on every executor.",
            "If it is installed, Spark may have started a different Python: set `PYSPARK_PYTHON`.",
        ),
    ),
    Entry(
        KernelLibraryError(
            "it is for linux-x86_64, and this is linux-aarch64",
            "Ship the wheel of pyspark-kafka that was built for the platform of the executors",
        ),
        "The package's compiled code is missing, damaged, for another platform, or older than its "
        "sources.",
        (
            (
                "Another platform: [ship the wheel](../deploy/environment.md#the-package-as-a-zip) "
                "for the executors."
            ),
            "Damaged: install the package again.",
            "In a checkout: run `pip install --editable .` or `make`, which build it.",
        ),
    ),
    Entry(
        UnsupportedFeatureError(
            "The client 'confluent'",
            "write into a transaction that another process ends; use the client 'kafka-python'",
        ),
        "The query's client, storage or release of Spark does not support this.",
        (
            (
                "Use the client, the storage or the release of Spark that the message names. "
                "[Choosing a client](../guides/choosing-a-client.md) compares the clients, and "
                "[Compatibility](../reference/compatibility.md#what-older-releases-of-spark-lack) "
                "the releases of Spark."
            ),
        ),
    ),
    Entry(
        PluginError("journal.client:CLIENT", "ImportError: no module named 'journal_native'"),
        "Another installed package provides a client or a container for this library, and this "
        "object cannot be imported or has the wrong type.",
        (
            "Fix or uninstall that package.",
            "If it is yours, see [writing an adapter](../library/writing-an-adapter.md).",
        ),
    ),
)

CONNECTION: Final = (
    Entry(
        BrokerUnreachableError(BROKER, 30, "Connection refused"),
        "No bootstrap server responded in time: the address is wrong, the brokers are down, or a "
        "firewall or a missing route separates this machine from them. Clients first connect to a "
        "bootstrap server, which returns the *advertised* addresses of all brokers: these have to "
        "be reachable as well.",
        (
            (
                "Read the reason in parentheses: a refused connection, a name that cannot be "
                "resolved, a time-out."
            ),
            (
                "Test the port from the machine that failed. The driver plans and the executors "
                "read: both have to reach every broker."
            ),
            "Check `advertised.listeners` of the brokers. In containers this is often `localhost`.",
            (
                "If the error reports that listeners close each connection at once, they may "
                "expect TLS or SASL. Set `kafka.security.protocol`."
            ),
            "For slow networks, raise `kafka.default.api.timeout.ms`.",
        ),
    ),
    Entry(
        LeaderUnavailableError("a request for offsets of 'orders'", "broker 7 has no address"),
        "The broker that leads a partition is down, or does not advertise the listener that the "
        "query uses.",
        (
            "Start the missing brokers.",
            "Check that all brokers have the same listeners in `advertised.listeners`.",
        ),
    ),
    Entry(
        KafkaRequestError("a request for offsets of 'orders'", "UnknownServerError"),
        "A broker refused a request for a reason without a separate condition.",
        (
            "Read the reason in the message and look it up in the brokers' logs.",
            "If nothing explains it, restart the query: the cause may have been temporary.",
        ),
    ),
    Entry(
        InvalidResponseError("a fetch of orders-0", "it ends after 12 bytes"),
        "The server that responded does not speak Kafka's protocol, or a proxy changed the "
        "response.",
        (
            (
                "Check that `kafka.bootstrap.servers` and the advertised listeners name Kafka "
                "brokers and not, for example, an HTTP port or a load balancer."
            ),
            "Otherwise see the brokers' logs.",
        ),
    ),
    Entry(
        FetchTimeoutError(P0, 1_500, 120_000),
        "The broker has the offset but did not return it in time: it is overloaded, its disk is "
        "slow, or the network drops packets.",
        (
            "Check that the broker is running, and how busy it is.",
            "If the broker is only slow, raise `kafkaConsumer.pollTimeoutMs`.",
        ),
    ),
    Entry(
        UnknownTopicError(["orders"], "subscribe", BROKER),
        "The topic does not exist in this cluster, or the query's user may not see it.",
        (
            "Check the spelling and the cluster's address.",
            (
                "Create the topic. A read never creates one, and a write only if the brokers have "
                "`auto.create.topics.enable`."
            ),
            (
                "A write fails after 10 s: until then the topic may be about to be created, which "
                "brokers do not report. `kafka.max.block.ms` sets the time."
            ),
            "If the topic exists, grant the right `Describe` or `Read` on it.",
        ),
    ),
)

SECURITY: Final = (
    Entry(
        AuthenticationError(BROKER, "SCRAM-SHA-512", "ada", "invalid credentials"),
        "A broker, or the service that issues tokens, refused the login: a wrong name, password "
        "or key, a mechanism that the broker does not offer, an expired token, or a wrong clock.",
        (
            "Correct the login in the options `kafka.sasl.*`, or the credentials of the machine.",
            (
                "A process does not retry a refused login for five minutes. Restart the query "
                "after you have corrected the login."
            ),
            "[Connecting to a platform](../connect/platforms.md) has options to paste.",
        ),
    ),
    Entry(
        TokenUnavailableError("https://login.example.com/token", "Connection refused"),
        "The service that issues tokens could not be reached. It did not refuse the login.",
        (
            "Check the URL, and that the driver and every executor can reach it.",
            "Check the proxy and the certificates of these machines.",
        ),
    ),
    Entry(
        TlsError(BROKER, TlsFailure.CERTIFICATE_NOT_TRUSTED, "certificate verify failed"),
        "The TLS handshake failed. The sub-condition after the dot is the reason.",
        ("Find the sub-condition in the table.",),
    ),
    Entry(
        AuthorizationError("a fetch", [topic_right(Operation.READ, "orders")], BROKER, "User:ada"),
        "The login succeeded, but the user lacks a right (ACL) for this request.",
        (
            "Ask an administrator of the cluster to run the command in the message.",
            "[Rights](../connect/platforms.md#rights) lists the rights that each feature needs.",
        ),
    ),
)

OFFSETS: Final = (
    Entry(
        OffsetsMismatchError([P0], [P0, P1]),
        "The partitions in `startingOffsets` or `endingOffsets` do not match the topics. Often a "
        "partition was added to a topic.",
        (
            "List every partition, with -2 for its earliest and -1 for its latest offset.",
            (
                "If you do not need offsets for each partition, use `earliest`, `latest` or a "
                "timestamp."
            ),
        ),
    ),
    Entry(
        TimestampsMismatchError("start", [P0], [P0, P1]),
        "The partitions in `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp` do not "
        "match the topics.",
        ("List every partition, or use `startingTimestamp` or `endingTimestamp` for all of them.",),
    ),
    Entry(
        TopicOffsetsMismatchError(["payments"], [P0]),
        "The offsets contain a topic that the query does not read.",
        ("Remove the topic from the offsets, or add it to `subscribe`.",),
    ),
    Entry(
        NoOffsetForTimestampError(P0, 1_790_000_000_000),
        "A partition has no record at or after the starting timestamp.",
        (
            (
                "Set `startingOffsetsByTimestampStrategy` to `latest`, so that such a partition "
                "starts at its end."
            ),
            (
                "Timestamps are milliseconds since 1970: check that yours are not seconds or "
                "microseconds."
            ),
        ),
    ),
    Entry(
        NoCommittedOffsetError("billing", [P0]),
        "The query starts from the offsets of a consumer group (`startingOffsets=group`), but the "
        "group has not committed an offset for this partition.",
        (
            "Check the name of the group.",
            "Set `startingOffsetsGroupFallback` to `earliest` or `latest`.",
        ),
    ),
    Entry(
        ResolvedOffsetsError(P0, 1_500, 900),
        "A batch query starts after its end.",
        (
            (
                "Compare the starting and the ending options: one may be a timestamp and the other "
                "an offset."
            ),
            "If the topic was deleted and recreated, its offsets begin at 0 again.",
        ),
    ),
    Entry(
        OffsetOutOfRangeError(P0, 900, earliest=1_000, latest=5_000),
        "A read without Spark starts at an offset that the broker does not hold. In queries this "
        "is [`KAFKA_DATA_LOSS`](#kafka_data_loss).",
        ("Start at an offset within the range of the message.",),
    ),
)

LOSS: Final = (
    Entry(
        data_loss.offset_range_not_read(P0, 900, 1_500, 1_000, "spark-kafka-source-1").as_error(),
        "Kafka no longer has records that the query should read. The sub-condition after the dot "
        "describes the loss.",
        (
            "Find the sub-condition in the table, and see [data loss](../operate/data-loss.md).",
            (
                "To continue without the lost records, set `failOnDataLoss` to `false`: the query "
                "logs a warning with the offsets instead."
            ),
            (
                "To lose less next time, raise the retention of the topic, or run the query more "
                "often."
            ),
        ),
    ),
    Entry(
        MissingOffsetsError(P0, 900, 1_000),
        "A read without Spark found that retention deleted records of its range. In queries this "
        "is [`KAFKA_DATA_LOSS`](#kafka_data_loss).",
        ("Raise the topic's retention, or read sooner.",),
    ),
    Entry(
        LogTruncatedError(P0, 1_500, 500),
        "A leader without the newest records took over, and wrote other records at their offsets. "
        "In queries this is [`KAFKA_DATA_LOSS`](#kafka_data_loss).",
        (
            "Ask the cluster's operator why the leader lacked records.",
            "Undo results that were derived from the lost records.",
        ),
    ),
    Entry(
        TopicRecreatedError(P0, 1_500, earliest=0),
        "The topic was deleted and recreated while it was read. In queries this is "
        "[`KAFKA_DATA_LOSS`](#kafka_data_loss).",
        ("Start the query with a new checkpoint: the old one has offsets of the old topic.",),
    ),
)

RECORDS: Final = (
    Entry(
        CorruptBatchError(P0, 1_500, "its checksum is wrong"),
        "A record batch in the log is damaged, or decompresses to more than the client allows.",
        (
            "Ask the cluster's operator to check the log with `kafka-dump-log.sh`.",
            (
                "With `confluent`, a batch beyond the limit of librdkafka looks corrupt: raise "
                "`maxRecordBytes`, or use `kafka-python`."
            ),
            (
                "With `confluent`, a damaged batch can also end the Python worker with SIGABRT: "
                "librdkafka 2.16 continues at a wrong position. `kafka-python` reports the batch."
            ),
            "To skip the batch, start at a later offset.",
        ),
    ),
    Entry(
        MalformedTimestampError(P0, 1_500, 1_790_000_000_000_000_000),
        "A producer writes timestamps in microseconds or nanoseconds. Kafka uses milliseconds.",
        (
            "Correct the producer.",
            "To read the topic anyway, leave out the column with `includeTimestamp=false`.",
        ),
    ),
    Entry(
        OversizedRecordError(P0, 1_500, 70_000_000, "bytes", "maxRecordBytes", 67_108_864),
        "A record is larger than the [limits](../connect/security.md#record-limits) that protect "
        "the memory of executors.",
        (
            "If you trust its producer, raise the option that the message names.",
            "To skip such records with a warning, set `skipOversizedRecords` to `true`.",
        ),
    ),
    Entry(
        MalformedValueError("value", P0, 1_500, describe_failure(FailureReason.MALFORMED)),
        "A value or a key does not have the format of `valueFormat` or `keyFormat`, and `mode` is "
        "`FAILFAST`.",
        (
            "Inspect the record: the message contains its offset.",
            (
                "Set `mode` to `PERMISSIVE` or `DROPMALFORMED`, or send such records to a "
                "[dead-letter topic](../guides/dead-letters.md)."
            ),
        ),
    ),
    Entry(
        DeadLetterLoopError("orders-dead"),
        "The query reads its own dead-letter topic.",
        ("Set another `deadLetterTopic`, or do not read that topic.",),
    ),
    Entry(
        DecodedTooLargeError(4_096),
        "One column of a batch of decoded values is larger than 2 GiB.",
        ("Lower `maxRecordBytes`, or read fewer fields.",),
    ),
)

REGISTRIES: Final = (
    Entry(
        RegistryUnavailableError(REGISTRY, "it did not answer within 30 s"),
        "The schema registry is down or cannot be reached from this machine. No record is skipped.",
        (
            "Check `schema.registry.url`, from the driver and from the executors.",
            "Once the registry is available, the next run of the batch succeeds.",
        ),
    ),
    Entry(
        RegistryRefusedError(REGISTRY, "the schema with id 7", "401 Unauthorized"),
        "The registry refused the login, or the user lacks a right.",
        (
            (
                "Check `schema.registry.basic.auth.user.info` or "
                "`schema.registry.bearer.auth.token`, and the user's rights."
            ),
        ),
    ),
    Entry(
        UnknownSchemaError(REGISTRY, "subject 'orders-value'"),
        "The registry has no such schema, subject or version. Often the producers use another "
        "registry.",
        ("Check `schema.registry.url`, `valueSubject` and `valueSchemaVersion`.",),
    ),
    Entry(
        IncompatibleSchemaError(
            "The schema of 'orders-value'", "field 'amount' is a string there and a long here"
        ),
        "A writer's schema is incompatible with the query's, or the registry refuses a new "
        "version.",
        (
            "Change the schema so that the field is compatible.",
            "Or lower the compatibility level of the subject, if its readers can handle this.",
        ),
    ),
    Entry(
        NewSchemaError(
            "value",
            P0,
            1_500,
            SubjectVersion("orders-value", 2, 101, Schema(SchemaType.AVRO, "")),
            3,
        ),
        "A producer writes a newer version of the schema, and `onNewSchema` is `fail`.",
        (
            "Restart the query with the new version to read its new fields.",
            "Set `onNewSchema` to `ignore` to continue with the old version.",
        ),
    ),
)

WRITES: Final = (
    Entry(
        SinkSchemaError(
            ["value attribute unsupported type int. value must be a(n) string or binary."]
        ),
        "The DataFrame lacks a column, or a column has the wrong type.",
        (
            "[Columns](../guides/writing.md#columns) lists the columns of a write and their types.",
            "Cast the column, for example `CAST(value AS STRING)`.",
        ),
    ),
    Entry(
        SaveModeError("Overwrite"),
        "A batch write has a save mode that a topic does not support.",
        ("Use `.mode('append')`.",),
    ),
    Entry(
        CatalogTableError(),
        "`CREATE TABLE ... USING pyspark_kafka` creates a table in Spark's catalog, but Spark "
        "does not pass the options of such a table to the source.",
        (
            (
                "Use `CREATE TEMPORARY VIEW`, as in [SQL](../guides/sql-and-pipelines.md), or "
                "create the view in Python."
            ),
        ),
    ),
    Entry(
        NullTopicError(),
        "A row has no topic.",
        ("Set the option `topic`, or fill the column `topic` in every row.",),
    ),
    Entry(
        InvalidRecordError("a header has no key", "Give every header a key."),
        "A row cannot be converted to a Kafka record.",
        ("Correct the column that the message names.",),
    ),
    Entry(
        UnencodableValueError("value", 12, "amount", "is null, and the schema requires a value"),
        "A row does not match the schema of its topic. No row of its batch was sent.",
        ("Change the query, or the schema.",),
    ),
    Entry(
        RecordDeliveryError("orders", 0, 120, "NOT_ENOUGH_REPLICAS"),
        "A broker did not acknowledge a record in time: the partition has no leader or too few "
        "replicas in sync, or its broker is slow.",
        (
            "Check the partition with `kafka-topics.sh --describe`.",
            "If the broker is slow, raise `kafka.delivery.timeout.ms`.",
            (
                "Earlier records may already be in Kafka. Unless the query is exactly-once, a "
                "retried task writes them again."
            ),
        ),
    ),
    Entry(
        RecordTooLargeError("orders", 0, 2_000_000, "a request holds 1048576 bytes"),
        "A record is larger than the producer's or the topic's limit.",
        (
            "Make the record smaller, or compress it (`kafka.compression.type`).",
            (
                "Raise the limit that it exceeds: `kafka.max.request.size`, or the topic's "
                "`max.message.bytes`."
            ),
        ),
    ),
    Entry(
        InvalidTimestampError("orders", 0, 120, "the timestamp is two hours ahead"),
        "A record's timestamp is too far from the broker's clock.",
        (
            "Correct the column `timestamp`, or drop it.",
            (
                "Without such a column, correct the clock of the machine that ran the task, or of "
                "the broker."
            ),
        ),
    ),
    Entry(
        UnknownPartitionError("orders", 7, 120, "the topic's partitions are 0 to 3"),
        "The column `partition` or the partitioner selects a partition that the topic does not "
        "have. Often a query copies the source's column `partition` to a smaller topic.",
        ("Drop the column `partition`, so that keys choose the partitions.",),
    ),
    Entry(
        RejectedRecordError("orders", 0, 120, "it has no key"),
        "A broker rejected a record because of a rule of the topic, and would reject it again.",
        (
            "A compacted topic needs a key in each record.",
            "For other reasons, check the topic's settings and the broker's logs.",
        ),
    ),
)

EXACTLY_ONCE: Final = (
    Entry(
        ProducerFencedError("pyspark-kafka-3f1c-0-0"),
        "Two producers used one transactional id: two queries with one checkpoint, two attempts of "
        "a task, or a transaction that timed out.",
        (
            "Stop the other query with this checkpoint.",
            "If batches take longer than `kafka.transaction.timeout.ms`, raise it.",
        ),
    ),
    Entry(
        QueryReplacedError("a micro-batch query took over the checkpoint with batch 12"),
        "A task of an exactly-once continuous query was late: its driver had stopped the query, or "
        "another query had taken over the checkpoint.",
        (
            "If the other query is the one that should run, you do not need to do anything.",
            "Otherwise stop the other query, and restart the continuous query.",
        ),
    ),
    Entry(
        TransactionLostError(
            ["pyspark-kafka-3f1c-0-0-0"],
            "batch 7 was dropped before a part of it was committed, because "
            "'pyspark-kafka-3f1c-0-0-0' was open for longer than 'kafka.transaction.timeout.ms'",
            "No record of the batch is visible, and none is lost. Set "
            "'kafka.transaction.timeout.ms' to more than a batch takes, up to the brokers' "
            "'transaction.max.timeout.ms', or let batches be smaller, and restart the query: it "
            "writes the batch again.",
        ),
        "Kafka aborted or forgot a transaction before it was committed. The message contains the "
        "cause: the time-out, another attempt or driver, or an operator. It also reports whether "
        "the whole batch was dropped, or part of it is visible.",
        (
            "A dropped batch is written again when you restart the query.",
            (
                "If part of a batch is visible, `pyspark-kafka offsets show CHECKPOINT` shows the "
                "batch's input. Write the missing records by other means, and change the log as "
                "the message describes."
            ),
            "See the [limits](../guides/writing.md#limits) of exactly-once.",
        ),
    ),
    Entry(
        MetadataLogError("s3://bucket/checkpoints/orders", "Access Denied"),
        "A file of the checkpoint, of the sink's log or of `metadataPath` cannot be read or "
        "written, is damaged or is missing.",
        (
            (
                "The message has the path and the storage's reason: check free space, the login "
                "and the rights."
            ),
            "Restore a damaged file from a copy. Do not delete single files of a log.",
        ),
    ),
    Entry(
        NoCheckpointError(
            "s3://bucket/checkpoint/orders",
            "There is no checkpoint of a streaming query, or its first batch has not begun. Check "
            "that it is the query's checkpointLocation",
        ),
        "The path that you passed to a [command](../operate/commands.md) has no checkpoint, or "
        "its checkpoint has no batch yet.",
        ("Pass the query's `checkpointLocation`, the directory above `offsets` and `commits`.",),
    ),
    Entry(
        ConcurrentUpdateError(MemoryMetadataLog(), 7),
        "Two queries write to one checkpoint.",
        ("Stop one of them. Each query needs its own checkpoint.",),
    ),
    Entry(
        QueryIsRunningError(
            "s3://bucket/checkpoints/orders/offsets",
            "batch 41 began 12 s ago",
            "Stop the query, and run the command again",
        ),
        "[`pyspark-kafka offsets`](../operate/checkpoints-offsets.md) changes the checkpoints of "
        "stopped queries, but this query has just written to its checkpoint.",
        (
            "Stop the query, and run the command again a minute later.",
            "If the query was killed during a batch, add `--query-is-stopped`.",
        ),
    ),
    Entry(
        UnusableOffsetsError(
            "offset 900 of orders-0 is not in Kafka, which has offsets 1000 to 5000",
            "Choose an offset in between, or 'earliest' or 'latest'",
        ),
        "The offsets that a command should write to a checkpoint, or export from one, do not "
        "match the query or Kafka.",
        (
            (
                "Follow the message. `pyspark-kafka offsets show` lists the checkpoint's offsets, "
                "and `pyspark-kafka topics --partitions` Kafka's."
            ),
        ),
    ),
)

AVAILABLE_NOW: Final = (
    Entry(
        PartitionsNotPrefetchedError(PartitionOffsets({P0: 5}), PartitionOffsets({P0: 5, P1: 1})),
        "A partition was added to a topic, or deleted, while a query with "
        "`Trigger.AvailableNow` ran.",
        ("Start the query again.",),
    ),
    Entry(
        EndBeyondPrefetchedError(PartitionOffsets({P0: 5}), PartitionOffsets({P0: 9})),
        "A batch would end after the offsets that the query determined at its start.",
        ("Start the query again.",),
    ),
    Entry(
        LostPartitionsError(PartitionOffsets({P0: 5}), PartitionOffsets({P0: 5, P1: 1})),
        "A partition was deleted while the query ran.",
        ("Start the query again. If the error repeats, the topic was deleted or recreated.",),
    ),
    Entry(
        EndBeyondLatestError(PartitionOffsets({P0: 5}), PartitionOffsets({P0: 9})),
        "A log is shorter than when the query started: the topic was recreated, or its log was "
        "truncated.",
        ("Start the query again. If the error repeats, use a new checkpoint.",),
    ),
)

CONTINUOUS: Final = (
    Entry(
        FunctionError(P0, 100, 200, "ValueError: amount is negative"),
        "Your function raised an error, or returned a value that the sink cannot write.",
        (
            (
                "Correct the function. The message contains the partition and the offsets of the "
                "batch."
            ),
            "After a restart the query reads these records again.",
        ),
    ),
    Entry(
        NotEnoughSlotsError(8, 4, " within 60 s"),
        "All tasks of a continuous query run at the same time, but Spark has fewer free slots.",
        (
            "Set `tasks` to the number of free cores, so that a task reads more partitions.",
            "Or add cores to the cluster, or end other jobs.",
        ),
    ),
    Entry(
        TaskFailedError("SystemError: a task ended"),
        "A task ended with an error that a restart would not fix. If the error has its own "
        "condition, the message begins with that condition instead.",
        ("Read the error in the message. Spark's UI has the executor's log.",),
    ),
    Entry(
        RestartsExhaustedError(3, 600, "the worker was killed"),
        "Tasks failed more often than the limit of restarts allows.",
        (
            "Fix the cause that the message names, often too little memory.",
            "Restart the query: it continues after its last epoch.",
        ),
    ),
    Entry(
        UncertainEndError(
            "these tasks have not ended: task 0 (run 1, attempt 3.0.7-5d1f)",
            "Make sure that their processes have ended before another query uses the checkpoint",
        ),
        "`stop()` could not make sure that nothing is written after the last epoch: a task "
        "without transactions did not end, or no broker responded.",
        (
            "At least once: end the processes of the tasks that the message names.",
            "Exactly once: start the query once more, and stop it.",
        ),
    ),
    Entry(
        DriverLostError("nothing was heard from it for 15 s"),
        "A task can no longer reach the driver: the driver ended, or the network between them is "
        "broken.",
        (
            "If the driver is running, it restarts the task. Otherwise restart the query.",
            "If executors cannot connect to the driver, use `channel='directory'`.",
        ),
    ),
)

LOCAL: Final = (
    Entry(
        JavaError("there is no 'java' on the PATH", 17),
        "Spark, and Apache Kafka for development, need a newer Java.",
        ("Install a JDK or JRE, or set `JAVA_HOME` to one.",),
    ),
    Entry(
        JarsError("Apache Kafka 4.3.1", "unresolved dependency: org.apache.kafka#kafka_2.13"),
        "The jars of a broker for development could not be downloaded. The library itself needs "
        "no jars.",
        ("Let this machine download Maven artifacts, or use the embedded broker.",),
    ),
    Entry(
        BrokerStartError("The broker ended with exit code 1", Path("/tmp/kafka/server.log")),  # noqa: S108
        "A broker for development did not start. The message ends with the end of its log.",
        ("Read the log. Often the port is taken, or the disk is full.",),
    ),
    Entry(
        SparkQueryError.from_spark("Job aborted due to stage failure: Task 0 failed"),
        "A command ran Spark, and Spark failed.",
        ("Run the command again with `--spark-log FILE`, and read the log.",),
    ),
)

SECTIONS: Final[Mapping[str, tuple[Entry, ...]]] = {
    "Options and packages": OPTIONS,
    "Brokers and topics": CONNECTION,
    "Logins, TLS and rights": SECURITY,
    "Starting and ending offsets": OFFSETS,
    "Lost records": LOSS,
    "Records that cannot be read": RECORDS,
    "Schema registries": REGISTRIES,
    "Writing": WRITES,
    "Exactly-once and checkpoints": EXACTLY_ONCE,
    "Trigger.AvailableNow": AVAILABLE_NOW,
    "Continuous queries": CONTINUOUS,
    "This machine": LOCAL,
}

DATA_LOSSES: Final = (
    data_loss.earliest_offsets_not_found([P1]),
    data_loss.added_partition_starts_late(P1, 12),
    data_loss.partitions_deleted([P1]),
    data_loss.partitions_deleted([P1], group_id_is_set=True),
    data_loss.partition_offset_changed(P0, 1_500, 0),
    data_loss.start_offset_reset(P0, 900, 1_000),
    data_loss.first_batch_start_unknown([P0], "orders-app"),
    data_loss.offset_range_not_read(P0, 900, 1_500, 1_000, "spark-kafka-source-1"),
    data_loss.log_truncated(P0, 1_500, 500, 500),
)
"""All losses that can be raised as an error."""
