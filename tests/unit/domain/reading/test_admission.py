import math
import pickle
from collections.abc import Callable, Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import (
    DEFAULT_BYTES_PER_RECORD,
    CompositeReadLimit,
    Decision,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    TriggerDelay,
    default_read_limit,
    limits_of,
    rate_limit,
    rate_limit_bytes,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import LARGEST_OFFSET

DELAY_MS = 900_000
MIN = ReadMinRows(15, DELAY_MS)
MAX = ReadMaxRows(20)
BYTES = ReadMaxBytes(1_000_000)


@pytest.mark.parametrize(
    ("min_offsets", "max_offsets", "max_bytes", "limit"),
    [
        (None, None, None, ReadAllAvailable()),
        (None, 20, None, MAX),
        (15, None, None, MIN),
        (15, 20, None, CompositeReadLimit((MIN, MAX))),
        (None, None, 1_000_000, BYTES),
        (None, 20, 1_000_000, CompositeReadLimit((MAX, BYTES))),
        (15, None, 1_000_000, CompositeReadLimit((MIN, BYTES))),
        (15, 20, 1_000_000, CompositeReadLimit((MIN, MAX, BYTES))),
    ],
)
def test_several_options_are_a_composite(min_offsets, max_offsets, max_bytes, limit):
    assert default_read_limit(min_offsets, max_offsets, DELAY_MS, max_bytes) == limit


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        (ReadAllAvailable(), (ReadAllAvailable(),)),
        (MAX, (MAX,)),
        (CompositeReadLimit((MIN, MAX)), (MIN, MAX)),
    ],
)
def test_a_composite_is_taken_apart(limit, parts):
    assert limits_of(limit) == parts


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        (ReadMaxRows, (0,), "max_rows must be at least 1, got 0"),
        (ReadMaxBytes, (0,), "max_bytes must be at least 1, got 0"),
        (ReadMinRows, (-1, 0), "min_rows must not be negative, got -1"),
        (ReadMinRows, (0, -1), "max_trigger_delay_ms must not be negative, got -1"),
        (CompositeReadLimit, ((),), "a composite limit needs at least one limit"),
        (
            CompositeReadLimit,
            ((MIN, CompositeReadLimit((MAX,))),),
            "a composite limit cannot contain another one",
        ),
    ],
)
def test_a_limit_under_which_no_batch_could_be_read_is_refused(kind, values, problem):
    with pytest.raises(ValueError, match=f"^{problem}$"):
        kind(*values)


def test_one_row_or_byte_is_the_smallest_maximum():
    assert ReadMaxRows(1).max_rows == ReadMaxBytes(1).max_bytes == 1
    assert ReadMinRows(0, 0) == ReadMinRows(min_rows=0, max_trigger_delay_ms=0)


def test_pickle():
    limit = CompositeReadLimit((MIN, MAX, BYTES, ReadAllAvailable()))
    assert pickle.loads(pickle.dumps(limit)) == limit  # noqa: S301


T = [TopicPartition("t", number) for number in range(6)]
Offsets = dict[TopicPartition, int]
Limit = Callable[[int, Mapping[TopicPartition, int], PartitionOffsets], PartitionOffsets]

# Up to here a double holds every number of offsets, and of bytes.
EXACT = 2**46
limits = st.integers(1, EXACT)


