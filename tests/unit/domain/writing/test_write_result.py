"""What was delivered, summed up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.writing.write_result import NOTHING, DeliveryStats

DELIVERED = st.builds(DeliveryStats, st.integers(0), st.integers(0))


@given(DELIVERED, DELIVERED)
def test_sums(one: DeliveryStats, other: DeliveryStats) -> None:
    """Records and bytes are added each, and nothing adds nothing."""
    assert one + other == DeliveryStats(one.records + other.records, one.bytes + other.bytes)
    assert one + NOTHING == one
