"""The corpus: each message as upb parses it and Spark converts it."""

from collections import defaultdict
from typing import Any

import pytest

from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values.errors import FailureReason

from .cases import CASES, Case
from .oracle import REFUSED, decoded, decoder_of, expected
from .schemas import message_named


def _results(cases: list[Case]) -> list[Any]:
    first = cases[0]
    descriptor = message_named(first.message)
    wanted = message_type(descriptor, first.settings)
    return decoded(decoder_of(descriptor, wanted, first.settings), [case.data for case in cases])


@pytest.fixture(scope="module")
def results():
    """Return what the decoder makes of each case; those of one message are one batch."""
    batches: dict[tuple[str, ProtobufSettings], list[Case]] = defaultdict(list)
    for case in CASES:
        batches[case.message, case.settings].append(case)
    return {
        case.about: result
        for batch in batches.values()
        for case, result in zip(batch, _results(batch), strict=True)
    }


def test_the_corpus_has_each_case_once():
    assert len({case.about for case in CASES}) == len(CASES) >= 100


@pytest.mark.parametrize("case", CASES, ids=[case.about.replace(" ", "-") for case in CASES])
def test_a_message_is_refused_or_has_the_fields_as_in_spark(case, results):
    result = results[case.about]
    descriptor = message_named(case.message)
    wanted = message_type(descriptor, case.settings)
    right = expected(descriptor, case.data, wanted, case.settings)
    if case.reason:
        assert FailureReason(result) is case.reason
        assert right == REFUSED
    else:
        assert result == right
    if case.shows:
        name, value = case.shows
        assert result[name] == value
    assert _results([case]) == [result]
