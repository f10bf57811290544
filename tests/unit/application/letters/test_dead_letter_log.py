import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

from pyspark_kafka.application.letters.dead_letter_log import (
    DeadLetterLog,
    LetterFilter,
    LetterReplay,
    Letters,
    LetterSummary,
    ReplayStats,
)
from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.options.sink import dead_letter_sink
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.testing import MemoryWorld, Record
from pyspark_kafka.testing.dead_letters_contract import WHEN, bad
from pyspark_kafka.testing.writing_contract import MIXED_HEADERS

ALL: Final = LetterFilter()
ORDERS: Final = TopicPartition("orders", 1)


@pytest.fixture
def world():
    """Return a cluster with a dead-letter topic and two others."""
    world = MemoryWorld()
    for topic in ("letters", "orders", "payments"):
        world.create(topic, 3)
    return world


def write(world: MemoryWorld, *rows: dict[str, Any], reason: FailureReason) -> None:
    letters = world.container().dead_letters("letters")
    letters.write(bad(*({"partition": 1, **row} for row in rows), reasons=[reason] * len(rows)))
    letters.flush()


def log_of(world: MemoryWorld, topic: str = "letters") -> DeadLetterLog:
    container = world.container()
    return DeadLetterLog(container.offset_fetcher(), container.range_read, topic)


def read(world: MemoryWorld, wanted: LetterFilter = ALL) -> list[Letters]:
    log = log_of(world)
    return list(log.read(log.ranges(), wanted, with_records=True))


def offsets(found: Sequence[Letters]) -> list[int]:
    return sorted(letter.offset for each in found for _, letter, _ in each.letters)


def replay(
    world: MemoryWorld, wanted: LetterFilter = ALL, to: str | None = None, *, is_dry: bool = False
) -> ReplayStats:
    options = dead_letter_sink(world.options(), to)
    writer = None if is_dry else world.make_sink_container(options).record_writer()
    replaying = LetterReplay(writer, to)
    stats = ReplayStats()
    for each in read(world, wanted):
        stats += replaying.write(each)
    replaying.flush()
    return stats


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ALL, [1, 2, 3, 4]),
        (LetterFilter(topic="payments"), [4]),
        (LetterFilter(reasons=frozenset({"BAD_UTF8", "TOO_DEEP"})), [3, 4]),
        (LetterFilter(offsets=(2, 4)), [2, 3]),
        (LetterFilter(until_ms=round(WHEN.timestamp() * 1_000)), [1]),
        (LetterFilter(until_ms=round(WHEN.timestamp() * 1_000) + 1), [1, 2, 3, 4]),
        (LetterFilter("orders", frozenset({"BAD_UTF8"}), (0, 3)), []),
    ],
)
def test_letters_are_selected(world, wanted, expected):
    early = WHEN - dt.timedelta(seconds=1)
    write(world, {"offset": 1, "timestamp": early}, {"offset": 2}, reason=FailureReason.MALFORMED)
    write(world, {"offset": 3}, {"offset": 4, "topic": "payments"}, reason=FailureReason.BAD_UTF8)
    found = read(world, wanted)
    assert offsets(found) == expected
    assert sum(each.unwanted for each in found) == 4 - len(expected)


def test_the_summary_counts_each_record_once(world):
    """Retried tasks write letters again; other records in the topic are none."""
    for _ in range(3):
        write(world, {"offset": 7}, reason=FailureReason.MALFORMED)
    write(world, {"offset": 8}, {"offset": 9, "key": b"k"}, reason=FailureReason.BAD_UTF8)
    world.produce(TopicPartition("letters", 0), [Record(b"of another program")])
    summary = LetterSummary(limit=2)
    for found in read(world):
        summary.add(found)
    assert (summary.total, summary.letters, summary.others) == (3, 5, 1)
    assert summary.reasons == {"MALFORMED": 1, "BAD_UTF8": 2}
    assert len(summary.records) == 2


def test_records_are_remembered_by_numbers(world):
    """A topic may have millions of letters, and a tuple takes three times the memory."""
    write(world, *({"offset": offset} for offset in range(1_000)), reason=FailureReason.MALFORMED)
    places = [each.place(number) for each in read(world) for number in range(len(each.letters))]
    assert {type(place) for place in places} == {int}
    assert len(set(places)) == 1_000


def test_the_letters_of_a_listed_record_are_counted_beyond_the_limit(world):
    for _ in range(3):
        write(world, {"offset": 7}, reason=FailureReason.MALFORMED)
    summary = LetterSummary(limit=1)
    for found in read(world):
        summary.add(found)
    [count] = summary.records.values()
    assert (count.letter.origin, count.letter.offset, count.letters) == (ORDERS, 7, 3)


