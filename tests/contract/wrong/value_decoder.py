"""Decoders that break a promise of ``ValueDecoder``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pyspark_kafka.domain.values.data_types import StructType
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.ports.values.value_format import DecodedValues, Payloads, ValueDecoder
from pyspark_kafka.ports.values.value_types import arrow_type
from pyspark_kafka.testing import ValueDecoderContract
from pyspark_kafka.testing.value_decoder_contract import DECODED_TYPE

from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, int, int]
"""A value, its ``FailureReason``, and the number of its field."""

_TYPES: Final = (int, str)


class Passing(ValueDecoder):
    """Reads JSON with Python's parser, and adds the bytes that ``more`` asks for."""

    @property
    def data_type(self) -> StructType:
        return DECODED_TYPE

    @property
    def field_names(self) -> tuple[str, ...]:
        return DECODED_TYPE.names

    def decode(self, payloads: Payloads) -> DecodedValues:
        return self.result([self.row(payloads, row) for row in range(len(payloads.starts))])

    def result(self, rows: list[Row]) -> DecodedValues:
        """Return the rows as columns."""
        values = [value for value, _, _ in rows]
        return DecodedValues(
            pa.array(values, arrow_type(DECODED_TYPE)),
            np.array([reason for _, reason, _ in rows], np.uint8),
            np.array([field for _, _, field in rows], np.int32),
        )

    def row(self, payloads: Payloads, row: int) -> Row:
        """Return one row."""
        if payloads.reasons[row]:
            return None, payloads.reasons[row], -1
        if payloads.starts[row] < 0:
            return None, FailureReason.NONE, -1
        return self.parsed(self.payload(payloads, row))

    def payload(self, payloads: Payloads, row: int) -> bytes:
        """Return the payload of a row."""
        start, end = int(payloads.starts[row]), int(payloads.ends[row])
        data: Any = payloads.values.buffers()[2]
        return bytes(data.slice(start, end - start).to_pybytes())

    def parsed(self, payload: bytes) -> Row:
        """Return the row of a payload."""
        try:
            value = json.loads(payload)
            # Half a surrogate pair is a text for Python, and none for Arrow.
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return None, FailureReason.MALFORMED, -1
        if not isinstance(value, dict):
            return None, FailureReason.TYPE_MISMATCH, -1
        fields = [value.get(name) for name in DECODED_TYPE.names]
        for number, (field, kind) in enumerate(zip(fields, _TYPES, strict=True)):
            if not isinstance(field, kind) or (isinstance(field, int) and abs(field) > 2**63):
                return None, FailureReason.TYPE_MISMATCH, number
        return dict(zip(DECODED_TYPE.names, fields, strict=True)), FailureReason.NONE, -1


class HasAnotherColumnType(Passing):
    """Returns 32-bit numbers."""

    def result(self, rows: list[Row]) -> DecodedValues:
        right = super().result([(None, reason, field) for _, reason, field in rows])
        narrow = pa.struct([pa.field("number", pa.int32()), pa.field("text", pa.string())])
        return DecodedValues(pa.nulls(len(rows), narrow), right.reasons, right.fields)


class TurnsRowsAround(Passing):
    """Returns the last value first."""

    def result(self, rows: list[Row]) -> DecodedValues:
        return super().result(rows[::-1])


class FailsWithoutRows(Passing):
    """Expects at least one value."""

    def result(self, rows: list[Row]) -> DecodedValues:
        rows[0]  # raises
        return super().result(rows)


class TakesTombstonesForFailures(Passing):
    """Gives a tombstone a reason."""

    def row(self, payloads: Payloads, row: int) -> Row:
        if payloads.starts[row] < 0:
            return None, FailureReason.TRUNCATED, -1
        return super().row(payloads, row)


