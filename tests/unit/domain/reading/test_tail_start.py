from __future__ import annotations

import pytest

from pyspark_kafka.domain.reading.tail_start import AtOffset


@pytest.mark.parametrize(
    ("offset", "expected"), [(7, 7), (0, 5), (99, 9), (-1, 8), (-4, 5), (-100, 5)]
)
def test_an_offset_within_what_the_leader_holds(offset: int, expected: int) -> None:
    """The nearest offset is taken; a negative one counts from the end."""
    assert AtOffset(offset).within(5, 9) == expected