def test_records_of_a_topic_that_was_created_again_are_others(world):
    """They may have the places of older ones; a retried task writes the same record again."""
    later = WHEN + dt.timedelta(days=1)
    for _ in range(2):
        write(world, {"offset": 7, "value": b"old"}, reason=FailureReason.MALFORMED)
        write(
            world,
            {"offset": 7, "value": b"new", "timestamp": later},
            {"offset": 7, "value": b"newer", "timestamp": later},
            reason=FailureReason.MALFORMED,
        )
    assert replay(world) == ReplayStats(Counter(orders=3), 3)
    values = sorted(row["value"] for row in world.records(ORDERS))
    assert values == [b"new", b"newer", b"old"]
    summary, log = LetterSummary(limit=9), log_of(world)
    for found in log.read(log.ranges(), ALL):
        summary.add(found)
    assert (summary.total, summary.letters) == (2, 6), "without values, by their timestamps"


def test_a_letter_may_have_a_time_of_its_own():
    """With ``LogAppendTime`` each letter of a record has another timestamp."""
    world = MemoryWorld()
    world.create("letters", message__timestamp__type="LogAppendTime")
    world.create("orders", 3)
    for day in range(2):
        later = WHEN + dt.timedelta(days=day)
        write(world, {"offset": 7, "timestamp": later}, reason=FailureReason.MALFORMED)
    assert replay(world) == ReplayStats(Counter(orders=1), 1)


def test_a_replay_writes_what_was_there(world):
    write(
        world,
        {"key": b"k", "value": b"v", "headers": MIXED_HEADERS, "offset": 1},
        {"key": None, "value": b"", "offset": 2},
        {"key": b"", "value": None, "offset": 3},
        reason=FailureReason.MALFORMED,
    )
    assert replay(world) == ReplayStats(Counter(orders=3))
    found = {row["key"]: row for row in world.records(ORDERS)}
    assert found.keys() == {b"k", None, b""}
    assert (found[b"k"]["value"], found[b"k"]["headers"]) == (b"v", MIXED_HEADERS)
    assert (found[None]["value"], found[None]["headers"]) == (b"", None)
    assert found[b""]["value"] is None
    assert {row["timestamp"] for row in found.values()} == {WHEN}


def test_a_replay_writes_each_record_once(world):
    for _ in range(2):
        write(world, {"offset": 1}, {"offset": 2}, reason=FailureReason.MALFORMED)
    write(world, {"offset": 3}, reason=FailureReason.TOO_LARGE)
    world.produce(TopicPartition("letters", 0), [Record(b"of another program")])
    wanted = LetterFilter(reasons=frozenset({"MALFORMED"}))
    assert replay(world, wanted) == ReplayStats(Counter(orders=2), 2, 1, 1)
    assert len(world.records(ORDERS)) == 2


def test_a_replay_to_another_topic_lets_the_key_decide(world):
    """The topic may have fewer partitions than the records' own."""
    world.create("fixed", 1)
    write(world, {"offset": 1, "partition": 9}, reason=FailureReason.MALFORMED)
    assert replay(world, to="fixed") == ReplayStats(Counter(fixed=1))
    assert [row["value"] for row in world.records(TopicPartition("fixed", 0))] == [b"v"]


def test_a_dry_run_writes_nothing(world):
    write(world, {"offset": 1}, {"offset": 1}, reason=FailureReason.MALFORMED)
    assert replay(world, is_dry=True) == ReplayStats(Counter(orders=1), 1)
    assert world.records(ORDERS) == []


def test_a_group_begins_where_it_stopped(world):
    """Each group has its own place; letters that are written meanwhile are left for later."""
    write(world, {"offset": 1}, reason=FailureReason.MALFORMED)
    log = log_of(world)
    before = log.ranges(log.committed("g"))
    write(world, {"offset": 2}, reason=FailureReason.MALFORMED)
    assert offsets(list(log.read(before, ALL))) == [1]
    log.commit("g", before)
    assert offsets(list(log.read(log.ranges(log.committed("g")), ALL))) == [2]
    assert offsets(list(log.read(log.ranges(log.committed("other")), ALL))) == [1, 2]
    log.commit("g", log.ranges(log.committed("g")))
    assert log.ranges(log.committed("g")) == []
    log.commit("g", [])


def test_deleted_letters_are_not_read(world):
    write(world, {"offset": 1}, reason=FailureReason.MALFORMED)
    log = log_of(world)
    [written] = log.ranges()
    log.commit("g", [])
    world.delete_records(written.partition, written.until_offset)
    assert log.ranges() == log.ranges(log.committed("g")) == []


def test_the_topic_has_to_exist(world):
    with pytest.raises(UnknownTopicError, match="'ghost'"):
        log_of(world, "ghost").ranges()