def by_bytes(
    limit: int, begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> PartitionOffsets:
    """Limit to as many bytes as there are records of one byte."""
    return rate_limit_bytes(limit, begin, until, dict.fromkeys(until, 1.0))


BOTH = pytest.mark.parametrize("limited", [rate_limit, by_bytes])


@st.composite
def backlogs(draw: st.DrawFn, most: int = 6) -> tuple[Offsets, PartitionOffsets]:
    partitions = draw(st.lists(st.sampled_from(T), min_size=1, max_size=most, unique=True))
    begin = {partition: draw(st.integers(0, EXACT)) for partition in partitions}
    sizes = st.integers(0, 30) | st.integers(0, EXACT)
    return begin, PartitionOffsets({p: start + draw(sizes) for p, start in begin.items()})


def read(begin: Offsets, end: PartitionOffsets) -> list[int]:
    return [end[partition] - start for partition, start in sorted(begin.items())]


def from_zero(*ends: int) -> tuple[Offsets, PartitionOffsets]:
    partitions = T[: len(ends)]
    return dict.fromkeys(partitions, 0), PartitionOffsets(zip(partitions, ends, strict=True))


@BOTH
@given(limit=limits, backlog=backlogs())
def test_no_partition_goes_back_or_beyond_its_end(limited, limit, backlog):
    begin, until = backlog
    end = limited(limit, begin, until)
    assert end.keys() == until.keys()
    assert all(begin[partition] <= end[partition] <= until[partition] for partition in until)


@BOTH
@given(limit=limits, backlog=backlogs(most=1))
def test_a_single_partition_is_read_up_to_exactly_the_limit(limited, limit, backlog):
    begin, until = backlog
    assert read(begin, limited(limit, begin, until)) == [min(limit, *read(begin, until))]


@BOTH
@given(limit=limits, backlog=backlogs())
def test_something_is_read_as_long_as_anything_is_left(limited, limit, backlog):
    begin, until = backlog
    assume(until != begin)
    assert sum(read(begin, limited(limit, begin, until))) > 0


@BOTH
@given(some=limits, more=limits, backlog=backlogs())
def test_a_higher_limit_never_makes_a_partition_end_earlier(limited, some, more, backlog):
    begin, until = backlog
    low, high = (limited(limit, begin, until) for limit in sorted((some, more)))
    assert all(low[partition] <= high[partition] for partition in until)


@given(backlog=backlogs(), extra=st.integers(0, EXACT))
def test_bytes_that_suffice_read_everything(backlog, extra):
    begin, until = backlog
    assert by_bytes(max(1, sum(read(begin, until)) + extra), begin, until) == until


@given(backlog=backlogs())
def test_limit_of_offsets_that_suffices(backlog):
    begin, until = backlog
    total = max(1, sum(read(begin, until)))
    assert rate_limit(total + 2 * len(until) + total // 2, begin, until) == until
    end = rate_limit(total, begin, until)
    assert all(0 <= until[partition] - end[partition] <= 1 for partition in until)


@pytest.mark.parametrize(
    ("limit", "ends", "shares"),
    [
        # The JVM connector's own example: 8 + 1 + 1 of 101, 11 and 1, then 9 + 1.
        (10, (101, 11, 1), [8, 1, 1]),
        (10, (93, 10, 0), [9, 1, 0]),
        # Shares below one are rounded up, so the limit is exceeded.
        (1, (5, 5, 5), [1, 1, 1]),
        (2, (1_000_000, 1, 1), [1, 1, 1]),
        # 22 * (15 / 22) is a little less than 15 as a double.
        (22, (15, 7), [14, 7]),
        (30, (15, 7), [15, 7]),
        (0, (15, 7), [0, 0]),
    ],
)
def test_shares_are_the_jvm_connectors(limit, ends, shares):
    begin, until = from_zero(*ends)
    assert read(begin, rate_limit(limit, begin, until)) == shares


@BOTH
@pytest.mark.parametrize("limit", [LARGEST_OFFSET, LARGEST_OFFSET - 1])
def test_the_largest_limit_does_not_lead_beyond_an_end(limited, limit):
    until = PartitionOffsets({T[0]: 23, T[1]: LARGEST_OFFSET})
    assert limited(limit, {T[0]: 5, T[1]: LARGEST_OFFSET - 1}, until) == until


@BOTH
def test_a_partition_whose_begin_is_unknown_goes_to_its_end(limited):
    until = PartitionOffsets({T[0]: 100, T[1]: 7, T[2]: 5, T[3]: 50})
    end = limited(10, {T[0]: 0, T[1]: 7, T[2]: 9}, until)
    assert end == until.merge({T[0]: 10})


@BOTH
def test_partitions_without_anything_stay_at_their_ends(limited):
    until = PartitionOffsets({T[0]: 5, T[1]: 7})
    assert limited(1, {T[0]: 5, T[1]: 7}, until) == until
    assert limited(1, {}, until) == until
    assert limited(1, {}, PartitionOffsets()) == PartitionOffsets()


@pytest.mark.parametrize(
    ("limit", "ends", "measures", "shares"),
    [
        # Both have 1,000 bytes, and half of them may be read.
        (1_000, (10, 100), {T[0]: 100.0, T[1]: 10.0}, [5, 50]),
        # One that was not measured is taken for the mean of the others, 200 bytes.
        (2_000, (10, 10, 10), {T[0]: 100.0, T[1]: 300.0}, [3, 3, 3]),
        # A measure of a partition that is no longer read counts for the mean, too.
        (1_000, (10,), {T[5]: 200.0}, [5]),
        # Parts of a record are not read, wherever they add up.
        (1_000, (5, 5), {T[0]: 150.0, T[1]: 150.0}, [3, 3]),
        # The record that is read alone is one of the longest backlog.
        (10, (5, 6, 6), {T[0]: 100.0, T[1]: 100.0, T[2]: 100.0}, [0, 1, 0]),
        # Without keys and values, nothing is limited.
        (1, (5, 6), {T[0]: 0.0, T[1]: 0.0}, [5, 6]),
        (5 * DEFAULT_BYTES_PER_RECORD, (10, 10), {}, [2, 2]),
    ],
)
def test_bytes_are_shared_by_the_sizes_of_records(limit, ends, measures, shares):
    begin, until = from_zero(*ends)
    assert read(begin, rate_limit_bytes(limit, begin, until, measures)) == shares


@given(
    limit=limits,
    backlog=backlogs(),
    measures=st.dictionaries(st.sampled_from(T), st.floats(1e-3, 1e9)),
)
def test_records_are_within_the_limit_unless_there_is_a_single_one(limit, backlog, measures):
    begin, until = backlog
    known = {partition: measures.get(partition, 7.0) for partition in begin}
    end = rate_limit_bytes(limit, begin, until, known)
    held = math.fsum((end[p] - start) * known[p] for p, start in begin.items())
    assert held <= limit * (1 + 1e-9) or sum(read(begin, end)) == 1


@given(
    limit=st.integers(1, 10_000),
    sizes=st.lists(st.integers(1, 10_000), min_size=1, max_size=6),
    measures=st.lists(st.floats(1, 10_000), min_size=6, max_size=6),
)
def test_no_partition_starves_beside_one_that_is_refilled(limit, sizes, measures):
    """Each has its turn within as many batches as there are partitions."""
    begin, until = from_zero(*sizes)
    known = dict(zip(T, measures, strict=True))
    served: list[TopicPartition] = []
    for _ in sizes:
        end = rate_limit_bytes(limit, begin, until, known, served)
        advanced = [each for each in begin if end[each] > begin[each]]
        served = [each for each in served if each not in advanced] + advanced
        until = until.merge({each: until[each] + end[each] - begin[each] for each in begin})
        begin = dict(end)
    assert set(served) == set(begin)


@pytest.mark.parametrize(
    ("limit", "served", "shares"),
    [
        # Records of 100 bytes: one each, and the others by their backlogs.
        (1_000, (), [7, 1, 1]),
        # Half of the limit is for two records, of those that have waited longest.
        (400, (T[0],), [1, 1, 1]),
        (400, (T[0], T[2], T[1]), [2, 0, 1]),
        (100, (T[2], T[0], T[1]), [0, 0, 1]),
    ],
)
def test_shares_below_a_record_are_rounded_up_in_turns(limit, served, shares):
    begin, until = from_zero(1_000, 3, 3)
    measures = dict.fromkeys(until, 100.0)
    assert read(begin, rate_limit_bytes(limit, begin, until, measures, served)) == shares


T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
NEVER = TriggerDelay()
AT_1000 = TriggerDelay(1_000)
WAITED = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH = "Delaying batch as number of records available is less than minOffsetsPerTrigger"


@given(now=st.integers(), min_rows=st.integers(0), max_delay_ms=st.integers(0))
def test_the_first_batch_runs_however_little_there_is(now, min_rows, max_delay_ms):
    decision = NEVER.decide(now, min_rows, max_delay_ms, {T0: 5}, {T0: 5})
    assert decision == Decision(is_delayed=False, next=TriggerDelay(now), message=WAITED)


@pytest.mark.parametrize(
    ("now_ms", "new_rows", "decision"),
    [
        (1_001, 14, Decision(is_delayed=True, next=AT_1000, message=NOT_ENOUGH)),
        (5_999, 14, Decision(is_delayed=True, next=AT_1000, message=NOT_ENOUGH)),
        (6_000, 14, Decision(is_delayed=False, next=TriggerDelay(6_000), message=WAITED)),
        (6_000, 15, Decision(is_delayed=False, next=TriggerDelay(6_000), message=WAITED)),
        (6_001, 0, Decision(is_delayed=False, next=TriggerDelay(6_001), message=WAITED)),
        (1_001, 15, Decision(is_delayed=False, next=TriggerDelay(1_001))),
        (5_999, 99, Decision(is_delayed=False, next=TriggerDelay(5_999))),
    ],
)
def test_a_later_batch_waits_for_enough_rows_or_the_delay(now_ms, new_rows, decision):
    assert AT_1000.decide(now_ms, 15, 5_000, {T0: 100 + new_rows}, {T0: 100}) == decision


@pytest.mark.parametrize(
    ("latest", "current", "is_delayed"),
    [
        ({T0: 10, T1: 5}, {T0: 0, T1: 0}, False),
        ({T0: 10, T1: 4}, {T0: 0, T1: 0}, True),
        ({T0: 110, T1: 5}, {T0: 100}, False),
        ({T0: 110, T1: 4}, {T0: 100}, True),
        ({T0: 110}, {T0: 100, T1: 0}, True),
        ({T0: 10, T1: 20}, {T0: 16, T1: 0}, True),
        ({}, {T0: 0}, True),
    ],
)
def test_offsets_since_the_last_batch_are_new(latest, current, is_delayed):
    assert AT_1000.decide(1_001, 15, 5_000, latest, current).is_delayed is is_delayed


def test_without_a_minimum_every_batch_runs():
    assert not AT_1000.decide(1_001, 0, 5_000, {T0: 5}, {T0: 5}).is_delayed
