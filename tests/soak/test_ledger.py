"""Excuses for missing numbers, without brokers."""

import logging
import threading
from typing import Final

import numpy as np
import pytest

from pyspark_kafka.adapters.system.logged import LoggingSourceEvents
from pyspark_kafka.domain.reading.data_loss import (
    added_partition_starts_late,
    offset_range_not_read,
)
from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError
from pyspark_kafka.domain.topic_partition import TopicPartition
from verification.soak.driver import QueryPlan
from verification.soak.ledger import COMPACTED, DELETED, SOURCE, Ledger
from verification.soak.losses import LOG_FORMAT, Loss, LossLog, losses_in
from verification.soak.numbers import NumberReader, SoakError

QUERY: Final = QueryPlan("kafka-python", "exactly-once")
OTHER: Final = QueryPlan("confluent", "at-least-once")
COUNT: Final = 10


class _Producer:
    """Has the number ``n`` at offset ``n`` of partition 0, but for 9, whose offset is unknown."""

    def __init__(self) -> None:
        self.count = COUNT
        self.starts: dict[int, int] = {}
        self.is_compacted = False

    def places(self, numbers):
        return np.where(numbers < 9, 0, -1), np.where(numbers < 9, numbers, -1)

    def compacted(self, numbers):
        return numbers[numbers % 2 == 0]


@pytest.fixture
def ledger():
    made = Ledger(None, [QUERY], 1, 1)  # type: ignore[arg-type]  # it is not entered
    made.producer = _Producer()  # type: ignore[assignment]
    reader = NumberReader("127.0.0.1:1", "output", 1, committed=True)
    made.readers = {QUERY: reader}
    made.begin_round()
    made._begun = 0
    yield made
    reader.close()


def _await_all(ledger, *seen):
    reader = ledger.readers[QUERY]
    if seen:
        reader._count(0, np.array(seen))
    ledger.await_all(0.0, lambda: None)
    return dict(reader.excuses)


def test_nothing_is_excused_without_a_deletion(ledger):
    ledger.losses = lambda: [Loss(QUERY.name, 0, 0, COUNT)]
    with pytest.raises(SoakError, match=r"2 of 10 .* from 3 on: its record is at offset 3 of num"):
        _await_all(ledger, 0, 1, 2, 5, 6, 7, 8, 9)


def test_deleted_numbers_are_excused_if_they_are_reported(ledger):
    ledger.producer.starts = {0: 4}
    ledger.losses = lambda: [Loss(QUERY.name, 0, 1, 3), Loss(QUERY.name, 0, 3, 4)]
    assert _await_all(ledger, 0, 4, 5, 6, 7, 8, 9) == {DELETED: 3}


@pytest.mark.parametrize(
    "loss",
    [
        Loss(QUERY.name, 0, 1, 3),
        Loss(QUERY.name, 0, 2, 4),
        Loss(QUERY.name, 1, 1, 4),
        Loss(OTHER.name, 0, 1, 4),
    ],
    ids=["to before it", "from after it", "of another partition", "by another query"],
)
def test_deleted_numbers_are_missed_if_a_report_does_not_cover_them(ledger, loss):
    ledger.producer.starts = {0: 4}
    ledger.losses = lambda: [loss]
    with pytest.raises(SoakError, match="numbers do not come"):
        _await_all(ledger, 0, 4, 5, 6, 7, 8, 9)


@pytest.mark.parametrize("missing", [6, 9], ids=["there", "at an unknown offset"])
def test_numbers_that_were_not_deleted_are_missed_if_they_are_reported(ledger, missing):
    ledger.producer.starts = {0: 6}
    ledger.losses = lambda: [Loss(QUERY.name, 0, 0, COUNT)]
    with pytest.raises(SoakError, match=f"1 of 10 numbers do not come, from {missing} on"):
        _await_all(ledger, *sorted(set(range(COUNT)) - {missing}))


def test_losses_of_a_deleted_topic_excuse_nothing_of_the_next_one(ledger, monkeypatch):
    ledger.losses = lambda: [Loss(QUERY.name, 0, 1, 4)]
    monkeypatch.setattr(ledger, "_create", lambda *_: None)
    ledger.producer.begin_topic = lambda: None
    ledger.create_source_again(1)
    ledger.producer.starts = {0: 4}
    with pytest.raises(SoakError, match="numbers do not come"):
        _await_all(ledger, 0, 4, 5, 6, 7, 8, 9)


def test_compacted_numbers_are_excused(ledger):
    ledger.producer.is_compacted = True
    assert _await_all(ledger, 0, 1, 3, 5, 6, 7, 8, 9) == {COMPACTED: 2}


def test_a_round_without_a_number_fails(ledger):
    ledger.producer.count = 0
    with pytest.raises(SoakError, match="no number to look for"):
        _await_all(ledger)


@pytest.mark.parametrize("begun", [9, 1], ids=["none is new", "all are excused"])
def test_a_round_that_has_looked_for_no_number_fails(ledger, begun):
    ledger._begun, ledger.producer.count = begun, 9
    ledger.producer.starts = {0: COUNT}
    ledger.losses = lambda: [Loss(QUERY.name, 0, 0, COUNT)]
    with pytest.raises(SoakError, match="no number of this round was looked for"):
        _await_all(ledger, 0)


PARTITION: Final = TopicPartition(SOURCE, 3)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (offset_range_not_read(PARTITION, 5, 20, 17, "none"), (3, 5, 17)),
        (added_partition_starts_late(PARTITION, 8), (3, 0, 8)),
    ],
    ids=["skipped", "added late"],
)
@pytest.mark.parametrize("prefix", ["", "continuous query "])
def test_losses_are_read_from_the_warnings_of_a_query(loss, expected, prefix):
    def warn() -> None:
        events = LoggingSourceEvents()
        # Its last bracket is not closed.
        events.offset_out_of_range(OffsetOutOfRangeError(PARTITION, 5, earliest=17, latest=20))
        events.data_lost(loss)

    log = LossLog()
    try:
        thread = threading.Thread(target=warn, name=prefix + QUERY.name)
        thread.start()
        thread.join()
        assert log.losses() == [Loss(QUERY.name, *expected)]
    finally:
        log.close()


def test_other_lines_of_a_log_are_no_losses():
    record = logging.makeLogRecord({"msg": "Skip missing records", "threadName": QUERY.name})
    assert list(losses_in(logging.Formatter(LOG_FORMAT).format(record))) == []
