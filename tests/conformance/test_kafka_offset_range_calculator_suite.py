"""KafkaOffsetRangeCalculatorSuite: how ranges are cut into tasks."""

import random

import pytest

from pyspark_kafka.domain.reading.ranges import OffsetRange, TaskLimits, split_ranges

from ..unit.domain.reading.test_ranges import CASES, of, read_cuts
from .jvm_connector import JvmConnector
from .peer import PEER_TESTS, Held, peer

SUITE = "KafkaOffsetRangeCalculatorSuite"


def theirs(
    jvm: JvmConnector,
    ranges: list[OffsetRange],
    min_partitions: int | None,
    max_records_per_partition: int | None,
) -> tuple[OffsetRange, ...]:
    options = {"minPartitions": min_partitions, "maxRecordsPerPartition": max_records_per_partition}
    given = {name: value for name, value in options.items() if value is not None}
    return tuple(jvm.split(ranges, **given))


def peer_name(case: str, min_partitions: int | None, max_records: int | None) -> str:
    """Return how the JVM connector names a case of ours."""
    limits = {
        "minPartitions" if max_records else "minPartition": min_partitions,
        "maxRecordsPerPartition": max_records,
    }
    given = " and ".join(f"{name} = {limit}" for name, limit in limits.items() if limit)
    return f"with {given or 'no minPartition'}: {case.partition(', ')[0]}"


PEERS = {peer_name(*case[:3]): case[1:] for case in CASES}


@pytest.mark.parametrize(
    ("min_partitions", "max_records", "bounds", "expected"),
    [
        pytest.param(*PEERS[name], id=name, marks=peer(SUITE, name, Held.BESIDE_JVM))
        for name in PEER_TESTS[SUITE]
        if name in PEERS
    ],
)
def test_ranges_are_cut_as_by_the_jvm_connector(jvm, min_partitions, max_records, bounds, expected):
    found = theirs(jvm, read_cuts(bounds), min_partitions, max_records)
    assert list(found) == read_cuts(expected)


def test_random_ranges_are_cut_as_by_the_jvm_connector(jvm):
    chance = random.Random(49259)  # noqa: S311  # no secret
    cut = 0
    for _case in range(150):
        ranges = [some(chance, number) for number in range(chance.randint(1, 5))]
        min_partitions = chance.choice((None, 1, 2, 6, 7, 20, 61))
        smallest = max(1, max(one.size for one in ranges) // 30)
        max_records = chance.choice((None, chance.randint(smallest, 40 * smallest)))
        ours = split_ranges(ranges, TaskLimits(min_partitions, None, max_records))
        assert ours == theirs(jvm, ranges, min_partitions, max_records)
        cut += len(ours) > len(ranges)
    assert cut > 50


def some(chance: random.Random, number: int) -> OffsetRange:
    start = chance.choice((0, chance.randrange(2**40)))
    # Of small sizes, exact halves are to be rounded.
    size = chance.choice((chance.randrange(9), int(10 ** chance.uniform(0, 9))))
    return of(number, start, start + size)
