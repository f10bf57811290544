import weakref

import pytest

from pyspark_kafka.domain.lag.lag import SourceLag
from pyspark_kafka.domain.lag.trend import MAX_SAMPLES, Direction, LagSample, LagTrend, Trend

from ...application.conftest import tp

Sample = tuple[float, int, int, int]


def sample(seconds: float, batch_id: int, consumed: int, latest: int) -> LagSample:
    lag = SourceLag.in_offsets({tp(0): consumed}, {tp(0): latest})
    return LagSample(round(seconds * 1_000), batch_id, {"0": lag})


def trend(*samples: Sample) -> Trend:
    """Return the trend after samples of seconds, a batch, and consumed and latest offsets."""
    kept = LagTrend()
    trends = [kept.add(sample(*each)) for each in samples]
    return trends[-1]


def test_nothing_left_is_caught_up():
    assert trend((0, 1, 10, 10)) == Trend(Direction.CAUGHT_UP)
    assert trend((0, 1, 10, 10), (2, 2, 30, 30)) == Trend(Direction.CAUGHT_UP, arrived=10.0)


def test_one_look_tells_no_trend():
    assert trend((0, 1, 0, 10)) == Trend(Direction.UNKNOWN)
    assert trend((0, 1, 0, 10), (2, 2, 5, 12)) == Trend(Direction.UNKNOWN, arrived=1.0)


@pytest.mark.parametrize(
    ("consumed", "direction", "read", "left"),
    [
        (500, Direction.CATCHING_UP, 40.0, 20.0),
        (300, Direction.KEEPING_PACE, 20.0, None),
        (250, Direction.FALLING_BEHIND, 15.0, None),
    ],
)
def test_commits_are_held_against_one_another(consumed, direction, read, left):
    """Between two commits 200 offsets arrive in 10 seconds, and more are read, or fewer."""
    seen = trend((0, 1, 0, 600), (1, 2, 100, 700), (6, 2, 100, 800), (11, 3, consumed, 900))
    assert seen == Trend(direction, read, 300 * 1_000 / 11_000, left)


def test_the_time_of_day_within_a_batch_does_not_matter():
    """Records that arrive after the last commit are a batch's saw, and not a trend."""
    seen = trend((0, 1, 0, 600), (1, 2, 100, 700), (6, 3, 400, 800), (9, 3, 400, 1_000))
    assert seen.direction is Direction.CATCHING_UP
    assert seen.seconds_left == 600 / 40


@pytest.mark.parametrize("before", [(), ((1, 2, 100, 700), (6, 3, 400, 800))])
def test_a_query_that_commits_nothing(before):
    """Without commits for a while there is a waiting time, and no rate."""
    start = before[-1][0] if before else 0
    _, batch_id, consumed, _ = before[-1] if before else (0, 1, 0, 0)
    seen = trend((0, 1, 0, 600), *before, (start + 70, batch_id, consumed, 900))
    assert (seen.direction, seen.seconds_waited) == (Direction.WAITING, 70.0)


def test_what_is_long_ago_does_not_count():
    """Rates cover the last minute, or two commits that lie farther apart."""
    slow = [(30 * number, number, 100 * number, 100_000) for number in range(5)]
    fast = [(120 + 2 * n, 4 + n, 400 + 1_000 * n, 100_000) for n in range(1, 60)]
    seen = trend(*slow, *fast)
    assert seen.read == 500.0
    commits = (0, 1, 0, 9_000), (200, 2, 1_000, 9_000), (500, 3, 2_500, 9_000)
    rare = trend(*commits, (570, 3, 2_500, 9_000))
    assert (rare.direction, rare.read) == (Direction.CATCHING_UP, 5.0)


@pytest.mark.parametrize(
    ("second", "third", "read"),
    [(36, 61, 10 / 60), (36, 61.001, 9 / 25.001), (41, 81, 10 / 80), (42, 81, 9 / 39)],
)
def test_the_window_is_a_minute_or_twice_the_time_between_commits(second, third, read):
    """The first of three commits counts, or is too old."""
    commits = (1, 2, 100, 900), (second, 3, 101, 900), (third, 4, 110, 900)
    assert trend((0, 1, 0, 900), *commits).read == pytest.approx(read)


@pytest.mark.parametrize(
    ("waited", "direction"), [(9.999, Direction.UNKNOWN), (10, Direction.WAITING)]
)
def test_ten_seconds_without_a_commit_are_long(waited, direction):
    """A query that was looked at for less may be in the middle of its batch."""
    assert trend((0, 1, 0, 600), (waited, 1, 0, 600)).direction is direction


@pytest.mark.parametrize(
    ("waited", "direction"), [(60, Direction.CATCHING_UP), (60.001, Direction.WAITING)]
)
def test_a_query_waits_when_its_last_commit_is_older_than_the_window(waited, direction):
    """Commits that lie within a minute of one another are expected again within a minute."""
    commits = (0, 1, 0, 600), (1, 2, 100, 600), (11, 3, 400, 600)
    assert trend(*commits, (11 + waited, 3, 400, 600)).direction is direction


@pytest.mark.parametrize(
    ("consumed", "direction"),
    [
        (109, Direction.CATCHING_UP),
        (108, Direction.KEEPING_PACE),
        (92, Direction.KEEPING_PACE),
        (91, Direction.FALLING_BEHIND),
    ],
)
def test_a_hundredth_of_the_lag_is_no_trend(consumed, direction):
    """The lag after the first commit is 800 offsets, and 100 arrive until the second one."""
    seen = trend((0, 1, 0, 0), (1, 2, 0, 800), (11, 3, consumed, 900))
    assert seen.direction is direction


def test_new_partitions_make_no_rate():
    kept = LagTrend()
    kept.add(sample(0, 1, 0, 100))
    grown = SourceLag.in_offsets({tp(0): 0}, {tp(0): 120, tp(1): 5_000})
    assert kept.add(LagSample(2_000, 1, {"0": grown})).arrived == 10.0


class Sources(dict[str, SourceLag]):
    """The sources of a sample, which can be referred to weakly."""


@pytest.mark.parametrize("batches_apart", [1, 200])
def test_few_samples_are_kept(batches_apart):
    """Of 600 samples in a minute, the trend needs those that are first in its window."""
    kept = LagTrend()
    alive: weakref.WeakValueDictionary[int, Sources] = weakref.WeakValueDictionary()
    for number in range(10_000):
        lag = SourceLag.in_offsets({tp(0): 5 * number}, {tp(0): 10 * number + 9})
        alive[number] = sources = Sources({"0": lag})
        seen = kept.add(LagSample(100 * number, number // batches_apart, sources))
    assert len(alive) <= 2 * (MAX_SAMPLES + 3)
    assert (seen.direction, seen.read, seen.arrived) == (Direction.FALLING_BEHIND, 50.0, 100.0)
