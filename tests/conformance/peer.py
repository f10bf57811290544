"""The tests of the JVM connector's own suites, by name, and their counterparts here.

A test marks each of its counterparts, whose assertions it makes as well, with
``@peer("Suite", "the name of the test there", Held.SPARK)``. Tests without a counterpart are in
``NOT_APPLICABLE`` or ``MISSING`` with the reason. ``report.py`` makes a page of them.
"""

import enum
from collections.abc import Mapping
from typing import Final

import pytest


class Held(enum.Enum):
    """How a test holds this library to a test of the JVM connector, the strongest way first."""

    BESIDE_JVM = "beside the JVM connector"
    SPARK = "through Spark"
    LIBRARY = "without Spark"
    EMBEDDED = "embedding only"


def peer(suite: str, name: str, held: Held) -> pytest.MarkDecorator:
    """Mark a test as the counterpart of one of the JVM connector's."""
    return pytest.mark.peer(suite, name, held)


PEER_TESTS: Final[dict[str, tuple[str, ...]]] = {
    "KafkaMicroBatchSourceSuiteBase": (
        "async progress tracking",
        "Trigger.AvailableNow",
        (
            "Query with Trigger.AvailableNow should throw error when topic partitions got "
            "unavailable during subsequent batches"
        ),
        (
            "Query with Trigger.AvailableNow should throw error when offset(s) in planned topic "
            "partitions got unavailable during subsequent batches"
        ),
        "(de)serialization of initial offsets",
        (
            "SPARK-26718 Rate limit set to Long.Max should not overflow integer during end offset "
            "calculation"
        ),
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "compositeReadLimit",
        "input row metrics",
        "subscribing topic by pattern with topic deletions",
        "SPARK-41375: empty partitions should not record to latest offset",
        "subscribe topic by pattern with topic recreation between batches",
        "topic-level offsets tolerate a new topic matching subscribePattern after the start",
        "ensure that initial offset are written with an extra byte in the beginning (SPARK-19517)",
        "deserialization of initial offset written by Spark 2.1.0 (SPARK-19517)",
        "deserialization of initial offset written by future version",
        "KafkaSource with watermark",
        "delete a topic when a Spark job is running",
        "SPARK-22956: currentPartitionOffsets should be set when no new data comes in",
        "allow group.id prefix",
        "allow group.id override",
        "ensure stream-stream self-join generates only one offset in log and correct metrics",
        "read Kafka transactional messages: read_committed",
        "read Kafka transactional messages: read_uncommitted",
        "SPARK-25495: FetchedData.reset should reset all fields",
        "SPARK-27494: read kafka record containing null key/values.",
        "SPARK-30656: minPartitions",
        "SPARK-56243: malformed record timestamp throws detailed error",
    ),
    "KafkaMicroBatchV1SourceSuite": ("V1 Source is used when disabled through SQLConf",),
    "KafkaMicroBatchV2SourceSuite": (
        "V2 Source is used by default",
        "minPartitions is supported",
        "default config of includeHeader doesn't break existing query from Spark 2.4",
        "test custom metrics - with rate limit",
        "test custom metrics - no rate limit",
        "test custom metrics - corner cases",
        "SPARK-57438: metrics should not NPE when latestPartitionOffsets is null",
    ),
    "KafkaSourceSuiteBase": (
        "cannot stop Kafka stream",
        "assign from latest offsets (failOnDataLoss: true)",
        "assign from latest offsets (failOnDataLoss: false)",
        "assign from earliest offsets (failOnDataLoss: true)",
        "assign from earliest offsets (failOnDataLoss: false)",
        "assign from specific offsets (failOnDataLoss: true)",
        "assign from specific offsets (failOnDataLoss: false)",
        "assign from specific timestamps (failOnDataLoss: true)",
        "assign from specific timestamps (failOnDataLoss: false)",
        "assign from global timestamp per topic (failOnDataLoss: true)",
        "assign from global timestamp per topic (failOnDataLoss: false)",
        "subscribing topic by name from latest offsets (failOnDataLoss: true)",
        "subscribing topic by name from latest offsets (failOnDataLoss: false)",
        "subscribing topic by name from earliest offsets (failOnDataLoss: true)",
        "subscribing topic by name from earliest offsets (failOnDataLoss: false)",
        "subscribing topic by name from specific offsets (failOnDataLoss: true)",
        "subscribing topic by name from specific offsets (failOnDataLoss: false)",
        "subscribing topic by name from specific timestamps (failOnDataLoss: true)",
        "subscribing topic by name from specific timestamps (failOnDataLoss: false)",
        "subscribing topic by name from global timestamp per topic (failOnDataLoss: true)",
        "subscribing topic by name from global timestamp per topic (failOnDataLoss: false)",
        "subscribing topic by pattern from latest offsets (failOnDataLoss: true)",
        "subscribing topic by pattern from latest offsets (failOnDataLoss: false)",
        "subscribing topic by pattern from earliest offsets (failOnDataLoss: true)",
        "subscribing topic by pattern from earliest offsets (failOnDataLoss: false)",
        "subscribing topic by pattern from specific offsets (failOnDataLoss: true)",
        "subscribing topic by pattern from specific offsets (failOnDataLoss: false)",
        "subscribing topic by pattern from specific timestamps (failOnDataLoss: true)",
        "subscribing topic by pattern from specific timestamps (failOnDataLoss: false)",
        "subscribing topic by pattern from global timestamp per topic (failOnDataLoss: true)",
        "subscribing topic by pattern from global timestamp per topic (failOnDataLoss: false)",
        "subscribing topics from topic-level offsets",
        "subscribing topic by name from specific timestamps with non-matching starting offset",
        (
            "subscribing topic by name from global timestamp per topic with non-matching "
            "starting offset"
        ),
        "subscribing topic by pattern from specific timestamps with non-matching starting offset",
        (
            "subscribing topic by pattern from global timestamp per topic with non-matching "
            "starting offset"
        ),
        "SPARK-53560: no crash looping during uncommitted batch retry in AvailableNow trigger",
        "bad source options",
        "unsupported kafka configs",
        "get offsets from case insensitive parameters",
        "Kafka column types",
    ),
    "KafkaSourceStressSuite": ("stress test with multiple topics and partitions",),
    "KafkaContinuousSourceSuite": (
        "read Kafka transactional messages: read_committed",
        "read Kafka transactional messages: read_uncommitted",
        "SPARK-27494: read kafka record containing null key/values.",
    ),
    "KafkaContinuousSourceTopicDeletionSuite": (
        "subscribing topic by pattern with topic deletions",
    ),
    "KafkaContinuousSourceStressForDontFailOnDataLossSuite": (
        "stress test for failOnDataLoss=false",
    ),
    "KafkaRelationSuiteBase": (
        "explicit earliest to latest offsets",
        "default starting and ending offsets",
        "explicit offsets",
        "default starting and ending offsets with headers",
        "timestamp provided for starting and ending",
        "timestamp provided for starting, offset provided for ending",
        "timestamp provided for ending, offset provided for starting",
        "timestamp provided for starting, ending not provided",
        "timestamp provided for ending, starting not provided",
        "global timestamp provided for starting and ending",
        "no matched offset for timestamp - startingOffsets",
        "preferences on offset related options",
        "no matched offset for timestamp - endingOffsets",
        "reuse same dataframe in query",
        "test late binding start offsets",
        "bad batch query options",
        "read Kafka transactional messages: read_committed",
        "read Kafka transactional messages: read_uncommitted",
        "SPARK-30656: minPartitions",
        "topic-partition for start offset and end offset must match",
        "unresolved start offset greater than end offset",
        "resolved start offset greater than end offset (without latest)",
    ),
    "KafkaRelationSuiteV1": (
        "V1 Source is used when set through SQLConf",
        "resolved start offset greater than end offset (with latest)",
    ),
    "KafkaRelationSuiteV2": ("V2 Source is used when set through SQLConf",),
    "KafkaDontFailOnDataLossSuite": (
        "failOnDataLoss=false should not return duplicated records: microbatch v1",
        "failOnDataLoss=false should not return duplicated records: microbatch v2",
        "failOnDataLoss=false should not return duplicated records: continuous processing",
        "failOnDataLoss=false should not return duplicated records: batch v1",
        "failOnDataLoss=false should not return duplicated records: batch v2",
    ),
    "KafkaSourceStressForDontFailOnDataLossSuite": ("stress test for failOnDataLoss=false",),
    "KafkaSinkStreamingSuiteBase": (
        "streaming - write to kafka with topic field",
        "streaming - write w/o topic field, with topic option",
        "streaming - topic field and topic option",
        "streaming - write data with bad schema",
        "streaming - write data with valid schema but wrong types",
        "streaming - write to non-existing topic",
        "streaming - exception on config serializer",
    ),
    "KafkaSinkMicroBatchStreamingSuite": ("streaming - sink progress is produced",),
    "KafkaContinuousSinkSuite": ("generic - write big data with small producer buffer",),
    "KafkaSinkBatchSuiteBase": (
        "batch - write to kafka",
        "batch - partition column and partitioner priorities",
        "batch - null topic field value, and no topic option",
        "SPARK-20496: batch - enforce analyzed plans",
    ),
    "KafkaSinkBatchSuiteV1": ("batch - unsupported save modes",),
    "KafkaSinkBatchSuiteV2": (
        "batch - unsupported save modes",
        "generic - write big data with small producer buffer",
    ),
    "KafkaOffsetReaderSuite": (
        "isolationLevel must give back default isolation level when not set",
        "isolationLevel must give back READ_UNCOMMITTED when set",
        "isolationLevel must give back READ_COMMITTED when set",
        "isolationLevel must throw exception when invalid isolation level set",
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using specific offsets "
            "with useDeprecatedOffsetFetching true"
        ),
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using specific offsets "
            "with useDeprecatedOffsetFetching false"
        ),
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using special offsets "
            "with useDeprecatedOffsetFetching true"
        ),
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using special offsets "
            "with useDeprecatedOffsetFetching false"
        ),
        (
            "SPARK-48383: START_OFFSET_DOES_NOT_MATCH_ASSIGNED error class "
            "with useDeprecatedOffsetFetching true"
        ),
        (
            "SPARK-48383: START_OFFSET_DOES_NOT_MATCH_ASSIGNED error class "
            "with useDeprecatedOffsetFetching false"
        ),
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - multiple topic partitions "
            "with useDeprecatedOffsetFetching true"
        ),
        (
            "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - multiple topic partitions "
            "with useDeprecatedOffsetFetching false"
        ),
        "SPARK-30656: getOffsetRangesFromResolvedOffsets with useDeprecatedOffsetFetching true",
        "SPARK-30656: getOffsetRangesFromResolvedOffsets with useDeprecatedOffsetFetching false",
        (
            "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
            "specified: 2 with useDeprecatedOffsetFetching true"
        ),
        (
            "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
            "specified: 2 with useDeprecatedOffsetFetching false"
        ),
        (
            "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
            "specified: 4 with useDeprecatedOffsetFetching true"
        ),
        (
            "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
            "specified: 4 with useDeprecatedOffsetFetching false"
        ),
        "SPARK-55561: fetchPartitionOffsets retries on transient failures",
        "SPARK-55561: fetchPartitionOffsets throws after all retries exhausted",
    ),
    "KafkaOffsetRangeCalculatorSuite": (
        "with no minPartition: N TopicPartitions to N offset ranges",
        "with no minPartition: empty ranges ignored",
        "with minPartition = 3: N TopicPartitions to N offset ranges",
        "with minPartition = 3: N TopicPartitions to N offset ranges with executors",
        "with minPartition = 4: 1 TopicPartition to N offset ranges",
        "with minPartition = 4: N skewed TopicPartitions to M offset ranges",
        "with minPartition = 4: SPARK-30656: ignore empty ranges and split the rest",
        "with minPartition = 4: SPARK-30656: N very skewed TopicPartitions to M offset ranges",
        (
            "with minPartition = 1: SPARK-30656: minPartitions less than the length of topic "
            "partitions"
        ),
        "with minPartition = 3: range inexact multiple of minPartitions",
        "with minPartition = 4: empty ranges ignored",
        "with minPartition = 6: SPARK-28489: never drop offsets",
        "with minPartition = 9: SPARK-36576: 0 small unsplit ranges and 3 large split ranges",
        "with minPartition = 6: SPARK-36576: 1 small unsplit range and 2 large split ranges",
        "with minPartition = 6: SPARK-36576: 2 small unsplit ranges and 1 large split range",
        "with maxRecordsPerPartition = 4: SPARK-49259: 1 TopicPartition to N offset ranges",
        "with maxRecordsPerPartition = 20: SPARK-49259: N TopicPartition to N offset ranges",
        (
            "with minPartitions = 1 and maxRecordsPerPartition = 20: SPARK-49259: 1 TopicPartition "
            "with low minPartitions value"
        ),
        (
            "with minPartitions = 4 and maxRecordsPerPartition = 20: SPARK-49259: 1 TopicPartition "
            "with high minPartitions value"
        ),
    ),
    "KafkaSourceProviderSuite": (
        "batch mode - options should be handled as case-insensitive",
        "micro-batch mode - options should be handled as case-insensitive",
        "continuous mode - options should be handled as case-insensitive",
        "SPARK-49442: partition.metadata.cache.ttl.ms validation",
        "SPARK-59328: disallowed Kafka options are rejected on the source path",
        "SPARK-59328: disallowed Kafka options are rejected on the sink path",
        "SPARK-59328: the disallowed-options denylist is an operator boundary",
    ),
    "KafkaSourceOffsetSuite": (
        "comparison <one> <=> <two>",
        "basic serialization - deserialization",
        "OffsetSeqLog serialization - deserialization",
        "read Spark 2.1.0 offset format",
    ),
    "JsonUtilsSuite": (
        "parsing partitions",
        "parsing partitionOffsets",
        "parsing specificOffsets",
        "parsing specificOffsets with topic-level earliest/latest",
        "parsing specificOffsets mixing topic-level and partition-level values",
        "parsing specificOffsets rejects a topic given in both forms",
        "parsing specificOffsets rejects malformed json",
    ),
    "KafkaOffsetRangeLimitSuite": (
        "resolving topic-level offsets against the assigned partitions",
        "resolving fully enumerated offsets doesn't need the assigned partitions",
        "resolving a topic-level offset of a topic without assigned partitions fails",
    ),
    "KafkaExceptionsSuite": (
        "Custom SQL state takes precedence - KafkaIllegalStateException",
        "Custom SQL state takes precedence - KafkaIllegalArgumentException",
        "SQL state consistency across different Kafka exception types",
    ),
    "ConsumerStrategySuite": (
        "createAdmin must create admin properly",
        "AssignStrategy.assignedTopicPartitions must give back all assigned",
        "AssignStrategy.assignedTopicPartitions must skip invalid partitions",
        "SubscribeStrategy.assignedTopicPartitions must give back all assigned",
        "SubscribePatternStrategy.assignedTopicPartitions must give back all assigned",
    ),
    "KafkaSparkConfSuite": ("deprecated configs",),
    "KafkaDelegationTokenSuite": (
        "Roundtrip",
        "SPARK-28173: Roundtrip with proxy user",
        "SPARK-28173: Obtaining token for proxy user without CreateTokens permission fails",
    ),
    "KafkaDataConsumerSuite": (
        "SPARK-19886: Report error cause correctly in throwOnDataLoss",
        "new KafkaDataConsumer instance in case of Task retry",
        "same KafkaDataConsumer instance in case of same token",
        "new KafkaDataConsumer instance in case of token renewal",
        "SPARK-23623: concurrent use of KafkaDataConsumer",
        "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair",
        (
            "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair "
            "and same offset (edge-case) - data in use"
        ),
        (
            "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair "
            "and same offset (edge-case) - data not in use"
        ),
    ),
    "InternalKafkaConsumerPoolSuite": (
        "basic multiple borrows and returns for single key",
        "basic borrow and return for multiple keys",
        "borrow more than soft max capacity from pool which is neither free space nor idle object",
        "borrow more than soft max capacity from pool frees up idle objects automatically",
        "evicting idle objects on background",
    ),
    "FetchedDataPoolSuite": (
        "acquire fetched data from multiple keys",
        "continuous use of fetched data from single key",
        "multiple tasks referring same key continuously using fetched data",
        "evict idle fetched data",
        "invalidate key",
    ),
    "InternalKafkaProducerPoolSuite": (
        "Should return same cached instance on calling acquire with same params.",
        "Should return different cached instances on calling acquire with different params.",
        "expire instances",
        "reference counting with concurrent access",
    ),
    "KafkaRealTimeModeSuite": (
        "simple map",
        "simple map with empty batch",
        "add partition",
        "Real-Time Mode fetches latestOffset again at end of the batch",
        "maxoffsetspertrigger incompatible",
        "minoffsetspertrigger incompatible",
        "minpartitions incompatible",
        "endingtimestamp incompatible",
        "maxtriggerdelay incompatible",
        "union 2 dataframes after projection",
        "union 3 dataframes with and without maxPartitions",
        "self union workaround",
        "union 2 different sources - Kafka and LowLatencyMemoryStream",
        "self union - not allowed",
    ),
    "KafkaConsumerPoolRealTimeModeSuite": (
        "SPARK-54200: Kafka consumers in consumer pool should be properly reused",
    ),
    "KafkaRealTimeModeE2ESuite": ("Union two kafka streams, for each write to sink",),
    "KafkaRealTimeIntegrationSuite": ("e2e stateless",),
    "KafkaRealTimeModeAggregationSuite": (
        "tumbling window max",
        "tumbling window min",
        "tumbling window sum",
        "tumbling window avg",
    ),
    "KafkaRealTimeModeWindowSuite": ("tumbling window count", "sliding window count"),
    "KafkaRealTimeModeSourceEvolutionSuite": (
        "RTM named Kafka source uses name-keyed checkpoint paths and offsets",
        "RTM named Kafka sources in a union get separate name-keyed paths",
        "RTM rejects an unnamed Kafka source when enforcement is enabled",
        "RTM rejects duplicate Kafka source names",
        "RTM without source evolution keeps positional Kafka source paths",
    ),
}
"""Every suite of the JVM connector with the names of its own tests.

Five tests there have the name ``comparison <one> <=> <two>``; they differ in the offsets.
"""

