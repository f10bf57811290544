"""Messages are read as upb parses them and Spark converts them: the corpus, and random ones."""

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values.errors import FailureReason

from .cases import ALL, CASES, Case
from .oracle import REFUSED, decoded, decoder_of, expected
from .schemas import message_class, message_in, message_named
from .wire import damaged, message_bytes

NAMES = ("test.Atoms", "test.Optionals", "test.Repeated", "test.Nested", "test.Maps", "test.Choice",
         "test.Times", "test.Wrapped", "old.Defaults", "old.Required", "old.Groups", "old.Levels",
         "old.Texts", "modern.Mixed")  # fmt: skip
"""Messages without dropped fields: what is in a field that is not read is not looked at."""

ATOMS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
         "sfixed64", "float", "double", "bool", "string", "bytes", "Kind")  # fmt: skip
KEYS = tuple(kind for kind in ATOMS if kind not in {"float", "double", "bytes", "Kind"})
SETTINGS = st.builds(
    ProtobufSettings, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans(),
    st.booleans(), st.just(10),
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return a schema of three messages: the first has the second, and so on."""
    lines = ['syntax = "proto3"; enum Kind { NONE = 0; SOME = 5; LESS = -1; }']
    for number in range(3):
        kinds = [*ATOMS, *(f"M{other}" for other in range(number + 1, 3))]
        fields = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(kinds)), max_size=6))
        numbers = draw(
            st.lists(
                st.integers(1, 30) | st.integers(1, 15_000),
                min_size=len(fields),
                max_size=len(fields),
                unique=True,
            )
        )
        lines.append(f"message M{number} {{")
        for place, ((label, kind), field) in enumerate(zip(fields, numbers, strict=True)):
            key = draw(st.sampled_from(KEYS))
            word = ("", "optional ", "repeated ", f"map<{key}, {kind}>")[label]
            lines.append(f"{word}{'' if label == 3 else kind} f{place} = {field};")
        lines.append("}")
    return "\n".join(lines)


@settings(max_examples=15, deadline=None)
@given(text=texts(), options=SETTINGS, seed=st.integers(0, 2**32))
def test_messages_of_any_schema(text, options, seed):
    """Messages of any schema are read as Spark would, and stay so when upb writes them again."""
    dice = random.Random(seed)  # noqa: S311  # nothing is secret
    descriptor = message_in(text)
    wanted = message_type(descriptor, options)
    made = [message_bytes(dice, descriptor) for _ in range(20)]
    right = {data: expected(descriptor, data, wanted, options) for data in made}
    valid = [data for data in made if right[data] != REFUSED]
    written = [_written_again(descriptor, data) for data in valid]
    rows = decoded(decoder_of(descriptor, wanted, options), [*valid, *written])
    assert rows == [right[data] for data in valid] * 2


def _written_again(descriptor: Any, data: bytes) -> bytes:
    return message_class(descriptor).FromString(data).SerializeToString()


@pytest.mark.parametrize("name", NAMES)
def test_damaged_messages_are_refused_exactly_where_upb_and_spark_refuse_them(name):
    dice = random.Random(name)  # noqa: S311  # nothing is secret
    descriptor = message_named(name)
    for options in (ProtobufSettings(max_recursion=10), replace(ALL, max_recursion=10)):
        wanted = message_type(descriptor, options)
        values = [damaged(dice, message_bytes(dice, descriptor)) for _ in range(150)]
        right = [expected(descriptor, data, wanted, options) for data in values]
        rows = decoded(decoder_of(descriptor, wanted, options), values)
        assert [REFUSED if isinstance(row, int) else row for row in rows] == right


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
