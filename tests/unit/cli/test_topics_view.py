import io

import pytest

from pyspark_kafka.cli.output import print_whole
from pyspark_kafka.cli.topics_view import size, topic_list
from pyspark_kafka.domain.cluster.topics import (
    PartitionDescription,
    PartitionSummary,
    TopicDescription,
    TopicSummary,
)

LED = PartitionDescription(1, frozenset({1, 2}), frozenset({1, 2}), 2_500_000)
BEHIND = PartitionDescription(2, frozenset({1, 2}), frozenset({2}), 12)
LEADERLESS = PartitionDescription(None, frozenset({1}), frozenset())


def topic(name: str, *partitions: PartitionDescription, **config: str) -> TopicSummary:
    described = dict(enumerate(partitions))
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return TopicSummary(
        name,
        tuple(PartitionSummary(n, 5, 1_205, each) for n, each in described.items()),
        TopicDescription(described, settings or None),
    )


def drawn(topics: list[TopicSummary], *, by_partition: bool = False) -> list[str]:
    out = io.StringIO()
    print_whole(*topic_list(topics, by_partition=by_partition), out=out)
    return [line.strip() for line in out.getvalue().splitlines()]


def test_each_policy_has_its_words_and_replicas_that_are_behind_are_counted():
    lines = drawn(
        [
            topic("[red]", LED, BEHIND, cleanup_policy="delete", retention_ms="-1"),
            topic("b", LED, cleanup_policy="compact"),
            topic("c", LED, cleanup_policy="compact,delete", retention_ms="60000000"),
            topic("d", LEADERLESS),
            topic(
                "e",
                *(PartitionDescription(n, frozenset({n}), frozenset({n})) for n in range(8)),
            ),
        ]
    )
    rows = [[cell for cell in line.split("  ") if cell] for line in lines[3:8]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["[red]", "2", "2,400", "2.5 MB", "unlimited", "2 (1 behind)", "1,2"],
        ["b", "1", "1,200", "2.5 MB", "compact", "2", "1"],
        ["c", "1", "1,200", "2.5 MB", "17 h, compact", "2", "1"],
        ["d", "1", "1,200", "-", "-", "1 (1 behind)", "none"],
        ["e", "8", "9,600", "-", "-", "1", "0,1,2,3,4,5 + 2"],
    ]
    assert lines[-2:] == [
        "5 topics, 13 partitions",
        "2 partitions without a leader or with replicas behind",
    ]


def test_each_partition_has_a_row():
    lines = drawn([topic("a", BEHIND, LEADERLESS)], by_partition=True)
    assert lines[3].split() == ["a", "0", "5", "1,205", "1,200", "12", "B", "2", "1/2"]
    assert lines[4].split() == ["a", "1", "5", "1,205", "1,200", "-", "none", "0/1"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (12_345, "12 kB"),
        (7_700_000_000, "7.7 GB"),
        (2_000_000_000_000_000, "2,000 TB"),
    ],
)
def test_sizes_have_decimal_units(number, text):
    assert size(number) == text