_REAL_TIME: Final = (
    "Real-time mode is a trigger of Spark's engine that its Python data sources do not have. "
    "`pyspark_kafka.continuous` runs beside the engine."
)
_GROUP: Final = (
    "The JVM connector joins the group only with deprecated offset fetching, and its test asserts "
    "nothing without; here no group is joined, and `commitOffsetsToGroup` is what shows one."
)
_ONE_READER: Final = (
    "`spark.sql.streaming.disabledV2MicroBatchReaders` has no effect on Python data sources: Spark "
    "always drives them as V2, and `KafkaSource` here is for other drivers."
)
_SQL_STATE: Final = (
    "The tests give exceptions SQL states of their own. Spark gives every error of a Python data "
    "source the state 38000; ours have the states of their conditions."
)
_FETCHED_DATA: Final = (
    "Spark assigns no partition to a Python worker, so a task keeps no records for the next one: "
    "it fetches its own range, and what it has fetched ends with it."
)


def _whole(suites: tuple[str, ...], reason: str) -> dict[tuple[str, str], str]:
    return {(suite, name): reason for suite in suites for name in PEER_TESTS[suite]}


def _some(suite: str, reasons: Mapping[str, str]) -> dict[tuple[str, str], str]:
    return {(suite, name): reason for name, reason in reasons.items()}


