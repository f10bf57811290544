from __future__ import annotations

from typing import Any

from pyspark_kafka.cli.progress import HEADINGS, Batch

PROGRESS: dict[str, Any] = {
    "batchId": 3,
    "numInputRows": 1_500,
    "processedRowsPerSecond": 749.6,
    "sources": [
        {"endOffset": '{"t":{"0":1000,"1":2500}}', "latestOffset": '{"t":{"0":1200,"1":2500}}'}
    ],
}


def test_a_batch_from_sparks_progress() -> None:
    """A batch has Spark's numbers, and offsets summed over partitions."""
    assert Batch.from_progress(PROGRESS) == Batch(
        number=3, rows=1_500, rows_per_second=749.6, end=3_500, latest=3_700
    )


def test_a_report_without_latest_offsets() -> None:
    """Without latest offsets in the report, the batch has reached them."""
    source = {"endOffset": '{"t":{"0":1}}', "latestOffset": None}
    batch = Batch.from_progress({**PROGRESS, "sources": [source]})
    assert batch.latest == batch.end == 1


def test_a_line_fits_its_headings() -> None:
    """Numbers are aligned with their headings."""
    line = Batch.from_progress(PROGRESS).line(lag=200)
    assert len(line) == len(HEADINGS)
    assert line.split() == ["3", "1,500", "750", "200"]
