import io
import json

import pytest
from rich.console import Console

from pyspark_kafka.application.checkpoints.logs import CheckpointState
from pyspark_kafka.application.lag.monitor import LagSnapshot
from pyspark_kafka.cli.lag import lag_json
from pyspark_kafka.cli.lag_view import MAX_ROWS, LagView, duration
from pyspark_kafka.cli.output import print_whole
from pyspark_kafka.domain.checkpoints.checkpoint_log import CheckpointedBatch
from pyspark_kafka.domain.lag.lag import PartitionLag, SourceLag
from pyspark_kafka.domain.lag.trend import Direction, Trend
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

T = [TopicPartition("t", number) for number in range(40)]
NOW = 1_700_000_000_000


def batch(batch_id: int, **ends: int) -> CheckpointedBatch:
    offsets = PartitionOffsets({T[int(name[1:])]: offset for name, offset in ends.items()})
    return CheckpointedBatch(batch_id, NOW - 90_000, {"0": offsets})


def look(*partitions: PartitionLag, trend: Trend | None = None) -> LagSnapshot:
    state = CheckpointState(batch(41, t0=5, t1=7), batch(42, t0=1_005, t1=7))
    source = SourceLag.of(partitions)
    return LagSnapshot(state, {"0": source}, trend or Trend(Direction.UNKNOWN))


def view_of(shown: LagSnapshot, problem: str = "") -> LagView:
    return LagView(shown, "s3a://b/c", "h:9092", NOW, problem)


def drawn(shown: LagSnapshot, encoding: str = "utf-8") -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_whole(*view_of(shown).parts(Console(file=out).options), out=out)
    out.seek(0)
    return [line.rstrip() for line in out.read().splitlines()]


def on_a_screen(view: LagView, height: int = 30) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100, height=height).print(view)
    return [line.rstrip() for line in out.getvalue().splitlines()]


SOME = look(
    PartitionLag(T[0], 5, 1_239, lag=1_234),
    PartitionLag(T[1], 7, 8, lag=1, is_exact=True, expired=3),
    PartitionLag(T[2], 9_000_000, 9_040_000, lag=40_000),
)


def test_brackets_in_a_source():
    """The name of a source is printed as it is: brackets are no markup."""
    lag = SourceLag.of([PartitionLag(T[0], 5, 6, lag=1)])
    shown = LagSnapshot(SOME.state, {"[bold]a": lag, "[/b]": lag}, SOME.trend)
    text = "\n".join(drawn(shown))
    assert "[bold]a" in text
    assert "[/b]" in text


def test_a_screen():
    """The largest lag comes first, numbers have separators, and bounds differ from counts."""
    lines = drawn(SOME)
    assert lines[0] == "checkpoint  s3a://b/c"
    assert lines[1] == "kafka       h:9092"
    assert lines[2].startswith("committed   batch 41, started 2023-11-")
    assert lines[2].endswith(", 90 s ago")
    assert lines[3].endswith(", 90 s ago, 1,000 offsets")
    assert lines[4] == (
        "lag         ≤ 41,235 records  (by partition: min 1, avg 13,745.0, max 40,000)"
    )
    assert lines[5] == "trend       known after two commits"
    rows = [line.split() for line in lines[8:]]
    assert rows[1:4] == [
        ["t", "2", "9,000,000", "9,040,000", "≤", "40,000", "████████████"],
        ["t", "0", "5", "1,239", "≤", "1,234", "█"],
        ["t", "1", "7", "8", "1", "█", "3", "deleted", "unread"],
    ]
    assert ["total", "≤", "41,235"] in rows
    assert lines[-1] == "≤ an upper bound in offsets, which includes transaction markers"


def test_a_terminal_without_unicode_gets_ascii_symbols():
    text = "\n".join(drawn(SOME, encoding="ascii"))
    assert "<= 41,235 records" in text
    assert "############" in text


def test_hidden_partitions_are_counted():
    shown = look(*(PartitionLag(each, 0, each.partition, each.partition) for each in T))
    lines = on_a_screen(view_of(shown), height=24)
    assert len(lines) < 24
    assert [line.split()[1] for line in lines if line.startswith(" t ")] == [
        str(number) for number in range(39, 30, -1)
    ]
    [total] = [line for line in lines if "total" in line]
    assert total.split() == ["total", "(+", "31", "more)", "≤", "780"]
    assert len([line for line in drawn(shown) if line.startswith(" t ")]) == 40


def test_a_table_that_is_printed_once_is_bounded():
    """Thousands of partitions would hide the summary above them."""
    many = (TopicPartition("t", number) for number in range(10_000))
    lines = drawn(look(*(PartitionLag(each, 0, 9, 9) for each in many)))
    assert len([line for line in lines if line.startswith(" t ")]) == MAX_ROWS - 1
    assert any("(+ 9,801 more)" in line for line in lines)


def test_deleted_partitions_and_truncated_logs_are_named():
    lines = drawn(look(PartitionLag.in_offsets(T[0], 5, 2)))
    assert any("ends before the consumed offset" in line for line in lines)
    assert lines[-1] == "no longer in Kafka: t-1"


def test_a_failure_keeps_the_last_snapshot():
    lines = on_a_screen(view_of(SOME, problem="No broker answered."))
    assert lines[-1] == "No broker answered."
    assert any("41,235" in line for line in lines)


@pytest.mark.parametrize(
    ("trend", "text"),
    [
        (Trend(Direction.CAUGHT_UP, arrived=0.4), "caught up  (0/s arrive)"),
        (
            Trend(Direction.CATCHING_UP, 1_484.3, 962.0, seconds_left=7_300.0),
            "catching up, about 2 h left at this pace  (1,484/s read, 962/s arrive)",
        ),
        (Trend(Direction.FALLING_BEHIND, 1.0, 2.0), "falling behind  (1/s read, 2/s arrive)"),
        (Trend(Direction.WAITING, seconds_waited=75.0), "no batch was committed for 75 s"),
    ],
)
def test_a_trend_says_what_is_known_about_it(trend, text):
    shown = drawn(look(PartitionLag(T[0], 0, 5, lag=5), trend=trend))
    assert f"trend       {text}" in shown


def test_before_the_first_commit():
    lines = drawn(LagSnapshot(CheckpointState(None, batch(0, t0=1))))
    assert "committed   no batch yet" in lines
    assert any(line.startswith("in flight   batch 0, ") for line in lines)
    assert not any("lag" in line for line in lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (3 * 86_400, "3 days")],
)
def test_a_duration_has_the_largest_unit_that_makes_at_least_2(seconds, text):
    assert duration(seconds) == text


def test_the_json_has_everything_that_the_table_shows_with_times_in_utc():
    text = lag_json(SOME, "s3a://b/c", NOW)
    assert "\n" not in text
    answer = json.loads(text)
    assert answer["time"] == "2023-11-14T22:13:20.000Z"
    assert answer["inFlightBatch"] == {"id": 42, "begun": "2023-11-14T22:11:50.000Z"}
    assert answer["lag"] == {
        "total": 41_235,
        "min": 1,
        "max": 40_000,
        "avg": 13_745.0,
        "exact": False,
    }
    assert answer["trend"]["direction"] == "unknown"
    assert answer["partitions"][1] == {
        "source": "0",
        "topic": "t",
        "partition": 1,
        "consumed": 7,
        "latest": 8,
        "lag": 1,
        "exact": True,
        "expired": 3,
    }
    assert answer["gone"] == []