NOT_APPLICABLE: Final[dict[tuple[str, str], str]] = {
    **_whole(tuple(suite for suite in PEER_TESTS if "RealTime" in suite), _REAL_TIME),
    **_whole(("KafkaMicroBatchV1SourceSuite",), _ONE_READER),
    **_whole(
        ("KafkaSparkConfSuite",),
        "The test reads the capacity of the consumer cache from a `SparkConf` by its old name. "
        "Spark passes its configuration to no Python data source.",
    ),
    **_whole(
        ("KafkaDelegationTokenSuite",),
        "The tests obtain delegation tokens with Spark's token manager. Spark keeps them in the "
        "JVM and passes them to no Python data source.",
    ),
    **_some(
        "KafkaMicroBatchSourceSuiteBase",
        {
            "allow group.id prefix": _GROUP,
            "allow group.id override": _GROUP,
        },
    ),
    **_some(
        "KafkaRelationSuiteV1",
        {
            "V1 Source is used when set through SQLConf": (
                "Spark has no V1 sources in Python; the setting has no effect on this source."
            ),
        },
    ),
    **_some(
        "KafkaOffsetRangeCalculatorSuite",
        {
            "with minPartition = 3: N TopicPartitions to N offset ranges with executors": (
                "A Python data source cannot choose the executor of a task."
            ),
        },
    ),
    **_whole(("KafkaExceptionsSuite",), _SQL_STATE),
    **_whole(("FetchedDataPoolSuite",), _FETCHED_DATA),
}
"""Why a Python data source cannot have what a test checks."""

MISSING: Final[dict[tuple[str, str], str]] = {}
"""What a Python data source can have, and this one does not."""
