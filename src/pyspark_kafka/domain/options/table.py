"""Every option of the source, once: its name, its parser, its default and what it means.

Validation, its messages and the reference page (``docs/options.md``) are made from this table.
Names, defaults and messages are those of Spark's ``KafkaSourceProvider``; names do not
distinguish upper from lower case.
"""

from __future__ import annotations

from typing import Any, Final

from ..durations import milliseconds
from ..offset_limits import (
    OffsetLimit,
    OnMissingCommit,
    OnNoMatch,
    StartingOffsets,
    Timestamps,
    parse_global_timestamp,
    parse_no_match,
    parse_offset_limit,
    parse_starting_offsets,
    parse_timestamps,
    parse_uncommitted,
)
from ..option_values import (
    boolean,
    group_id,
    json_object,
    non_negative_integer,
    positive_integer,
    positive_long,
    time_to_live,
)
from ..projection import COLUMNS
from .option import BATCH_ONLY, STREAM_ONLY, Option


def _text(value: str) -> str:
    return value.strip()


def _delay(text: str) -> int:
    duration = milliseconds(text)
    if duration < 0:
        raise ValueError(f"maxTriggerDelay must not be negative, got {text}")
    return duration


CLIENT: Final = Option(
    "client",
    _text,
    "kafka-python",
    "`kafka-python`, `confluent`",
    "The Kafka client. `confluent` needs the extra of the same name.",
)
SUBSCRIBE: Final[Option[str | None]] = Option(
    "subscribe", _text, None, "topics between commas", "Reads all partitions of these topics."
)
SUBSCRIBE_PATTERN: Final[Option[str | None]] = Option(
    "subscribePattern",
    _text,
    None,
    "a regular expression",
    "Reads all topics in whose name the expression is found; internal ones are left out.",
)
ASSIGN: Final[Option[str | None]] = Option(
    "assign",
    _text,
    None,
    '`{"topicA":[0,1],"topicB":[2]}`',
    "Reads these partitions. One of `subscribe`, `subscribePattern` and `assign` is needed.",
)
STARTING_TIMESTAMP: Final[Option[int | None]] = Option(
    "startingTimestamp",
    parse_global_timestamp,
    None,
    "milliseconds since the epoch",
    "Begins with the first record of each partition that is not older. Stands above "
    "`startingOffsetsByTimestamp`, and that above `startingOffsets`.",
)
STARTING_OFFSETS_BY_TIMESTAMP: Final[Option[Timestamps]] = Option(
    "startingOffsetsByTimestamp",
    parse_timestamps,
    (),
    '`{"topicA":{"0":1700000000000}}`',
    "The same with a time for each partition, of which none may be left out.",
)
STARTING_OFFSETS: Final[Option[StartingOffsets | None]] = Option(
    "startingOffsets",
    parse_starting_offsets,
    None,
    '`earliest`, `latest` (streams), `group`, `{"topicA":{"0":23,"1":-2},"topicB":"earliest"}`',
    "Where a batch query, and a stream that has no checkpoint yet, begins. "
    "In JSON, -2 stands for earliest and -1 for latest. `group` stands for the offsets that the "
    "consumer group `kafka.group.id` has committed, or without it `commitOffsetsToGroup`.",
    "`latest` for streams, `earliest` for batch",
)
STARTING_GROUP_FALLBACK: Final = Option(
    "startingOffsetsGroupFallback",
    parse_uncommitted,
    OnMissingCommit.ERROR,
    "`error`, `earliest`, `latest` (streams)",
    "What to do, where `startingOffsets` is `group`, with a partition for which that group has "
    "committed nothing.",
    "`error`",
)
STARTING_STRATEGY: Final = Option(
    "startingOffsetsByTimestampStrategy",
    parse_no_match,
    OnNoMatch.ERROR,
    "`error`, `latest`",
    "What to do with a partition that has no record of the starting time or later.",
    "`error`",
)
ENDING_TIMESTAMP: Final[Option[int | None]] = Option(
    "endingTimestamp",
    parse_global_timestamp,
    None,
    "milliseconds since the epoch",
    "Ends before the first record of each partition that is not older; at the latest offset where "
    "there is none. Stands above `endingOffsetsByTimestamp`, and that above `endingOffsets`.",
    queries=BATCH_ONLY,
)
ENDING_OFFSETS_BY_TIMESTAMP: Final[Option[Timestamps]] = Option(
    "endingOffsetsByTimestamp",
    parse_timestamps,
    (),
    '`{"topicA":{"0":1700000000000}}`',
    "The same with a time for each partition, of which none may be left out.",
    queries=BATCH_ONLY,
)
ENDING_OFFSETS: Final[Option[OffsetLimit | None]] = Option(
    "endingOffsets",
    parse_offset_limit,
    None,
    '`latest`, `{"topicA":{"0":23,"1":-1},"topicB":"latest"}`',
    "Where a batch query ends; the offset itself is not read. In JSON, -1 stands for latest.",
    "`latest`",
    BATCH_ONLY,
)
FAIL_ON_DATA_LOSS: Final = Option(
    "failOnDataLoss",
    boolean,
    default=True,
    values="`true`, `false`",
    doc="Whether a query fails when records that it was to read are gone, "
    "or logs a warning and goes on.",
)
MIN_PARTITIONS: Final[Option[int | None]] = Option(
    "minPartitions",
    positive_integer("minPartitions"),
    None,
    "a positive number",
    "Splits large ranges until there are about so many tasks.",
)
MAX_RECORDS_PER_PARTITION: Final[Option[int | None]] = Option(
    "maxRecordsPerPartition",
    positive_long("maxrecordsperpartition"),
    None,
    "a positive number",
    "Splits ranges so that no task reads more offsets.",
)
MAX_OFFSETS_PER_TRIGGER: Final[Option[int | None]] = Option(
    "maxOffsetsPerTrigger",
    positive_long("maxOffsetsPerTrigger"),
    None,
    "a positive number",
    "Reads about so many offsets a batch, shared among partitions by what each has. "
    "Trigger.Once takes no notice.",
    queries=STREAM_ONLY,
)
MIN_OFFSETS_PER_TRIGGER: Final[Option[int | None]] = Option(
    "minOffsetsPerTrigger",
    positive_long("minOffsetsPerTrigger"),
    None,
    "a positive number, no larger than `maxOffsetsPerTrigger`",
    "Waits for so many new offsets before the next batch, at most for `maxTriggerDelay`.",
    queries=STREAM_ONLY,
)
MAX_TRIGGER_DELAY_MS: Final = Option(
    "maxTriggerDelay",
    _delay,
    900_000,
    "a time such as `30s`, `15m`, `1h`",
    "How long `minOffsetsPerTrigger` may hold a batch back.",
    "`15m`",
    STREAM_ONLY,
)
MAX_BYTES_PER_TRIGGER: Final[Option[int | None]] = Option(
    "maxBytesPerTrigger",
    positive_long("maxBytesPerTrigger"),
    None,
    "a positive number of bytes",
    "Reads about so many bytes a batch, reckoned from the sizes of records that were read "
    "before; a batch has at least one record.",
    queries=STREAM_ONLY,
)
METADATA_PATH: Final[Option[str | None]] = Option(
    "metadataPath",
    _text,
    None,
    "a directory, as an URL of fsspec: `/data/orders/sources/0`, `s3://bucket/orders/sources/0`, "
    "`hdfs://`, `webhdfs://`",
    "Keeps the offsets at which a stream begins there before its first batch is read, so that one "
    "that fails loses nothing with `startingOffsets=latest`. Spark gives a source in Python no "
    "directory in the checkpoint; name `<checkpoint>/sources/0`, and the JVM connector's own "
    "offsets are found, and ours by it.",
    queries=STREAM_ONLY,
)
METADATA_STORAGE_OPTIONS: Final = Option(
    "metadataStorageOptions",
    json_object("metadataStorageOptions"),
    "{}",
    '`{"key":"...","secret":"..."}`',
    "The `storage_options` of fsspec for `metadataPath`; where they are left out, the storage's "
    "own means are looked at, such as the environment. Never logged.",
    "none",
    STREAM_ONLY,
)
COMMIT_OFFSETS_TO_GROUP: Final[Option[str | None]] = Option(
    "commitOffsetsToGroup",
    group_id("commitOffsetsToGroup"),
    None,
    "a consumer group",
    "Commits the next offsets for this group after each batch that Spark has committed, for tools "
    "that show lag. They are a copy: a checkpoint goes before them, and a failure to commit is a "
    "warning. No other consumer may be a member of the group.",
    queries=STREAM_ONLY,
)
POLL_TIMEOUT_MS: Final = Option(
    "kafkaConsumer.pollTimeoutMs",
    positive_integer("kafkaConsumer.pollTimeoutMs"),
    120_000,
    "milliseconds, positive",
    "How long a task waits for records that the broker holds before it fails.",
)
FETCH_ATTEMPTS: Final = Option(
    "fetchOffset.numRetries",
    positive_integer("fetchOffset.numRetries"),
    3,
    "a positive number",
    "How often offsets are asked for before the query fails: all attempts, the first included.",
)
FETCH_RETRY_INTERVAL_MS: Final = Option(
    "fetchOffset.retryIntervalMs",
    non_negative_integer("fetchOffset.retryIntervalMs"),
    1_000,
    "milliseconds",
    "How long to wait between these attempts.",
)
METADATA_TTL_MS: Final = Option(
    "partition.metadata.cache.ttl.ms",
    time_to_live("partition.metadata.cache.ttl.ms"),
    -1,
    "-1, or milliseconds, positive",
    "How long a query goes without asking which partitions there are; -1 asks every time.",
)
GROUP_ID_PREFIX: Final[Option[str | None]] = Option(
    "groupIdPrefix",
    _text,
    None,
    "a text",
    "Accepted for the JVM connector's sake: no consumer group is joined, so that none is named.",
)
INCLUDED: Final = {
    column: Option(
        f"include{column[0].upper()}{column[1:]}",
        boolean,
        default=column != "headers",
        values="`true`, `false`",
        doc=f"Whether rows have the column `{column}`; what is left out is not read.",
    )
    for column in COLUMNS
}
PUSH_FILTERS: Final = Option(
    "pushFilters",
    boolean,
    default=False,
    values="`true`, `false`",
    doc="Lets filters on `partition`, `offset` and `timestamp` choose what is read. Spark's "
    "setting `spark.sql.python.filterPushdown.enabled` has to be true.",
    queries=BATCH_ONLY,
)

TABLE: Final[tuple[Option[Any], ...]] = (
    CLIENT,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    STARTING_TIMESTAMP,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_OFFSETS,
    STARTING_GROUP_FALLBACK,
    STARTING_STRATEGY,
    ENDING_TIMESTAMP,
    ENDING_OFFSETS_BY_TIMESTAMP,
    ENDING_OFFSETS,
    FAIL_ON_DATA_LOSS,
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY_MS,
    MAX_BYTES_PER_TRIGGER,
    POLL_TIMEOUT_MS,
    FETCH_ATTEMPTS,
    FETCH_RETRY_INTERVAL_MS,
    METADATA_TTL_MS,
    GROUP_ID_PREFIX,
    METADATA_PATH,
    METADATA_STORAGE_OPTIONS,
    COMMIT_OFFSETS_TO_GROUP,
    *INCLUDED.values(),
    PUSH_FILTERS,
)

STRATEGIES: Final = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)
