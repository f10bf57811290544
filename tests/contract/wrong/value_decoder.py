import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pyspark_kafka.domain.values.data_types import StructType
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.ports.values.value_format import DecodedValues, Payloads, ValueDecoder
from pyspark_kafka.ports.values.value_types import arrow_type
from pyspark_kafka.testing import ValueDecoderContract
from pyspark_kafka.testing.value_decoder_contract import DECODED_TYPE

from .adapter import Faults, suite_with

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
        if payloads.reasons[row]:
            return None, payloads.reasons[row], -1
        if payloads.starts[row] < 0:
            return None, FailureReason.NONE, -1
        return self.parsed(self.payload(payloads, row))

    def payload(self, payloads: Payloads, row: int) -> bytes:
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


def _encode() -> Callable[[dict[str, Any]], bytes]:
    return lambda value: json.dumps(value).encode()


def _suite(adapter: type[ValueDecoder]) -> type:
    return suite_with(
        ValueDecoderContract,
        decoder=adapter,
        encode=_encode,
        malformed=lambda: b'{"text":7,"number":"many"}',
    )


_Contract: Final = ValueDecoderContract


wrong: Final = Faults(Passing, _suite)


@wrong(_Contract.test_the_type, "result")
def returns_32_bit_numbers(self, rows):
    right = Passing.result(self, [(None, reason, field) for _, reason, field in rows])
    narrow = pa.struct([pa.field("number", pa.int32()), pa.field("text", pa.string())])
    return DecodedValues(pa.nulls(len(rows), narrow), right.reasons, right.fields)


@wrong(_Contract.test_values_keep_their_order, "result")
def returns_the_last_value_first(self, rows):
    return Passing.result(self, rows[::-1])


@wrong(_Contract.test_no_values, "result")
def expects_at_least_one_value(self, rows):
    rows[0]  # raises
    return Passing.result(self, rows)


@wrong(_Contract.test_a_tombstone_is_null, "row")
def gives_a_tombstone_a_reason(self, payloads, row):
    if payloads.starts[row] < 0:
        return None, FailureReason.TRUNCATED, -1
    return Passing.row(self, payloads, row)


@wrong(_Contract.test_a_slice_of_a_batch)
class IgnoresPlaces(Passing):
    """Takes the whole value for its payload."""

    def payload(self, payloads, row):
        value: bytes = payloads.values[row].as_py()
        return value[4:-4]

    def row(self, payloads, row):
        # Counts rows from the beginning of the buffer.
        return super().row(payloads, (row + payloads.values.offset) % len(payloads.starts))


@wrong(_Contract.test_a_bad_value_does_not_affect_others, "result")
def leaves_the_values_behind_a_bad_one_out(self, rows):
    bad = next((number for number, (_, reason, _) in enumerate(rows) if reason), len(rows))
    return Passing.result(self, rows[:bad] + [(None, 1, -1)] * (len(rows) - bad))


@wrong(_Contract.test_a_bad_value_does_not_affect_others, "parsed")
def returns_null_for_a_bad_value_and_does_not_say_so(self, payload):
    return Passing.parsed(self, payload)[0], FailureReason.NONE, -1


@wrong(_Contract.test_the_field_of_a_failure_has_a_name, "parsed")
def returns_numbers_of_fields_that_do_not_exist(self, payload):
    value, reason, _ = Passing.parsed(self, payload)
    return value, reason, 99 if reason else -1


@wrong(_Contract.test_a_value_that_has_failed_is_not_decoded, "row")
def does_not_look_at_what_framing_has_found(self, payloads, row):
    if payloads.starts[row] < 0:
        return None, FailureReason.NONE, -1
    return self.parsed(self.payload(payloads, row))


@wrong(_Contract.test_a_value_that_ends_too_early, "parsed")
def completes_a_value_that_ends_too_early(self, payload):
    found = Passing.parsed(self, payload)
    return Passing.parsed(self, payload + b"}") if found[1] else found


@wrong(_Contract.test_random_bytes, "parsed")
def raises_the_parsers_errors(self, payload):
    payload.decode()
    return Passing.parsed(self, payload)


@wrong(_Contract.test_many_values)
class HasLittleRoom(Passing):
    """Decodes as many values as it did in its first batch."""

    room = 0

    def result(self, rows):
        self.room = self.room or max(len(rows), 64)
        kept = min(self.room, len(rows)) if len(rows) > 2_000 else len(rows)
        return super().result(rows[:kept] + [(None, 0, -1)] * (len(rows) - kept))


@wrong(_Contract.test_a_result_stays)
class ReusesItsResult(Passing):
    """Writes into the numbers that it has returned."""

    last: DecodedValues | None = None

    def result(self, rows):
        if self.last is not None:
            self.last.reasons.fill(FailureReason.MALFORMED)
        self.last = super().result(rows)
        return self.last
