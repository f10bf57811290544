import logging

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.system.logged import LoggingSourceEvents
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.testing import SourceEventsContract
from pyspark_kafka.testing.source_events_contract import REPORTS, report_all

from .observing import log_lines

LOGGER = "pyspark_kafka"


class TestMemorySourceEvents(SourceEventsContract):
    @pytest.fixture
    def events(self):
        return MemorySourceEvents()

    @pytest.fixture
    def observed(self, events):
        return lambda: [f"{report.event} {report.facts}" for report in events.reports]


class TestLoggingSourceEvents(SourceEventsContract):
    @pytest.fixture(params=[logging.DEBUG, logging.INFO])
    def events(self, request, caplog):
        """Return a listener that logs, with and without lag."""
        caplog.set_level(request.param, logger=LOGGER)
        return LoggingSourceEvents()

    @pytest.fixture
    def observed(self, caplog):
        return lambda: log_lines(caplog, LOGGER)


def test_the_suite_makes_every_report():
    """A method that the suite does not call would not be tested."""
    assert REPORTS.keys() == SourceEvents.__abstractmethods__


def test_memory_keeps_reports_in_order():
    events = MemorySourceEvents()
    report_all(events)
    assert [(report.event, report.facts) for report in events.reports] == list(REPORTS.items())


def test_losses_are_logged_as_warnings(caplog):
    """Losses and advice are logged at level WARNING, other events at INFO."""
    [loss] = REPORTS["data_lost"]
    [out_of_range] = REPORTS["offset_out_of_range"]
    with caplog.at_level("DEBUG", logger=LOGGER):
        report_all(LoggingSourceEvents())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", 'Initial offsets: {"orders":{"3":4711}}'),
        ("INFO", 'Partitions added: {"payments":{"0":815}}'),
        (
            "WARNING",
            (
                "Partitions added since the query was planned are not read, since its options give "
                "no bounds for them: refunds-3. To plan it again, load() the data frame again"
            ),
        ),
        ("WARNING", loss.as_warning()),  # type: ignore[attr-defined]
        ("WARNING", str(out_of_range)),
        ("INFO", "Attempt 2 of 5 to fetch offsets: the coordinator is loading"),
        ("DEBUG", "Offsets behind latest: total 577, max 577"),
        ("WARNING", f"Offsets were not committed to the group 'auditors': {out_of_range}"),
        (
            "WARNING",
            (
                "64 records could not be decoded (43 TRUNCATED, 21 BAD_ENUM), the first one at "
                "offset 8128 of orders-3; 63 dead letters were written"
            ),
        ),
        (
            "WARNING",
            (
                "A batch has 512 tasks for 2048 offsets. A task takes some milliseconds, whatever "
                "it reads: set 'maxPartitions', to the number of cores for example, so that tasks "
                "read several partitions"
            ),
        ),
        ("INFO", "Delivered 1234 records, 98765 bytes of keys, values and headers"),
    ]


@pytest.mark.parametrize(("level", "takes_lag"), [("DEBUG", True), ("INFO", False)])
def test_lag_is_taken_where_it_is_logged(caplog, level, takes_lag):
    """The logging listener takes lag only at the level at which it logs it."""
    with caplog.at_level(level, logger=LOGGER):
        assert LoggingSourceEvents().takes_lag is takes_lag
