import pickle
from typing import Final

import pytest

from pyspark_kafka.domain.values.errors import (
    FAILURE_TEXTS,
    BadRecordStats,
    FailureReason,
    describe_failure,
)


def test_what_is_wrong_with_a_value():
    assert FAILURE_TEXTS.keys() == {*FailureReason} - {FailureReason.NONE}
    assert describe_failure(FailureReason.TRUNCATED) == "it ends too early"
    assert describe_failure(FailureReason.BAD_ENUM, "a.b", 0) == (
        "an enum has no such symbol (field 'a.b'), schema id 0"
    )


FOUND: Final = BadRecordStats({FailureReason.BAD_UTF8: 2, FailureReason.MALFORMED: 3}, 4)


def test_numbers_are_added_by_reason():
    more = BadRecordStats({FailureReason.MALFORMED: 1, FailureReason.TRUNCATED: 5}, 1)
    both = FOUND + more
    assert both.by_name() == {"MALFORMED": 4, "TRUNCATED": 5, "BAD_UTF8": 2}
    assert (both.total, both.dead_letters) == (11, 5)
    assert FOUND + BadRecordStats() == FOUND


def test_the_text_has_a_number_for_each_reason():
    assert str(FOUND) == "3 MALFORMED, 2 BAD_UTF8"
    assert str(BadRecordStats()) == ""


def test_numbers_travel_between_processes():
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND  # noqa: S301  # our own
    assert BadRecordStats.from_names(FOUND.by_name(), FOUND.dead_letters) == FOUND


@pytest.mark.parametrize(
    ("by_name", "dead_letters"), [({"HUNGRY": 1}, 0), ({"MALFORMED": -1}, 0), ({}, -1)]
)
def test_what_is_no_number_of_bad_records_is_refused(by_name, dead_letters):
    """Unknown reasons and negative numbers come from a peer that is no task of ours."""
    with pytest.raises(ValueError, match="bad records"):
        BadRecordStats.from_names(by_name, dead_letters)
