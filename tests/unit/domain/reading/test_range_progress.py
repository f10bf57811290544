import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.errors import FetchTimeoutError, OffsetOutOfRangeError
from pyspark_kafka.domain.reading.range_progress import RangeProgress, RangeQueue
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)
TIMEOUT_MS = 2_000

LOGS = st.builds(
    lambda earliest, size: (earliest, earliest + size), st.integers(0, 30), st.integers(0, 30)
)


def progress_of(start: int = 10, until: int = 20) -> RangeProgress:
    return RangeProgress(OffsetRange(PARTITION, start, until), TIMEOUT_MS)


def test_an_empty_range_is_finished():
    assert progress_of(10, 10).is_finished


def test_a_range_is_finished_at_its_end_and_beyond():
    for reached in (20, 25):
        progress = progress_of()
        assert progress.advance(reached)
        assert progress.is_finished


def test_a_fetch_may_bring_nothing():
    progress = progress_of()
    assert not progress.advance(10)
    assert not progress.advance(7)
    assert progress.position == 10
    assert progress.advance(11)
    assert (progress.position, progress.is_finished) == (11, False)


def test_watermarks_are_asked_for_when_something_is_wrong():
    progress = progress_of()
    progress.poll(100)
    assert not progress.needs_watermarks(102, is_missing=False)
    assert progress.needs_watermarks(102, is_missing=True)
    assert progress.needs_watermarks(102.1, is_missing=False)


def test_the_error_says_which_offsets_the_broker_holds():
    progress = progress_of()
    progress.poll(100)
    for earliest, latest in ((11, 20), (0, 10), (10, 10)):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            progress.check(earliest, latest, 200)
        error = caught.value
        assert (error.offset, error.earliest, error.latest) == (10, earliest, latest)


def test_an_offset_that_the_broker_holds_is_fetched_until_the_time_is_up():
    progress = progress_of()
    progress.poll(100)
    progress.check(10, 11, 102)
    with pytest.raises(FetchTimeoutError, match="offset 10 in 2000 milliseconds"):
        progress.check(10, 11, 102.1)
    progress.advance(11)
    progress.poll(200)
    progress.check(0, 20, 202)


@given(
    log=LOGS,
    start=st.integers(0, 60),
    size=st.integers(0, 30),
    fetches=st.lists(st.tuples(st.integers(0, 10), st.floats(0, 3)), max_size=30),
)
def test_a_read_ends_at_the_end_or_says_why_not(log, start, size, fetches):
    earliest, latest = log
    progress = progress_of(start, start + size)
    now = begun = 0.0
    progress.poll(now)
    for moved, seconds in fetches:
        if progress.is_finished:
            break
        position, now = progress.position, now + seconds
        is_held = earliest <= position < latest
        if is_held and progress.advance(min(position + moved, latest)):
            assert progress.position > position
            progress.poll(begun := now)
            continue
        assert progress.position == position
        if not progress.needs_watermarks(now, is_missing=not is_held):
            assert now - begun <= TIMEOUT_MS / 1_000
            continue
        try:
            progress.check(earliest, latest, now)
        except OffsetOutOfRangeError:
            assert not is_held
            return
        except FetchTimeoutError:
            assert is_held
            assert now - begun > 0.999 * TIMEOUT_MS / 1_000
            return
        assert is_held
        assert now - begun <= TIMEOUT_MS / 1_000
    assert progress.is_finished == (progress.position >= start + size)


RANGES = tuple(OffsetRange(TopicPartition("t", number), 7, 9) for number in range(4))


def test_what_was_begun_or_passed_over_is_not_expected():
    queue = RangeQueue(RANGES)
    assert queue.begin(RANGES[0].partition, 7) == ()
    assert queue.begin(RANGES[2].partition, 7) == RANGES[1:2]
    assert tuple(queue) == RANGES[3:]


def test_a_range_that_was_not_expected_changes_nothing():
    """The start shows it: of another partition, or elsewhere in this one."""
    queue = RangeQueue(RANGES)
    assert queue.begin(RANGES[1].partition, 8) == queue.begin(TopicPartition("u", 1), 7) == ()
    assert tuple(queue) == RANGES


def test_the_next_ones_are_returned_in_order():
    queue = RangeQueue(RANGES)
    assert queue.first(2) == RANGES[:2]
    assert queue.first(9) == RANGES
    assert RangeQueue().first(9) == ()
