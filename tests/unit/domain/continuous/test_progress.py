import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.continuous.progress import (
    BUCKETS,
    EpochProgress,
    LatencyHistogram,
    QueryIdentity,
    TaskProgress,
    bucket_of,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason


def test_without_records_there_is_no_percentile():
    assert LatencyHistogram().percentile(50) is None


def test_percentiles_are_upper_bounds():
    histogram = LatencyHistogram.of([1, 2, 3, 4, 1_000])
    assert histogram.percentile(0) == 1
    assert histogram.percentile(50) == 3
    assert histogram.percentile(80) == 4
    assert 1_000 <= (histogram.percentile(99) or 0) <= 1_050


def test_negative_latencies_count_as_zero():
    assert LatencyHistogram.of([-5]).percentile(99) == 0


def test_latencies_of_weeks_are_in_the_last_bucket():
    assert bucket_of(10**12) == len(BUCKETS) - 1


@pytest.mark.parametrize("counts", [{-1: 1}, {len(BUCKETS): 1}, {0: -1}])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="latenc"):
        LatencyHistogram(counts)


def test_a_bucket_may_be_empty():
    assert LatencyHistogram({0: 0, 1: 2}).percentile(0) == BUCKETS[1]


def test_a_histogram_survives_pickling():
    histogram = LatencyHistogram.of([3, 3, 700])
    assert pickle.loads(pickle.dumps(histogram)) == histogram  # noqa: S301


@given(st.lists(st.integers(0, 10**7)), st.lists(st.integers(0, 10**7)))
def test_merging_counts_the_records_of_both(one, other):
    merged = LatencyHistogram.of(one).merge(LatencyHistogram.of(other))
    assert merged == LatencyHistogram.of(one + other)
    assert merged.total == len(one) + len(other)


@given(st.lists(st.integers(0, 10**7), min_size=1), st.floats(0, 100))
def test_a_percentile_is_within_five_percent(latencies, percent):
    found = LatencyHistogram.of(latencies).percentile(percent)
    assert found is not None
    rank = max(1, -(-len(latencies) * percent // 100))
    exact = sorted(latencies)[min(len(latencies), int(rank)) - 1]
    assert exact <= found <= exact * 1.05 + 2


T0 = TopicPartition("t", 0)


def progress(latest: PartitionOffsets | None, duration_ms: int = 500) -> EpochProgress:
    return EpochProgress(
        query=QueryIdentity("id", "run", "name"),
        source="KafkaContinuous[Subscribe[t]]",
        sink="Kafka[out]",
        epoch=7,
        timestamp_ms=1_700_000_000_123,
        duration_ms=duration_ms,
        start=PartitionOffsets({T0: 3}),
        end=PartitionOffsets({T0: 5}),
        latest=latest,
        work=TaskProgress(
            2,
            4,
            LatencyHistogram.of([1, 9]),
            BadRecordStats({FailureReason.MALFORMED: 5}, 3),
        ),
        tasks=3,
        restarts=1,
    )


def test_the_names_are_those_of_spark():
    assert progress(PartitionOffsets({T0: 9})).to_dict() == {
        "id": "id",
        "runId": "run",
        "name": "name",
        "timestamp": "2023-11-14T22:13:20.123Z",
        "batchId": 7,
        "batchDuration": 500,
        "numInputRows": 2,
        "inputRowsPerSecond": 4.0,
        "processedRowsPerSecond": 8.0,
        "latencyMs": {"p50": 1, "p99": 9},
        "badRecords": {"MALFORMED": 5},
        "deadLetters": 3,
        "tasks": 3,
        "restarts": 1,
        "sources": [
            {
                "description": "KafkaContinuous[Subscribe[t]]",
                "startOffset": {"t": {"0": 3}},
                "endOffset": {"t": {"0": 5}},
                "latestOffset": {"t": {"0": 9}},
                "numInputRows": 2,
                "metrics": {
                    "minOffsetsBehindLatest": "4",
                    "maxOffsetsBehindLatest": "4",
                    "avgOffsetsBehindLatest": "4.0",
                },
            }
        ],
        "sink": {"description": "Kafka[out]", "numOutputRows": 4},
    }


def test_the_lag_is_unknown_while_no_broker_answers():
    unknown = progress(None)
    assert unknown.lag is None
    (source,) = unknown.to_dict()["sources"]
    assert source["latestOffset"] is None
    assert source["metrics"] == {}


def test_a_report_of_no_time_has_a_rate():
    assert progress(None, duration_ms=0).input_rows_per_second == 2_000
