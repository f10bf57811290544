"""KafkaOffsetRangeCalculatorSuite: how ranges are cut into tasks."""

import random
from itertools import pairwise

from pyspark_kafka.domain.reading.ranges import OffsetRange, TaskLimits, split_ranges
from pyspark_kafka.domain.topic_partition import TopicPartition

from .jvm_connector import JvmConnector
from .peer import Held, peer

SUITE = "KafkaOffsetRangeCalculatorSuite"

T1, T2, T3 = (TopicPartition(f"t{number}", 1) for number in (1, 2, 3))


def assert_split(
    jvm: JvmConnector,
    ranges: tuple[OffsetRange, ...],
    expected: tuple[OffsetRange, ...],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> None:
    assert expected
    limits = TaskLimits(min_partitions, None, max_records_per_partition)
    assert split_ranges(ranges, limits) == expected
    assert theirs(jvm, ranges, min_partitions, max_records_per_partition) == expected


def theirs(
    jvm: JvmConnector,
    ranges: tuple[OffsetRange, ...],
    min_partitions: int | None,
    max_records_per_partition: int | None,
) -> tuple[OffsetRange, ...]:
    options = {
        "minPartitions": min_partitions,
        "maxRecordsPerPartition": max_records_per_partition,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return tuple(jvm.split(ranges, **given))


def cuts(partition: TopicPartition, *offsets: int) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(partition, start, end) for start, end in pairwise(offsets))


@peer(SUITE, "with no minPartition: N TopicPartitions to N offset ranges", Held.BESIDE_JVM)
def test_with_no_min_partition_n_topic_partitions_to_n_offset_ranges(jvm):
    ranges = cuts(T1, 1, 2) + cuts(T2, 1, 2) + cuts(T3, 1, 2)
    assert_split(jvm, cuts(T1, 1, 2), cuts(T1, 1, 2))
    assert_split(jvm, ranges, ranges)


@peer(SUITE, "with no minPartition: empty ranges ignored", Held.BESIDE_JVM)
def test_with_no_min_partition_empty_ranges_ignored(jvm):
    ranges = cuts(T1, 1, 2) + cuts(T2, 1, 1) + cuts(T3, 1, 2)
    assert_split(jvm, ranges, cuts(T1, 1, 2) + cuts(T3, 1, 2))


@peer(SUITE, "with minPartition = 3: N TopicPartitions to N offset ranges", Held.BESIDE_JVM)
def test_with_min_partition_3_n_topic_partitions_to_n_offset_ranges(jvm):
    ranges = cuts(T1, 1, 2) + cuts(T2, 1, 2) + cuts(T3, 1, 2)
    assert_split(jvm, ranges, ranges, 3)


@peer(SUITE, "with minPartition = 4: 1 TopicPartition to N offset ranges", Held.BESIDE_JVM)
def test_with_min_partition_4_1_topic_partition_to_n_offset_ranges(jvm):
    assert_split(jvm, cuts(T1, 1, 5), cuts(T1, 1, 2, 3, 4, 5), 4)


@peer(SUITE, "with minPartition = 4: N skewed TopicPartitions to M offset ranges", Held.BESIDE_JVM)
def test_with_min_partition_4_n_skewed_topic_partitions_to_m_offset_ranges(jvm):
    ranges = cuts(T1, 1, 5) + cuts(T2, 1, 21)
    assert_split(jvm, ranges, cuts(T1, 1, 5) + cuts(T2, 1, 7, 14, 21), 4)


@peer(
    SUITE,
    "with minPartition = 4: SPARK-30656: ignore empty ranges and split the rest",
    Held.BESIDE_JVM,
)
def test_with_min_partition_4_spark_30656_ignore_empty_ranges_and_split_the_rest(jvm):
    ranges = cuts(T1, 1, 1) + cuts(T2, 1, 21)
    assert_split(jvm, ranges, cuts(T2, 1, 6, 11, 16, 21), 4)


@peer(
    SUITE,
    "with minPartition = 4: SPARK-30656: N very skewed TopicPartitions to M offset ranges",
    Held.BESIDE_JVM,
)
def test_with_min_partition_4_spark_30656_n_very_skewed_topic_partitions(jvm):
    ranges = cuts(T1, 1, 2) + cuts(T2, 1, 1001)
    assert_split(jvm, ranges, cuts(T1, 1, 2) + cuts(T2, 1, 334, 667, 1001), 4)


@peer(
    SUITE,
    "with minPartition = 1: SPARK-30656: minPartitions less than the length of topic partitions",
    Held.BESIDE_JVM,
)
def test_with_min_partition_1_spark_30656_less_than_the_topic_partitions(jvm):
    ranges = cuts(T1, 1, 5) + cuts(T2, 1, 21)
    assert_split(jvm, ranges, ranges, 1)


@peer(SUITE, "with minPartition = 3: range inexact multiple of minPartitions", Held.BESIDE_JVM)
def test_with_min_partition_3_range_inexact_multiple_of_min_partitions(jvm):
    assert_split(jvm, cuts(T1, 1, 11), cuts(T1, 1, 4, 7, 11), 3)


@peer(SUITE, "with minPartition = 4: empty ranges ignored", Held.BESIDE_JVM)
def test_with_min_partition_4_empty_ranges_ignored(jvm):
    ranges = cuts(T1, 1, 2) + cuts(T2, 1, 1) + cuts(T3, 1, 4)
    assert_split(jvm, ranges, cuts(T1, 1, 2) + cuts(T3, 1, 2, 3, 4), 4)
    ranges = cuts(T1, 1, 5) + cuts(T2, 1, 21) + cuts(T3, 1, 1)
    assert_split(jvm, ranges, cuts(T1, 1, 5) + cuts(T2, 1, 7, 14, 21), 4)


@peer(SUITE, "with minPartition = 6: SPARK-28489: never drop offsets", Held.BESIDE_JVM)
def test_with_min_partition_6_spark_28489_never_drop_offsets(jvm):
    ranges = cuts(T1, 0, 10) + cuts(T2, 0, 10) + cuts(T3, 0, 1)
    expected = cuts(T1, 0, 3, 6, 10) + cuts(T2, 0, 3, 6, 10) + cuts(T3, 0, 1)
    assert_split(jvm, ranges, expected, 6)


@peer(
    SUITE,
    "with minPartition = 9: SPARK-36576: 0 small unsplit ranges and 3 large split ranges",
    Held.BESIDE_JVM,
)
def test_with_min_partition_9_spark_36576_0_small_and_3_large_ranges(jvm):
    ranges = cuts(T1, 0, 10_000) + cuts(T2, 0, 15_000) + cuts(T3, 0, 20_000)
    assert_split(
        jvm,
        ranges,
        cuts(T1, *range(0, 10_001, 5_000))
        + cuts(T2, *range(0, 15_001, 5_000))
        + cuts(T3, *range(0, 20_001, 5_000)),
        9,
    )


@peer(
    SUITE,
    "with minPartition = 6: SPARK-36576: 1 small unsplit range and 2 large split ranges",
    Held.BESIDE_JVM,
)
def test_with_min_partition_6_spark_36576_1_small_and_2_large_ranges(jvm):
    ranges = cuts(T1, 0, 500) + cuts(T2, 0, 12_000) + cuts(T3, 0, 15_001)
    assert_split(
        jvm,
        ranges,
        cuts(T1, 0, 500) + cuts(T2, 0, 6_000, 12_000) + cuts(T3, 0, 5_000, 10_000, 15_001),
        6,
    )


@peer(
    SUITE,
    "with minPartition = 6: SPARK-36576: 2 small unsplit ranges and 1 large split range",
    Held.BESIDE_JVM,
)
def test_with_min_partition_6_spark_36576_2_small_and_1_large_range(jvm):
    ranges = cuts(T1, 0, 1) + cuts(T2, 0, 1) + cuts(T3, 0, 10_000)
    assert_split(
        jvm, ranges, cuts(T1, 0, 1) + cuts(T2, 0, 1) + cuts(T3, 0, 2_500, 5_000, 7_500, 10_000), 6
    )


@peer(
    SUITE,
    "with maxRecordsPerPartition = 4: SPARK-49259: 1 TopicPartition to N offset ranges",
    Held.BESIDE_JVM,
)
def test_with_max_records_per_partition_4_spark_49259_1_topic_partition(jvm):
    assert_split(jvm, cuts(T1, 1, 6), cuts(T1, 1, 3, 6), None, 4)


@peer(
    SUITE,
    "with maxRecordsPerPartition = 20: SPARK-49259: N TopicPartition to N offset ranges",
    Held.BESIDE_JVM,
)
def test_with_max_records_per_partition_20_spark_49259_n_topic_partitions(jvm):
    ranges = cuts(T1, 1, 40) + cuts(T2, 1, 50) + cuts(T3, 1, 60)
    expected = cuts(T1, 1, 20, 40) + cuts(T2, 1, 17, 33, 50) + cuts(T3, 1, 20, 40, 60)
    assert_split(jvm, ranges, expected, None, 20)


@peer(
    SUITE,
    "with minPartitions = 1 and maxRecordsPerPartition = 20: SPARK-49259: 1 TopicPartition with "
    "low minPartitions value",
    Held.BESIDE_JVM,
)
def test_with_max_records_20_spark_49259_low_min_partitions_value(jvm):
    assert_split(jvm, cuts(T1, 1, 40), cuts(T1, 1, 20, 40), 1, 20)


@peer(
    SUITE,
    "with minPartitions = 4 and maxRecordsPerPartition = 20: SPARK-49259: 1 TopicPartition with "
    "high minPartitions value",
    Held.BESIDE_JVM,
)
def test_with_max_records_20_spark_49259_high_min_partitions_value(jvm):
    assert_split(jvm, cuts(T1, 1, 40), cuts(T1, 1, 10, 20, 30, 40), 4, 20)


def test_random_ranges_are_cut_as_by_the_jvm_connector(jvm):
    chance = random.Random(49259)  # noqa: S311  # no secret
    cut = 0
    for _case in range(150):
        ranges = tuple(
            one for number in range(chance.randint(1, 5)) for one in some(chance, number)
        )
        min_partitions = chance.choice((None, 1, 2, 6, 7, 20, 61))
        smallest = max(1, max(one.size for one in ranges) // 30)
        max_records = chance.choice((None, chance.randint(smallest, 40 * smallest)))
        ours = split_ranges(ranges, TaskLimits(min_partitions, None, max_records))
        assert ours == theirs(jvm, ranges, min_partitions, max_records)
        cut += len(ours) > len(ranges)
    assert cut > 50


def some(chance: random.Random, number: int) -> tuple[OffsetRange, ...]:
    start = chance.choice((0, chance.randrange(2**40)))
    # Of small sizes, exact halves are to be rounded.
    size = chance.choice((chance.randrange(9), int(10 ** chance.uniform(0, 9))))
    return cuts(TopicPartition("t", number), start, start + size)
