"""Every option of the source, once: its name, its parser, its default and what it means.

Parsing, its messages and the reference page (``docs/reference/options.md``) are made from this
table. Names, defaults and messages are from Spark's ``KafkaSourceProvider``; names are not
case-sensitive. An option that fills a field needs a row here and the field, nothing else. Only
options that are combined with others, or checked before them, have their own name.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..reading.offset_limits import (
    OffsetLimit,
    OnMissingCommit,
    OnNoMatch,
    StartingOffsets,
    Timestamps,
    parse_global_timestamp,
    parse_offset_limit,
    parse_on_missing_commit,
    parse_on_no_match,
    parse_starting_offsets,
    parse_timestamps,
)
from ..reading.record_limits import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_HEADER_BYTES,
    DEFAULT_MAX_HEADERS,
    MAX_RECORD_BYTES,
    MAX_RECORD_HEADER_BYTES,
    MAX_RECORD_HEADERS,
)
from ..reading.records import COLUMNS
from .option import (
    BATCH_ONLY,
    BOTH,
    STREAM_ONLY,
    Option,
    QueryKind,
    boolean,
    json_object,
    milliseconds,
    non_negative_integer,
    positive_integer,
    positive_long,
    required,
    time_to_live,
)


def _delay(text: str) -> int:
    duration = milliseconds(text)
    if duration < 0:
        raise ValueError(f"maxTriggerDelay must not be negative, got {text}")
    return duration


_TOKEN_PROVIDER: Final = re.compile(r"{0}(?:\.{0})*:{0}(?:\.{0})*|[\w-]+".format(r"[^\W\d]\w*"))


def _token_provider(text: str) -> str:
    if not _TOKEN_PROVIDER.fullmatch(text.strip()):
        # The text may be a token.
        raise ValueError("tokenProvider must be a function as 'module:function', or a name")
    return text.strip()


RACK_PLACES: Final = ("environment", "aws", "aws-zone-name", "gcp", "azure")
"""The values of ``clientRackFrom``."""


def _rack_place(text: str) -> str:
    place = text.strip().lower()
    if place not in RACK_PLACES:
        known = ", ".join(f"'{known}'" for known in RACK_PLACES)
        raise ValueError(f"clientRackFrom must be one of {known}, got '{text}'")
    return place


def _no_push_down(text: str) -> bool:
    if boolean(text):
        raise ValueError(
            "pushFilters must be false: Spark 4.1 to 4.3 apply the filters that were pushed last "
            "to every use of a DataFrame, so that its other queries would miss rows, and Spark 4.0 "
            "pushes none. Remove the option. To read less, set 'assign', 'startingOffsets', "
            "'startingTimestamp', 'endingOffsets' or 'endingTimestamp'"
        )
    return False


def text_option(
    name: str, values: str, doc: str, queries: frozenset[QueryKind] = BOTH
) -> Option[str | None]:
    """Return an option that is a text and has no default."""
    return Option(name, str.strip, None, values, doc, queries=queries)


def _timestamp(name: str, doc: str, queries: frozenset[QueryKind] = BOTH) -> Option[int | None]:
    values = "milliseconds since the epoch"
    return Option(name, parse_global_timestamp, None, values, doc, queries=queries)


def _by_timestamp(name: str, queries: frozenset[QueryKind] = BOTH) -> Option[Timestamps]:
    values = '`{"topicA":{"0":1700000000000}}`'
    doc = "The same with a timestamp for each partition. Every partition must be listed."
    return Option(name, parse_timestamps, (), values, doc, queries=queries)


def _limit(
    name: str, doc: str, values: str = "a positive number", queries: frozenset[QueryKind] = BOTH
) -> Option[int | None]:
    return Option(name, positive_long(name), None, values, doc, queries=queries)


def _flag(
    name: str, doc: str, field: str = "", queries: frozenset[QueryKind] = BOTH, *, default: bool
) -> Option[bool]:
    return Option(name, boolean, default, "`true`, `false`", doc, "", queries, field)


CLIENT: Final = Option(
    "client",
    str.strip,
    "kafka-python",
    "`kafka-python`, `confluent`",
    "The Kafka client. `confluent` needs the extra of the same name.",
    field="client",
)
TOKEN_PROVIDER: Final[Option[str | None]] = Option(
    "tokenProvider",
    _token_provider,
    None,
    "`module:function`, `azure`, `google`, `msk`, or the name of an entry point",
    "What gets the tokens of a login by `OAUTHBEARER`. A function takes no arguments and returns a "
    "`pyspark_kafka.ports.security.token_provider.Token`; entry points of the group "
    "`pyspark_kafka.token_providers` refer to such functions. Takes precedence over Java's "
    "`kafka.sasl.login.callback.handler.class`. The operator of Spark has to "
    "[allow](../connect/security.md#allowing-settings) the module of a function.",
)
CLIENT_RACK_FROM: Final[Option[str | None]] = Option(
    "clientRackFrom",
    _rack_place,
    None,
    ", ".join(f"`{place}`" for place in RACK_PLACES),
    "Where each Python worker of an executor finds its own rack, to read from the replicas in it. "
    "Replaces `kafka.client.rack`, and cannot be set together with it. `environment` is the "
    "worker's variable `KAFKA_CLIENT_RACK`. The others ask the metadata service of the cloud: "
    "`aws` for the id of the zone (`use1-az1`), which is the rack of MSK's brokers, "
    "`aws-zone-name` for its name (`us-east-1a`), `gcp` for the zone (`europe-west1-b`), `azure` "
    "for location and zone (`westeurope-1`). A worker asks once, for at most a second. If it finds "
    "no rack, it logs a warning and reads from the leaders.",
    field="client_rack_from",
)
SUBSCRIBE: Final = text_option(
    "subscribe", "topics, separated by commas", "Reads all partitions of these topics."
)
SUBSCRIBE_PATTERN: Final = text_option(
    "subscribePattern",
    "a regular expression of Python's `re`",
    "Reads all topics whose name contains a match; internal topics are left out.",
)
ASSIGN: Final = text_option(
    "assign",
    '`{"topicA":[0,1],"topicB":[2]}`',
    "Reads these partitions. Exactly one of `subscribe`, `subscribePattern` and `assign` is "
    "required.",
)
STRATEGIES: Final = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)
STARTING_TIMESTAMP: Final = _timestamp(
    "startingTimestamp",
    "Starts at the first record of each partition with this timestamp or a later one. Takes "
    "precedence over `startingOffsetsByTimestamp`, which takes precedence over `startingOffsets`.",
)
STARTING_OFFSETS_BY_TIMESTAMP: Final = _by_timestamp("startingOffsetsByTimestamp")
STARTING_OFFSETS: Final[Option[StartingOffsets | None]] = Option(
    "startingOffsets",
    parse_starting_offsets,
    None,
    '`earliest`, `latest` (streams), `group`, `{"topicA":{"0":23,"1":-2},"topicB":"earliest"}`',
    "Where a batch query, or a stream without a checkpoint, starts. In JSON, -2 means earliest "
    "and -1 means latest. `group` means the offsets that the consumer group `kafka.group.id` has "
    "committed; without that setting, the group `commitOffsetsToGroup`.",
    "`latest` for streams, `earliest` for batch",
)
STARTING_GROUP_FALLBACK: Final = Option(
    "startingOffsetsGroupFallback",
    parse_on_missing_commit,
    OnMissingCommit.ERROR,
    "`error`, `earliest`, `latest` (streams)",
    "Where to start in partitions without a committed offset, if `startingOffsets` is `group`.",
    "`error`",
)
STARTING_STRATEGY: Final = Option(
    "startingOffsetsByTimestampStrategy",
    parse_on_no_match,
    OnNoMatch.ERROR,
    "`error`, `latest`",
    "Where to start in partitions without a record at or after the starting timestamp.",
    "`error`",
)
ENDING_TIMESTAMP: Final = _timestamp(
    "endingTimestamp",
    "Ends before the first record of each partition with this timestamp or a later one, or at the "
    "latest offset if there is none. Takes precedence over `endingOffsetsByTimestamp`, which takes "
    "precedence over `endingOffsets`.",
    BATCH_ONLY,
)
ENDING_OFFSETS_BY_TIMESTAMP: Final = _by_timestamp("endingOffsetsByTimestamp", BATCH_ONLY)
ENDING_OFFSETS: Final[Option[OffsetLimit | None]] = Option(
    "endingOffsets",
    parse_offset_limit,
    None,
    '`latest`, `{"topicA":{"0":23,"1":-1},"topicB":"latest"}`',
    "Where a batch query ends (exclusive). In JSON, -1 means latest.",
    "`latest`",
    BATCH_ONLY,
)
MIN_PARTITIONS: Final[Option[int | None]] = Option(
    "minPartitions",
    positive_integer("minPartitions"),
    None,
    "a positive number",
    "Splits large offset ranges until there are about this many tasks.",
    field="min_partitions",
)
MAX_PARTITIONS: Final[Option[int | None]] = Option(
    "maxPartitions",
    positive_integer("maxPartitions"),
    None,
    "a positive number, at least `minPartitions`",
    "Joins small offset ranges, so that there are no more tasks than this: a task costs some "
    "milliseconds, whatever it reads. With `minPartitions`, ranges larger than a task's share are "
    "split before. By default, each partition has a task of its own.",
    field="max_partitions",
)
MAX_RECORDS_PER_PARTITION: Final[Option[int | None]] = Option(
    "maxRecordsPerPartition",
    positive_long("maxrecordsperpartition"),
    None,
    "a positive number",
    "Splits offset ranges so that no task reads more offsets than this.",
    field="max_records_per_partition",
)
MAX_OFFSETS_PER_TRIGGER: Final = _limit(
    "maxOffsetsPerTrigger",
    "Reads about this many offsets per batch, divided among partitions in proportion to what is "
    "available in each. Ignored by Trigger.Once.",
    queries=STREAM_ONLY,
)
MIN_OFFSETS_PER_TRIGGER: Final = _limit(
    "minOffsetsPerTrigger",
    "Waits for this many new offsets before the next batch, but no longer than `maxTriggerDelay`.",
    "a positive number, at most `maxOffsetsPerTrigger`",
    queries=STREAM_ONLY,
)
MAX_TRIGGER_DELAY_MS: Final = Option(
    "maxTriggerDelay",
    _delay,
    900_000,
    "a duration such as `30s`, `15m`, `1h`",
    "How long `minOffsetsPerTrigger` may delay a batch.",
    "`15m`",
    STREAM_ONLY,
)
MAX_BYTES_PER_TRIGGER: Final = _limit(
    "maxBytesPerTrigger",
    "Reads about this many bytes per batch, estimated from the average size of earlier records; "
    "a batch has at least one record.",
    "a positive number of bytes",
    queries=STREAM_ONLY,
)
ALLOW_LIMITS_WITHOUT_TRIGGER: Final = _flag(
    "allowLimitsWithoutTrigger",
    "Whether a stream may have the three limits per trigger on Spark 4.0 and 4.1, which do not "
    "tell a Python source the trigger. The limits then apply under every trigger: with "
    "`availableNow` or `once`, a run ends after one limited batch, even if there are more records, "
    "and the next run continues from there. Without effect on Spark 4.2 or newer.",
    "allow_limits_without_trigger",
    STREAM_ONLY,
    default=False,
)
METADATA_PATH: Final = text_option(
    "metadataPath",
    "a directory, as a URL for fsspec: `/data/orders/sources/0`, `s3://bucket/orders/sources/0`, "
    "`hdfs://`, `webhdfs://`",
    "Where a stream stores its starting offsets before it plans its first batch. Without it, a "
    "restart derives them from the end of that batch, unless the consumer group of "
    "`startingOffsets=group` moves before the batch is committed. If you name "
    "`<checkpoint>/sources/0`, a stream of this source continues from the starting offsets that "
    "the JVM connector stored there, and vice versa.",
    STREAM_ONLY,
)
METADATA_STORAGE_OPTIONS: Final = Option(
    "metadataStorageOptions",
    json_object("metadataStorageOptions"),
    "{}",
    '`{"key":"...","secret":"..."}`',
    "fsspec's `storage_options` for `metadataPath` and for files of schemas. If not set, the "
    "storage's default credentials are used. Never logged.",
    "none",
)
COMMIT_OFFSETS_TO_GROUP: Final[Option[str | None]] = Option(
    "commitOffsetsToGroup",
    required("commitOffsetsToGroup must name a consumer group"),
    None,
    "a consumer group",
    "Commits the next offsets to this group after each batch that Spark has committed, for tools "
    "that show lag. The checkpoint takes precedence over them, and a failed commit is logged as a "
    "warning. The group must have no members.",
    queries=STREAM_ONLY,
    field="commit_offsets_to_group",
)
INCLUDED: Final = {
    column: _flag(
        f"include{column[0].upper()}{column[1:]}",
        f"Whether rows have the column `{column}`. Columns that are left out are not read.",
        default=column != "headers",
    )
    for column in COLUMNS
}

PUSH_FILTERS: Final = Option(
    "pushFilters",
    _no_push_down,
    False,
    "`false`",
    "`true` is refused: Spark 4.1 to 4.3 apply the filters that were pushed last to every use of a "
    "DataFrame, and Spark 4.0 pushes no filters.",
    queries=BATCH_ONLY,
)

TABLE: Final[tuple[Option[Any], ...]] = (
    CLIENT,
    TOKEN_PROVIDER,
    CLIENT_RACK_FROM,
    *STRATEGIES,
    STARTING_TIMESTAMP,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_OFFSETS,
    STARTING_GROUP_FALLBACK,
    STARTING_STRATEGY,
    ENDING_TIMESTAMP,
    ENDING_OFFSETS_BY_TIMESTAMP,
    ENDING_OFFSETS,
    _flag(
        "failOnDataLoss",
        "Whether a query fails if records that it should read no longer exist; otherwise it logs a "
        "warning and continues.",
        "fail_on_data_loss",
        default=True,
    ),
    MIN_PARTITIONS,
    MAX_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY_MS,
    MAX_BYTES_PER_TRIGGER,
    ALLOW_LIMITS_WITHOUT_TRIGGER,
    Option(
        MAX_RECORD_BYTES,
        positive_integer(MAX_RECORD_BYTES),
        DEFAULT_MAX_BYTES,
        "a positive number of bytes, less than 2 GiB",
        "The largest record that is read: the bytes of its key, its value and its headers, after "
        "decompression. A larger one fails the query, so that no producer can exhaust the memory "
        "of its readers. See [record limits](../connect/security.md#record-limits).",
        "`67108864`, 64 MiB",
        field="max_record_bytes",
    ),
    Option(
        MAX_RECORD_HEADERS,
        positive_integer(MAX_RECORD_HEADERS),
        DEFAULT_MAX_HEADERS,
        "a positive number",
        "How many headers a record may have, if `headers` is read.",
        field="max_record_headers",
    ),
    Option(
        MAX_RECORD_HEADER_BYTES,
        positive_integer(MAX_RECORD_HEADER_BYTES),
        DEFAULT_MAX_HEADER_BYTES,
        "a positive number of bytes",
        "How many bytes the headers of a record may have together, if `headers` is read.",
        "`16777216`, 16 MiB",
        field="max_record_header_bytes",
    ),
    _flag(
        "skipOversizedRecords",
        "Whether records beyond these three limits are skipped. A warning then names their "
        "offsets and number. `failOnDataLoss` has no influence on it.",
        "skip_oversized_records",
        default=False,
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        positive_integer("kafkaConsumer.pollTimeoutMs"),
        120_000,
        "milliseconds, positive",
        "How long a task waits for records that the broker holds before it fails.",
        field="poll_timeout_ms",
    ),
    Option(
        "fetchOffset.numRetries",
        positive_integer("fetchOffset.numRetries"),
        3,
        "a positive number",
        "How many attempts to fetch offsets are made before the query fails, including the first.",
        field="fetch_attempts",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        non_negative_integer("fetchOffset.retryIntervalMs"),
        1_000,
        "milliseconds",
        "How long to wait between these attempts.",
        field="fetch_retry_interval_ms",
    ),
    Option(
        "partition.metadata.cache.ttl.ms",
        time_to_live("partition.metadata.cache.ttl.ms"),
        -1,
        "-1, or milliseconds, positive",
        "How long a query caches the list of partitions; -1 disables the cache.",
        field="metadata_ttl_ms",
    ),
    text_option(
        "groupIdPrefix",
        "a text",
        "Has no effect: no consumer group is joined. Accepted for compatibility with the JVM "
        "connector.",
    ),
    METADATA_PATH,
    METADATA_STORAGE_OPTIONS,
    COMMIT_OFFSETS_TO_GROUP,
    *INCLUDED.values(),
    PUSH_FILTERS,
)
