"""The fuzzers of kernels, with valid values."""

import random
from collections import Counter

import pytest

from pyspark_kafka.adapters.kafka_format import status
from verification.fuzz.avro_batches import ROWS
from verification.fuzz.batches import TRIALS
from verification.fuzz.encoder_batches import ENCODED
from verification.fuzz.inputs import Case
from verification.fuzz.kernel_cases import damaged_batch
from verification.fuzz.trial import try_case

AVRO = {
    *("MALFORMED", "TRUNCATED", "TRAILING_BYTES", "BAD_UTF8", "BAD_VARINT", "BAD_LENGTH"),
    *("BAD_UNION", "BAD_ENUM", "INCOMPATIBLE_SCHEMA"),
}
RECORDS = (
    status.TRUNCATED,
    status.BAD_VARINT,
    status.BAD_LENGTH,
    status.BAD_OFFSET,
    status.TRAILING_BYTES,
)


def outcomes(target: str, batches: int) -> Counter[str]:
    """Return how many values of some batches had each outcome."""
    return sum((TRIALS[target](0, number) for number in range(batches)), Counter[str]())


def test_damaged_values_in_avro_reach_the_kernel():
    """They meet each common reason, and many are read nevertheless."""
    found = outcomes("avro", 40)
    assert found.total() == 40 * ROWS
    assert set(found) >= AVRO
    assert found["NONE"] > found.total() / 10


@pytest.mark.parametrize("target", ["encode-json", "encode-avro"])
def test_rows_of_any_layout_are_encoded(target):
    assert outcomes(target, 24)[ENCODED] == 24 * ROWS


def test_rows_that_are_no_messages_are_refused():
    """Each for one of the reasons, and the rows beside them are encoded."""
    found = outcomes("encode-protobuf", 24)
    assert {"NULL", "SYMBOL", "UTF8", "ONEOF"} <= set(found)
    assert 24 * ROWS * 0.8 < found[ENCODED] < found.total() == 24 * ROWS


def test_messages_and_rows_are_exchanged_in_both_directions():
    found = outcomes("exchange", 24)
    assert set(found) == {
        *("READ", "NOT_READ", "DELIVERED"),
        *("PRODUCED", "QUEUE_FULL", "ENCODED"),
    }


def test_damaged_batches_of_records_reach_the_kernel():
    """They meet each of its reasons, with a right checksum, and some are read nevertheless."""
    blobs = [damaged_batch(random.Random(number)) for number in range(200)]  # noqa: S311
    found = [try_case(Case(blob, room={"rows": 2})) for blob in blobs]
    told = " ".join(str(outcome.error) for outcome in found)
    assert [reason for reason in RECORDS if status.REASONS[reason] not in told] == []
    assert status.REASONS[status.BAD_CHECKSUM] not in told
    assert any(outcome.rows for outcome in found)
