"""What the fuzzer of native kernels makes of valid batches."""

import random
from typing import Final

from pyspark_kafka.adapters.kafka_format import status
from tests.unit.adapters.kafka_format.batches import Batch, Record

from .inputs import Case
from .kernel_cases import _encoded, _record_tokens, damaged_batch, kept_inputs
from .trial import try_case

CASES: Final = 200
REASONS: Final = (
    status.TRUNCATED,
    status.BAD_VARINT,
    status.BAD_LENGTH,
    status.BAD_OFFSET,
    status.TRAILING_BYTES,
)


def test_records_in_parts():
    """The parts of records are the records again."""
    headers = (("a", b"b"), ("c", None))
    records = [Record(0), Record(3, None, None), Record(4, b"", headers=headers)]
    body = Batch.of(records).body
    parts = [_encoded(tokens, keeps_length=True) for tokens in _record_tokens(body)]
    assert len(parts) == len(records)
    assert b"".join(parts) == body


def test_damaged_batches_reach_the_kernel():
    """Damaged batches meet each reason of a kernel, and some are read nevertheless."""
    found = []
    for number in range(CASES):
        dice = random.Random(number)  # noqa: S311  # nothing is secret
        found.append(try_case(Case(damaged_batch(dice), room={"rows": 2})))
    told = " ".join(str(outcome.error) for outcome in found)
    for reason in REASONS:
        assert status.REASONS[reason] in told
    assert status.REASONS[status.BAD_CHECKSUM] not in told
    assert any(outcome.rows for outcome in found)


def test_kept_inputs():
    """The repository has inputs of the guided fuzzer, without the parser's name."""
    kept = kept_inputs()
    assert kept
    assert not any(data.startswith(b"batches\n") for data in kept)
