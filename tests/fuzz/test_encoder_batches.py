"""What the fuzzer of encoders makes of rows."""

from collections import Counter
from collections.abc import Callable

import pytest

from .encoder_batches import ENCODED, ROWS, try_avro, try_json, try_protobuf

BATCHES = 24


def outcomes(try_batch: Callable[[int, int], Counter[str]]) -> Counter[str]:
    """Return how many rows of some batches had each outcome."""
    return sum((try_batch(0, number) for number in range(BATCHES)), Counter[str]())


@pytest.mark.parametrize("try_batch", [try_json, try_avro])
def test_rows_of_any_layout_are_encoded(try_batch):
    """Each row is read as it was, wherever it was in its array."""
    assert outcomes(try_batch)[ENCODED] == BATCHES * ROWS


def test_rows_that_are_no_messages_are_refused():
    """Each for one of the reasons, and the rows beside them are encoded."""
    found = outcomes(try_protobuf)
    assert {"NULL", "SYMBOL", "UTF8", "ONEOF"} <= set(found)
    assert BATCHES * ROWS * 0.8 < found[ENCODED] < found.total() == BATCHES * ROWS
