from __future__ import annotations

import datetime as dt
import time

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.application.continuous import work_meter
from pyspark_kafka.application.continuous.work_meter import WorkMeter, timestamps_of
from pyspark_kafka.domain.continuous.latency import BUCKETS
from pyspark_kafka.domain.continuous.messages import TaskProgress
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason


def test_rows_and_latencies_add_up_until_they_are_taken() -> None:
    meter = WorkMeter()
    now = time.time_ns() // 1_000_000
    meter.acknowledged(2, 3, np.array([now - 5_000, now - 5_000]))
    meter.acknowledged(1, 0, np.array([now + 60_000]))
    meter.acknowledged(4, 4, None)
    bad = BadRecordStats({FailureReason.MALFORMED: 1}, dead_letters=1)
    meter.failed(bad)
    meter.failed(bad)
    taken = meter.take()
    assert (taken.input_rows, taken.output_rows) == (7, 7)
    assert taken.bad_records == bad + bad
    assert taken.latency.total == 3
    assert taken.latency.percentile(0) == 0
    assert 5_000 <= (taken.latency.percentile(99) or 0) <= 5_600
    assert meter.take() == TaskProgress()


@pytest.mark.parametrize(("off_ms", "expected"), [(-3_600_000, 0), (3_600_000, 3_600_000)])
def test_latencies_are_as_wrong_as_the_clock(
    monkeypatch: pytest.MonkeyPatch, off_ms: int, expected: int
) -> None:
    """They are zero if it is behind, and an hour too long if it is an hour ahead."""
    monkeypatch.setattr(work_meter, "epoch_ms", lambda: 1_700_000_000_000 + off_ms)
    meter = WorkMeter()
    meter.acknowledged(1, 1, np.array([1_700_000_000_000]))
    percentile = meter.take().latency.percentile(50)
    assert percentile == pytest.approx(expected, rel=0.2)


def test_latencies_of_more_than_a_week_count_as_the_longest() -> None:
    meter = WorkMeter()
    meter.acknowledged(1, 1, np.array([0]))
    assert meter.take().latency.counts == {len(BUCKETS) - 1: 1}


def test_timestamps_are_milliseconds() -> None:
    at = dt.datetime(1970, 1, 1, 0, 0, 2, 345_000, tzinfo=dt.UTC)
    column = pa.array([at], pa.timestamp("us", tz="UTC"))
    found = timestamps_of(pa.RecordBatch.from_pydict({"timestamp": column}))
    assert found is not None
    assert found.dtype == np.dtype(np.int64)
    assert found.tolist() == [2_345]


def test_records_may_have_no_timestamps() -> None:
    assert timestamps_of(pa.RecordBatch.from_pydict({"value": pa.array([b""])})) is None
