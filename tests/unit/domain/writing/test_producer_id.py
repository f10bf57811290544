"""Sequence numbers as Java's ``DefaultRecordBatch.incrementSequence`` counts them."""

import pytest

from pyspark_kafka.domain.writing.batch import next_sequence


@pytest.mark.parametrize(
    ("base", "count", "expected"),
    [
        (0, 5, 5),
        (2**31 - 2, 1, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 1, 3, 2),
        (2**31 - 5, 10, 5),
    ],
)
def test_behind_the_last_number_of_a_sequence_is_0(base, count, expected):
    assert next_sequence(base, count) == expected
