import datetime as dt
import time
from unittest.mock import create_autospec

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.application.continuous import progress as continuous_progress
from pyspark_kafka.application.continuous.progress import ProgressRecorder, WorkMeter, timestamps_of
from pyspark_kafka.domain.continuous.epochs import Epoch
from pyspark_kafka.domain.continuous.progress import (
    BUCKETS,
    EpochProgress,
    QueryIdentity,
    TaskProgress,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason
from pyspark_kafka.ports.lag import ProgressListener

from ..conftest import tp


def test_rows_and_latencies_add_up_until_they_are_taken():
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
def test_latencies_are_as_wrong_as_the_clock(monkeypatch, off_ms, expected):
    monkeypatch.setattr(continuous_progress, "epoch_ms", lambda: 1_700_000_000_000 + off_ms)
    meter = WorkMeter()
    meter.acknowledged(1, 1, np.array([1_700_000_000_000]))
    percentile = meter.take().latency.percentile(50)
    assert percentile == pytest.approx(expected, rel=0.2)


def test_latencies_of_more_than_a_week_count_as_the_longest():
    meter = WorkMeter()
    meter.acknowledged(1, 1, np.array([0]))
    assert meter.take().latency.counts == {len(BUCKETS) - 1: 1}


def test_timestamps_are_milliseconds():
    at = dt.datetime(1970, 1, 1, 0, 0, 2, 345_000, tzinfo=dt.UTC)
    column = pa.array([at], pa.timestamp("us", tz="UTC"))
    found = timestamps_of(pa.RecordBatch.from_pydict({"timestamp": column}))
    assert found is not None
    assert found.dtype == np.dtype(np.int64)
    assert found.tolist() == [2_345]


def test_records_may_have_no_timestamps():
    assert timestamps_of(pa.RecordBatch.from_pydict({"value": pa.array([b""])})) is None


QUERY = QueryIdentity("id", "run")


@pytest.fixture
def source(kit):
    """Return the name of a topic of five records, and what asks for its latest offsets."""
    kit.produce(5)
    return "t", kit.container().continuous_stream().latest_offset


def epoch(number: int, offset: int) -> Epoch:
    return Epoch(number, PartitionOffsets({tp(0): offset, tp(1): 0}))


def test_the_final_report_has_what_a_short_time_brought(source):
    reports: list[EpochProgress] = []
    recorder = ProgressRecorder(QUERY, "foreach", [reports.append])
    recorder.add(TaskProgress(2, 1))
    recorder.record(epoch(0, 2), *source)
    assert reports == []
    recorder.record(epoch(1, 3), *source, is_final=True)
    recorder.record(epoch(1, 3), *source, is_final=True)
    [report] = reports
    assert list(recorder.recent) == reports
    assert (report.epoch, report.work.input_rows) == (1, 2)
    assert report.lag is not None
    assert report.lag.total == 2


def test_the_first_report_begins_where_the_query_began(source):
    recorder = ProgressRecorder(QUERY, "foreach")
    recorder.record(epoch(0, 1), *source)
    recorder.record(epoch(1, 4), *source, is_final=True)
    [report] = recorder.recent
    assert (report.start, report.end) == (epoch(0, 1).offsets, epoch(1, 4).offsets)


def test_lag_counts_what_was_there_at_the_report_before(kit, source, monkeypatch):
    """Records that arrived since do not count, unless the query is idle."""
    monkeypatch.setattr(continuous_progress, "IDLE_EVERY_S", 0)
    recorder = ProgressRecorder(QUERY, "foreach")
    lags = []
    for number, (arrived, end) in enumerate([(0, 1), (4, 3), (4, 9), (0, 13), (2, 13)]):
        kit.produce(arrived)
        recorder.add(TaskProgress(1 if number < 4 else 0))
        recorder.record(epoch(number, end), *source, is_final=True)
        lags.append(recorder.recent[-1].lag)
    assert [lag and lag.total for lag in lags] == [4, 2, 0, 0, 2]


def test_bad_records_add_up_over_the_run(source):
    recorder = ProgressRecorder(QUERY, "foreach")
    for number in range(2):
        recorder.add(TaskProgress(1, bad_records=BadRecordStats({FailureReason.MALFORMED: 1}, 1)))
        recorder.record(epoch(number, 1 + number), *source, is_final=True)
    found = [(report.work.bad_records, report.bad_records) for report in recorder.recent]
    assert [(each.dead_letters, total.dead_letters) for each, total in found] == [(1, 1), (1, 2)]
    assert [(each.total, total.total) for each, total in found] == [(1, 1), (1, 2)]


def test_a_function_is_a_listener(source):
    """The function gets each report, and no call for the end."""
    reports: list[EpochProgress] = []
    recorder = ProgressRecorder(QUERY, "foreach", [reports.append])
    recorder.add(TaskProgress(1, 1))
    recorder.record(epoch(0, 1), *source, is_final=True)
    recorder.ended()
    assert [report.work.input_rows for report in reports] == [1]


def test_a_listener_that_fails_affects_no_other(source, caplog):
    listeners = [create_autospec(ProgressListener, instance=True) for _ in range(2)]
    for method in (listeners[0].progressed, listeners[0].query_ended):
        method.side_effect = ZeroDivisionError
    recorder = ProgressRecorder(QUERY, "foreach", listeners)
    recorder.add(TaskProgress(1, 1))
    recorder.record(epoch(0, 1), *source, is_final=True)
    recorder.ended()
    for listener in listeners:
        [reported] = listener.progressed.call_args_list
        assert reported.args[0].work.input_rows == 1
        listener.query_ended.assert_called_once_with("id", "run")
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["A listener of a continuous query failed"] * 2
