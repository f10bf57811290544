"""The JVM connector's classes in the test's Spark, called with this library's values.

Offsets travel as JSON, which both sides write into checkpoints, and ranges as text.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark.java_gateway import ensure_callback_server_started

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

_RANGE: Final = re.compile(r"KafkaOffsetRange\((\S+?)-(\d+),(-?\d+),(-?\d+),None\)")
"""The text of a range without a preferred location."""


class JvmOffsetReader:
    """One of the JVM connector's two ``KafkaOffsetReader``."""

    def __init__(self, jvm: JvmConnector, reader: Any) -> None:
        self._jvm = jvm
        self._reader = reader

    def isolation_level(self) -> str:
        return str(self._reader.isolationLevel())

    def unresolved_ranges(self, start: Any, end: Any) -> list[OffsetRange]:
        """Return ``getOffsetRangesFromUnresolvedOffsets``; open ends are -2 and -1."""
        return _ranges(self._reader.getOffsetRangesFromUnresolvedOffsets(start, end))

    def resolved_ranges(self, start: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
        """Return ``getOffsetRangesFromResolvedOffsets``, which must not find a loss of data."""
        offsets = map(self._jvm.offset_map, (start, end))
        # There is no function to report a loss to: one would be a failure.
        return _ranges(self._reader.getOffsetRangesFromResolvedOffsets(*offsets, None))

    def partition_offsets(self, limit: Any) -> PartitionOffsets:
        return self._jvm.offsets_of(self._reader.fetchPartitionOffsets(limit, True))

    def latest(self) -> PartitionOffsets:
        return self._jvm.offsets_of(self._reader.fetchLatestOffsets(self._jvm.nothing()))


class UnsteadyStrategy:
    """A ``ConsumerStrategy`` that counts how often it is asked, and at first fails."""

    def __init__(self, strategy: Any, failures: int) -> None:
        self._strategy = strategy
        self._failures = failures
        self.calls = 0

    def createAdmin(self, params: Any) -> Any:  # noqa: N802  # the interface's name
        return self._strategy.createAdmin(params)

    def assignedTopicPartitions(self, admin: Any) -> Any:  # noqa: N802  # the interface's name
        self.calls += 1
        if self.calls <= self._failures:
            raise ConnectionError("the leader is not available")
        return self._strategy.assignedTopicPartitions(admin)

    class Java:
        """The nested class that Py4J looks for."""

        implements: ClassVar = ["org.apache.spark.sql.kafka010.ConsumerStrategy"]


class JvmConnector:
    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._connector = jvm.org.apache.spark.sql.kafka010
        self._collections = jvm.scala.jdk.javaapi.CollectionConverters
        self._session = spark._jsparkSession
        self._gateway = spark.sparkContext._gateway

    def split(self, ranges: Iterable[OffsetRange], **options: object) -> list[OffsetRange]:
        given = self._java_map({name: str(value) for name, value in options.items()})
        calculator = self._connector.KafkaOffsetRangeCalculator.apply(
            self._jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(given)
        )
        return _ranges(calculator.getRanges(self._seq(map(self._range, ranges)), self._seq(())))

    def partitions(self, text: str) -> list[TopicPartition]:
        return [_partition(one) for one in self._connector.JsonUtils.partitions(text)]

    def partition_offsets(self, text: str) -> PartitionOffsets:
        return self.offsets_of(self._connector.JsonUtils.partitionOffsets(text))

    def rewritten(self, text: str) -> str:
        json_utils = self._connector.JsonUtils
        return str(json_utils.partitionOffsets(json_utils.partitionOffsets(text)))

    def source_offset(self, offsets: PartitionOffsets) -> Any:
        return self._connector.KafkaSourceOffset.apply(self.offset_map(offsets))

    def deserialized(self, text: str) -> Any:
        runtime = self._jvm.org.apache.spark.sql.execution.streaming.runtime
        return self._connector.KafkaSourceOffset.apply(runtime.SerializedOffset(text))

    def offset_log(self, directory: str) -> Any:
        checkpointing = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        return checkpointing.OffsetSeqLog(self._session, directory, True)

    def assigned(self, strategy: Any, addresses: Mapping[str, str]) -> frozenset[TopicPartition]:
        admin = strategy.createAdmin(self._driver_params(addresses))
        try:
            found = self._collections.asJava(strategy.assignedTopicPartitions(admin))
            return frozenset(map(_partition, found))
        finally:
            admin.close()

    def assign(self, partitions: Iterable[TopicPartition]) -> Any:
        found = [self._partition(one) for one in partitions]
        kind = self._jvm.org.apache.kafka.common.TopicPartition
        array = self._jvm.java.lang.reflect.Array.newInstance(kind._java_lang_class, len(found))
        for number, one in enumerate(found):
            array[number] = one
        return self._connector.AssignStrategy(array)

    def subscribe(self, *topics: str) -> Any:
        return self._connector.SubscribeStrategy(self._seq(topics))

    def subscribe_pattern(self, pattern: str) -> Any:
        return self._connector.SubscribePatternStrategy(pattern)

    def unsteady(self, strategy: Any, failures: int = 0) -> UnsteadyStrategy:
        ensure_callback_server_started(self._gateway)
        return UnsteadyStrategy(strategy, failures)

    @contextmanager
    def offset_reader(
        self,
        strategy: Any,
        addresses: Mapping[str, str],
        *,
        deprecated: bool = False,
        **options: str,
    ) -> Iterator[JvmOffsetReader]:
        """Yield the reader that ``useDeprecatedOffsetFetching`` chooses, and close it."""
        chosen = "KafkaOffsetReaderConsumer" if deprecated else "KafkaOffsetReaderAdmin"
        reader = getattr(self._connector, chosen)(
            strategy, self._driver_params(addresses), self._case_insensitive(options), "group"
        )
        try:
            yield JvmOffsetReader(self, reader)
        finally:
            reader.close()

    def earliest(self) -> Any:
        return self._module(self._connector, "EarliestOffsetRangeLimit")

    def latest(self) -> Any:
        return self._module(self._connector, "LatestOffsetRangeLimit")

    def starting_offsets(self, text: str) -> PartitionOffsets:
        """Parse the option ``startingOffsets`` of specific offsets, as a query does."""
        provider = self._module(self._connector, "KafkaSourceProvider")
        limit = provider.getKafkaOffsetRangeLimit(
            self._case_insensitive({"startingOffsets": text}),
            "startingTimestamp",
            "startingOffsetsByTimestamp",
            "startingOffsets",
            self.latest(),
        )
        return self.offsets_of(limit.partitionOffsets())

    def specific(self, offsets: PartitionOffsets) -> Any:
        return self._connector.SpecificOffsetRangeLimit(self.offset_map(offsets))

    def by_timestamp(self, timestamps: PartitionOffsets) -> Any:
        """Return the limit of a timestamp for each partition, without which a query fails."""
        strategies = self._module(
            self._connector, "KafkaSourceProvider$StrategyOnNoMatchStartingOffset"
        )
        return self._connector.SpecificTimestampRangeLimit(
            self.offset_map(timestamps), strategies.ERROR()
        )

    def nothing(self) -> Any:
        return self._jvm.scala.Option.empty()

    def offset_map(self, offsets: PartitionOffsets) -> Any:
        return self._connector.JsonUtils.partitionOffsets(offsets.to_json())

    def offsets_of(self, scala_map: Any) -> PartitionOffsets:
        found = self._collections.asJava(scala_map)
        return PartitionOffsets((_partition(key), found[key]) for key in found)

    def _driver_params(self, addresses: Mapping[str, str]) -> Any:
        provider = self._module(self._connector, "KafkaSourceProvider")
        given = {name.removeprefix("kafka."): value for name, value in addresses.items()}
        return provider.kafkaParamsForDriver(self._immutable(given))

    def _range(self, one: OffsetRange) -> Any:
        return self._connector.KafkaOffsetRange(
            self._partition(one.partition), one.from_offset, one.until_offset, self.nothing()
        )

    def _partition(self, one: TopicPartition) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(one.topic, one.partition)

    def _seq(self, values: Iterable[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return self._collections.asScala(found).toSeq()

    def _immutable(self, entries: Mapping[Any, Any]) -> Any:
        scala_map = self._module(self._jvm.scala.collection.immutable, "Map")
        return getattr(scala_map, "from")(self._collections.asScala(self._java_map(entries)))

    def _case_insensitive(self, options: Mapping[str, str]) -> Any:
        scala_map = self._module(self._jvm.org.apache.spark.sql.catalyst.util, "CaseInsensitiveMap")
        return scala_map.apply(self._immutable(options))

    def _java_map(self, entries: Mapping[Any, Any]) -> Any:
        found = self._jvm.java.util.HashMap()
        for name, value in entries.items():
            found.put(name, value)
        return found

    @staticmethod
    def _module(package: Any, name: str) -> Any:
        return getattr(getattr(package, f"{name}$"), "MODULE$")


def _ranges(scala_seq: Any) -> list[OffsetRange]:
    text = str(scala_seq.toString())
    found = [
        OffsetRange(TopicPartition(topic, int(partition)), int(start), int(end))
        for topic, partition, start, end in _RANGE.findall(text)
    ]
    assert len(found) == scala_seq.size(), f"not all are ranges without a location: {text}"
    return found


def _partition(one: Any) -> TopicPartition:
    return TopicPartition(one.topic(), one.partition())
