"""The contract of every ``SourceEvents``, and further behaviour of two."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.system.logged import LoggingSourceEvents
from pyspark_kafka.domain.data_loss import partitions_deleted
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.source_events import SourceEvents
from pyspark_kafka.testing import SourceEventsContract
from pyspark_kafka.testing.source_events_contract import REPORTS, report_all

from .registry import SOURCE_EVENTS


class TestSourceEvents(SourceEventsContract):
    @pytest.fixture(params=SOURCE_EVENTS)
    def events(self, request: pytest.FixtureRequest) -> SourceEvents:
        """Return each listener in turn."""
        made: SourceEvents = request.param()
        return made


def test_the_suite_makes_every_report() -> None:
    """A method that the suite does not call would not be tested."""
    assert REPORTS.keys() == SourceEvents.__abstractmethods__


def test_memory_keeps_reports_in_order() -> None:
    """Reports are kept with their arguments, oldest first."""
    events = MemorySourceEvents()
    report_all(events)
    assert [(report.event, report.facts) for report in events.reports] == list(REPORTS.items())


def test_losses_are_logged_as_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """Losses are logged at level WARNING, other events at INFO."""
    [out_of_range] = REPORTS["offset_out_of_range"]
    with caplog.at_level("DEBUG", logger="pyspark_kafka"):
        report_all(LoggingSourceEvents())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", 'Initial offsets: {"t":{"0":5}}'),
        ("INFO", 'Partitions added: {"t":{"0":5}}'),
        ("WARNING", partitions_deleted([TopicPartition("t", 0)]).as_warning()),
        ("WARNING", str(out_of_range)),
        ("INFO", "Attempt 1 of 3 to fetch offsets: why"),
        ("DEBUG", "Offsets behind latest: total 7, max 7"),
        ("WARNING", f"Offsets were not committed to the group 'g': {out_of_range}"),
        ("INFO", "Delivered 3 records, 120 bytes of keys, values and headers"),
    ]


@pytest.mark.parametrize(("level", "takes_lag"), [("DEBUG", True), ("INFO", False)])
def test_lag_is_taken_where_it_is_logged(
    caplog: pytest.LogCaptureFixture, level: str, takes_lag: bool
) -> None:
    """The logging listener takes lag only at the level at which it logs it."""
    with caplog.at_level(level, logger="pyspark_kafka"):
        assert LoggingSourceEvents().takes_lag is takes_lag
