"""What the fuzzer of Avro values makes of valid ones."""

from collections import Counter

from pyspark_kafka.domain.values.errors import FailureReason

from .avro_batches import ROWS, try_batch

BATCHES = 40
REASONS = {
    FailureReason.MALFORMED,
    FailureReason.TRUNCATED,
    FailureReason.TRAILING_BYTES,
    FailureReason.BAD_UTF8,
    FailureReason.BAD_VARINT,
    FailureReason.BAD_LENGTH,
    FailureReason.BAD_UNION,
    FailureReason.BAD_ENUM,
    FailureReason.INCOMPATIBLE_SCHEMA,
}


def test_damaged_values_reach_the_kernel():
    """Damaged values meet each common reason, and many are read nevertheless."""
    found: Counter[str] = Counter()
    for number in range(BATCHES):
        found += try_batch(0, number)
    assert found.total() == BATCHES * ROWS
    assert {reason.name for reason in REASONS} <= set(found)
    assert found["NONE"] > found.total() / 10
