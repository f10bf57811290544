"""Inputs that the fuzzer of JSON values tries."""

import random

from pyspark_kafka.domain.values.errors import FailureReason
from verification.fuzz.json_trial import (
    OPTIONS,
    SCHEMAS,
    made_value,
    many_names,
    try_values,
    valid_values,
)
from verification.fuzz.parsers import MAX_BYTES


def test_made_values_hold():
    """Values of each kind decode alike in any order, and meet the reasons that JSON has."""
    dice = random.Random(3)  # noqa: S311  # nothing is secret
    valid = valid_values()
    met: set[int] = set()
    for number in range(len(SCHEMAS) * len(OPTIONS)):
        values = [made_value(dice, valid) for _ in range(200)]
        met |= {reason for reason, _, _ in try_values(number, values)}
    assert met >= {
        FailureReason.NONE,
        FailureReason.MALFORMED,
        FailureReason.TRUNCATED,
        FailureReason.BAD_UTF8,
        FailureReason.TYPE_MISMATCH,
        FailureReason.OUT_OF_RANGE,
        FailureReason.TOO_LARGE,
    }


def test_many_names_in_one_value():
    """Whatever a value names, the harness takes no more than its time for it."""
    dice = random.Random(5)  # noqa: S311  # nothing is secret
    values = [many_names(dice) for _ in range(30)]
    assert max(map(len, values)) > MAX_BYTES / 2
    for number in range(len(SCHEMAS)):
        try_values(number, values)
