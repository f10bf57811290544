import pytest

from pyspark_kafka.domain.reading.record_limits import OversizedRecords, RecordLimits
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("sizes", "exceeded"),
    [
        ((60, 3, 40), None),
        ((61, 3, 40), ("maxRecordBytes", 101)),
        ((0, 4, 40), ("maxRecordHeaders", 4)),
        ((0, 3, 41), ("maxRecordHeaderBytes", 41)),
        ((101, 4, 41), ("maxRecordBytes", 142)),
    ],
)
def test_the_first_limit_that_is_exceeded(sizes, exceeded):
    assert RecordLimits(100, 3, 40).exceeded(*sizes) == exceeded


@pytest.mark.parametrize(
    ("option", "phrase"),
    [
        ("maxRecordBytes", "has 200 bytes after decompression, and the option"),
        ("maxRecordHeaders", "has 200 headers, and the option"),
        ("maxRecordHeaderBytes", "has 200 bytes of headers, and the option"),
    ],
)
def test_an_error_says_what_exceeds_which_option(option, phrase):
    error = OversizedRecords(RecordLimits(100, 100, 100)).error(T0, 7, option, 200)
    assert str(error) == (
        f"[KAFKA_OVERSIZED_RECORD] The record at offset 7 of t-0 {phrase} '{option}' allows 100. "
        f"If you trust its producer, raise '{option}'. To skip such records with a warning, set "
        "the option 'skipOversizedRecords' to 'true'."
    )
    assert (error.partition, error.offset, error.size) == (T0, 7, 200)
    assert (error.option, error.limit) == (option, 100)


def test_skipped_records_are_reported_once():
    oversized = OversizedRecords(RecordLimits(100, skips=True))
    for offset in range(10, 17):
        oversized.skip(T0, offset, "maxRecordBytes")
    oversized.skip(T1, 3, "maxRecordHeaders")
    advice = (
        ". To read such records, raise the limit. To fail instead, set the source option "
        "'skipOversizedRecords' to 'false'."
    )
    many, one = oversized.take_skipped()
    assert many.condition == one.condition == "OVERSIZED_RECORDS_SKIPPED"
    assert many.as_warning() == (
        "Skipped 7 records of t-0 beyond the limit 'maxRecordBytes' (100), "
        "at 10, 11, 12, 13, 14, ..." + advice
    )
    assert one.as_warning() == (
        "Skipped 1 record of t-1 beyond the limit 'maxRecordHeaders' (10000), at 3" + advice
    )
    assert not list(oversized.take_skipped())
