"""The contract suite of ``ValueDecoder``."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from ..domain.values.data_types import LONG, STRING, StructField, StructType
from ..domain.values.errors import FailureReason
from ..ports.values.value_format import DecodedValues, Payloads, ValueDecoder
from ..ports.values.value_types import arrow_type
from .fixtures import required_fixture

DECODED_TYPE: Final = StructType((StructField("number", LONG), StructField("text", STRING)))
"""The type of the decoder under test."""

Value: TypeAlias = "dict[str, Any]"
Encode: TypeAlias = "Callable[[Value], bytes]"

_ADA: Final[Value] = {"number": 1, "text": "ada"}
_BOB: Final[Value] = {"number": -(2**63), "text": "bób 😀"}
_EVE: Final[Value] = {"number": 2**63 - 1, "text": ""}
_AROUND: Final = b'\x00{"\xff'
"""Bytes around payloads, which no decoder reads."""


def payloads_of(
    values: Sequence[bytes | None], reasons: Sequence[FailureReason] = (), first: int = 0
) -> Payloads:
    """Return the payloads of values behind other bytes, as framing leaves them.

    The array begins behind ``first`` other rows, as a slice of a batch does.
    """
    framed = [None if value is None else _AROUND + value + _AROUND for value in values]
    array = pa.array([b"other"] * first + framed, pa.binary()).slice(first)
    offsets = np.frombuffer(memoryview(array.buffers()[1] or b""), np.int32)[first:].astype(
        np.int64
    )
    is_null = np.array([value is None for value in values], np.bool_)
    starts, ends = (
        offsets[: len(values)] + len(_AROUND),
        offsets[1 : len(values) + 1] - len(_AROUND),
    )
    return Payloads(
        array,
        np.where(is_null, -1, starts).astype(np.int64),
        np.where(is_null, -1, ends).astype(np.int64),
        np.array(reasons or [FailureReason.NONE] * len(values), np.uint8),
        np.full(len(values), -1, np.int32),
    )


class ValueDecoderContract:
    """The contract of ``ValueDecoder``; a subclass overrides the three fixtures."""

    decoder = required_fixture("Return the decoder under test, of ``DECODED_TYPE``.")
    encode = required_fixture(
        'Return a function that returns the payload of ``{"number": ..., "text": ...}``.'
    )
    malformed = required_fixture("Return a payload that cannot be decoded.")

    def test_the_type(self, decoder: ValueDecoder, encode: Encode) -> None:
        """The column has the Arrow type of the decoder's type, and fields have names."""
        assert decoder.data_type == DECODED_TYPE
        assert {"number", "text"} <= {*decoder.field_names}
        decoded = decoder.decode(payloads_of([encode(_ADA)]))
        assert decoded.column.type.equals(arrow_type(DECODED_TYPE))
        assert [str(decoded.reasons.dtype), str(decoded.fields.dtype)] == ["uint8", "int32"]

    def test_values_keep_their_order(self, decoder: ValueDecoder, encode: Encode) -> None:
        """Rows stay in order, with the extremes of their types."""
        values = [_ADA, _BOB, _EVE, _ADA]
        _assert_good(decoder.decode(payloads_of([*map(encode, values)])), values)

    def test_no_values(self, decoder: ValueDecoder) -> None:
        """The result has no rows, and the same type."""
        decoded = decoder.decode(payloads_of([]))
        assert len(decoded.column) == len(decoded.reasons) == len(decoded.fields) == 0
        assert decoded.column.type.equals(arrow_type(DECODED_TYPE))

    def test_a_tombstone_is_null(self, decoder: ValueDecoder, encode: Encode) -> None:
        """A tombstone is not a failure."""
        for values in ([None], [_ADA, None, _BOB], [None, None, _ADA]):
            given = [None if value is None else encode(value) for value in values]
            _assert_good(decoder.decode(payloads_of(given)), values)

    def test_a_slice_of_a_batch(self, decoder: ValueDecoder, encode: Encode) -> None:
        """The places of payloads count from the beginning of the buffer."""
        given = payloads_of([encode(_ADA), None, encode(_BOB)], first=11)
        _assert_good(decoder.decode(given), [_ADA, None, _BOB])

    def test_a_bad_value_does_not_affect_others(
        self, decoder: ValueDecoder, encode: Encode, malformed: bytes
    ) -> None:
        """Wherever the bad value is, it has a reason, and other rows have no part of it."""
        good = [_ADA, _BOB, _EVE]
        for place in range(len(good) + 1):
            payloads = [*map(encode, good)]
            payloads.insert(place, malformed)
            given = payloads_of(payloads)
            decoded = decoder.decode(given)
            assert decoded.reasons[place] != FailureReason.NONE
            assert not given.reasons.any(), "the payloads are the caller's"
            _assert_no_text(decoded, place)
            _assert_good(_without(decoded, place), good)

    def test_the_field_of_a_failure_has_a_name(
        self, decoder: ValueDecoder, malformed: bytes
    ) -> None:
        """A failure has a reason, and a field's index or -1."""
        decoded = decoder.decode(payloads_of([malformed]))
        assert -1 <= decoded.fields[0] < len(decoder.field_names)
        assert decoded.reasons[0] in {each.value for each in FailureReason} - {FailureReason.NONE}

    def test_a_value_that_has_failed_is_not_decoded(
        self, decoder: ValueDecoder, encode: Encode
    ) -> None:
        """The value is null, and keeps the reason from its framing."""
        reasons = [FailureReason.NONE, FailureReason.UNKNOWN_SCHEMA, FailureReason.NONE]
        given = payloads_of([encode(_ADA), encode(_EVE), encode(_BOB)], reasons)
        decoded = decoder.decode(given)
        assert decoded.reasons.tolist() == reasons
        assert decoded.column[1].as_py() is None
        _assert_good(_without(decoded, 1), [_ADA, _BOB])

    def test_a_value_that_ends_too_early(self, decoder: ValueDecoder, encode: Encode) -> None:
        """The bytes that follow in the buffer are not taken for the value's rest."""
        whole = encode(_BOB)
        for length in range(len(whole)):
            decoded = decoder.decode(payloads_of([encode(_ADA), whole[:length], encode(_EVE)]))
            assert decoded.column[1].as_py() != _BOB
            _assert_good(_without(decoded, 1), [_ADA, _EVE])

    def test_random_bytes(self, decoder: ValueDecoder, encode: Encode) -> None:
        """Random bytes are decoded or refused, and the values between them are right."""
        noise = random.Random(7)  # noqa: S311  # the same bytes each time
        good, rows = encode(_BOB), 600
        values = [noise.randbytes(noise.randrange(40)) for _ in range(rows)]
        values += [_changed(noise, good) for _ in range(rows)]
        between = [each for value in values for each in (value, good)]
        decoded = decoder.decode(payloads_of(between))
        assert len(decoded.column) == len(between)
        assert decoded.column.take(np.arange(1, len(between), 2)).to_pylist() == [_BOB] * len(
            values
        )
        assert not decoded.reasons[1::2].any()
        decoded.column.validate(full=True)

    def test_many_values(self, decoder: ValueDecoder, encode: Encode, malformed: bytes) -> None:
        """A batch may have more and longer values than the ones before, and bad ones among them."""
        decoder.decode(payloads_of([encode(_ADA)]))
        numbers = range(4_000)
        values: list[Value] = [{"number": one, "text": "x" * (one % 400)} for one in numbers]
        payloads = [encode(value) for value in values]
        payloads[::9] = [malformed] * len(payloads[::9])
        decoded = decoder.decode(payloads_of(payloads))
        is_bad = np.arange(len(values)) % 9 == 0
        assert np.array_equal(decoded.reasons != 0, is_bad)
        found = decoded.column.filter(pa.array(~is_bad)).to_pylist()
        assert found == [value for value in values if value["number"] % 9]

    def test_a_result_stays(self, decoder: ValueDecoder, encode: Encode) -> None:
        """Later batches do not change a result."""
        first = decoder.decode(payloads_of([encode(_ADA), encode(_BOB)]))
        decoder.decode(payloads_of([encode(_EVE), encode(_EVE), encode(_EVE)]))
        _assert_good(first, [_ADA, _BOB])


def _changed(noise: random.Random, payload: bytes) -> bytes:
    changed = bytearray(payload)
    changed[noise.randrange(len(changed))] = noise.randrange(256)
    return bytes(changed)


def _without(decoded: DecodedValues, row: int) -> DecodedValues:
    rows = np.delete(np.arange(len(decoded.reasons)), row)
    return DecodedValues(decoded.column.take(rows), decoded.reasons[rows], decoded.fields[rows])


def _assert_good(decoded: DecodedValues, values: Sequence[Value | None]) -> None:
    assert decoded.column.to_pylist() == [*values]
    assert decoded.reasons.tolist() == [FailureReason.NONE] * len(values)
    assert decoded.fields.tolist() == [-1] * len(values)


def _assert_no_text(decoded: DecodedValues, row: int) -> None:
    """Check that a bad row is null, or has null for each field that could not be decoded."""
    value = decoded.column[row].as_py()
    assert value is None or None in value.values()
