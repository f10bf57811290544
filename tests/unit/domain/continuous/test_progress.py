from __future__ import annotations

from pyspark_kafka.domain.continuous.latency import LatencyHistogram
from pyspark_kafka.domain.continuous.messages import TaskProgress
from pyspark_kafka.domain.continuous.progress import EpochProgress, QueryIdentity
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason

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
            2, 4, LatencyHistogram.of([1, 9]), BadRecordStats({FailureReason.MALFORMED: 5}, 3)
        ),
        tasks=3,
        restarts=1,
    )


def test_the_names_are_those_of_spark() -> None:
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


def test_the_lag_is_unknown_while_no_broker_answers() -> None:
    unknown = progress(None)
    assert unknown.lag is None
    (source,) = unknown.to_dict()["sources"]
    assert source["latestOffset"] is None
    assert source["metrics"] == {}


def test_a_report_of_no_time_has_a_rate() -> None:
    assert progress(None, duration_ms=0).input_rows_per_second == 2_000
