"""What every ``SourceEvents`` owes."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.system.logging_events import LoggingSourceEvents
from pyspark_kafka.domain.data_loss import partitions_deleted
from pyspark_kafka.domain.errors import OffsetOutOfRangeError
from pyspark_kafka.domain.lag import Lag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.source_events import SourceEvents

PARTITION = TopicPartition("t", 0)
OFFSETS = PartitionOffsets({PARTITION: 5})
LOSS = partitions_deleted([PARTITION])
LAG = Lag({PARTITION: 7})
OUT_OF_RANGE = OffsetOutOfRangeError(PARTITION, 1, earliest=3, latest=5)


def report_all(events: SourceEvents) -> None:
    events.initial_offsets(OFFSETS)
    events.partitions_added(OFFSETS)
    events.data_lost(LOSS)
    events.offset_out_of_range(OUT_OF_RANGE)
    events.offsets_retried(1, 3, "why")
    events.lag_measured(LAG)
    events.group_commit_failed("g", OUT_OF_RANGE)


@pytest.mark.parametrize("kind", [MemorySourceEvents, LoggingSourceEvents])
def test_every_report_is_taken(kind: type[SourceEvents]) -> None:
    """No report fails the source that makes it."""
    report_all(kind())


def test_memory_keeps_reports_in_order() -> None:
    """Reports are kept with their facts, oldest first."""
    events = MemorySourceEvents()
    report_all(events)
    assert [(report.event, report.facts) for report in events.reports] == [
        ("initial_offsets", (OFFSETS,)),
        ("partitions_added", (OFFSETS,)),
        ("data_lost", (LOSS,)),
        ("offset_out_of_range", (OUT_OF_RANGE,)),
        ("offsets_retried", (1, 3, "why")),
        ("lag_measured", (LAG,)),
        ("group_commit_failed", ("g", OUT_OF_RANGE)),
    ]


def test_losses_are_logged_as_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """What is lost reaches the log as a warning, and what merely happens as information."""
    with caplog.at_level("DEBUG", logger="pyspark_kafka"):
        report_all(LoggingSourceEvents())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", 'Initial offsets: {"t":{"0":5}}'),
        ("INFO", 'Partitions added: {"t":{"0":5}}'),
        ("WARNING", LOSS.as_warning()),
        ("WARNING", str(OUT_OF_RANGE)),
        ("INFO", "Attempt 1 of 3 to fetch offsets: why"),
        ("DEBUG", "Offsets behind latest: 7 in all, 7 at most"),
        ("WARNING", f"Offsets were not committed to the group 'g': {OUT_OF_RANGE}"),
    ]