class IgnoresPlaces(Passing):
    """Takes the whole value for its payload."""

    def payload(self, payloads: Payloads, row: int) -> bytes:
        value: bytes = payloads.values[row].as_py()
        return value[4:-4]

    def row(self, payloads: Payloads, row: int) -> Row:
        # Counts rows from the beginning of the buffer.
        return super().row(payloads, (row + payloads.values.offset) % len(payloads.starts))


class StopsAtABadValue(Passing):
    """Leaves the values behind a bad one out."""

    def result(self, rows: list[Row]) -> DecodedValues:
        bad = next((number for number, (_, reason, _) in enumerate(rows) if reason), len(rows))
        return super().result(rows[:bad] + [(None, 1, -1)] * (len(rows) - bad))


class HasNoReasons(Passing):
    """Returns null for a bad value, and does not say so."""

    def parsed(self, payload: bytes) -> Row:
        return super().parsed(payload)[0], FailureReason.NONE, -1


class NamesNoField(Passing):
    """Returns numbers of fields that do not exist."""

    def parsed(self, payload: bytes) -> Row:
        value, reason, _ = super().parsed(payload)
        return value, reason, 99 if reason else -1


class DecodesWhatHasFailed(Passing):
    """Does not look at what framing has found."""

    def row(self, payloads: Payloads, row: int) -> Row:
        if payloads.starts[row] < 0:
            return None, FailureReason.NONE, -1
        return self.parsed(self.payload(payloads, row))


class ReadsOn(Passing):
    """Completes a value that ends too early."""

    def parsed(self, payload: bytes) -> Row:
        found = super().parsed(payload)
        return super().parsed(payload + b"}") if found[1] else found


class FailsForNoise(Passing):
    """Raises the parser's errors."""

    def parsed(self, payload: bytes) -> Row:
        payload.decode()
        return super().parsed(payload)


class HasLittleRoom(Passing):
    """Decodes as many values as it did in its first batch."""

    room = 0

    def result(self, rows: list[Row]) -> DecodedValues:
        self.room = self.room or max(len(rows), 64)
        kept = min(self.room, len(rows)) if len(rows) > 2_000 else len(rows)
        return super().result(rows[:kept] + [(None, 0, -1)] * (len(rows) - kept))


class ReusesItsResult(Passing):
    """Writes into the numbers that it has returned."""

    last: DecodedValues | None = None

    def result(self, rows: list[Row]) -> DecodedValues:
        if self.last is not None:
            self.last.reasons.fill(FailureReason.MALFORMED)
        self.last = super().result(rows)
        return self.last


def _encode() -> Callable[[dict[str, Any]], bytes]:
    return lambda value: json.dumps(value).encode()


def _suite(adapter: type[ValueDecoder]) -> type:
    return suite_with(
        ValueDecoderContract,
        decoder=adapter,
        encode=_encode,
        malformed=lambda: b'{"text":7,"number":"many"}',
    )


_wrong: Final = wrong_with(_suite)
_Contract: Final = ValueDecoderContract

FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(_Contract.test_the_type, HasAnotherColumnType),
        *_wrong(_Contract.test_values_keep_their_order, TurnsRowsAround),
        *_wrong(_Contract.test_no_values, FailsWithoutRows),
        *_wrong(_Contract.test_a_tombstone_is_null, TakesTombstonesForFailures),
        *_wrong(_Contract.test_a_slice_of_a_batch, IgnoresPlaces),
        *_wrong(_Contract.test_a_bad_value_does_not_affect_others, StopsAtABadValue, HasNoReasons),
        *_wrong(_Contract.test_the_field_of_a_failure_has_a_name, NamesNoField),
        *_wrong(_Contract.test_a_value_that_has_failed_is_not_decoded, DecodesWhatHasFailed),
        *_wrong(_Contract.test_a_value_that_ends_too_early, ReadsOn),
        *_wrong(_Contract.test_random_bytes, FailsForNoise),
        *_wrong(_Contract.test_many_values, HasLittleRoom),
        *_wrong(_Contract.test_a_result_stays, ReusesItsResult),
    ),
)
