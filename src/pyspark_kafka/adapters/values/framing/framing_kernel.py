"""The kernel that finds the framing and the payload of each value of a batch.

It has no arrays for what it reads, only addresses. Arrow's offsets have 32 bits, and its validity a
bit for each row, or no buffer (address 0) where no row is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import load_int32, load_int64, load_uint8, store_int32, store_int64
from ...kernels.parts import inlined
from ..columns import decoding
from ..columns.bytes_kernel import are_equal, hash_bytes, read_varint, zig_zag
from .wire_format import GUID_BYTES, GUID_MAGIC, ID_BYTES, ID_MAGIC, MAX_INDEXES

if TYPE_CHECKING:
    from ...kernels.arrays import Int32Array, Int64Array, UInt8Array

NO_FRAMING: Final = 0
BEFORE_PAYLOAD: Final = 1
IN_HEADER: Final = 2
"""In a header, or before the payload where there is no such header."""

_MAX_VARINT_BYTES: Final = 5
_ID_LENGTH: Final = 1 + ID_BYTES
_GUID_LENGTH: Final = 1 + GUID_BYTES


@kernel(
    ("int64",) * 4,
    ("int64",) * 11,
    ("int64",) * 2,
    ("int64",) * 3,
    "int64[]",
    "int64[]",
    "uint8[]",
    "int32[]",
)
def find_payloads(
    values: tuple[int, int, int, int],
    headers: tuple[int, ...],
    framing: tuple[int, int],
    table: tuple[int, int, int],
    starts: Int64Array,
    ends: Int64Array,
    reasons: UInt8Array,
    writers: Int32Array,
) -> Any:
    """Fill the fields of ``Payloads``, and return how many distinct framings there are.

    ``values`` are the addresses of offsets, validity and data, with the first row's bit before the
    last; ``headers`` likewise (``_last_header``). ``framing`` is where the framing is, and 1 if it
    has message indexes. ``table`` is the address of a hash table of 32-bit numbers, all 0, its mask
    (a power of two less 1), and the address of the framings: address and length of each, 64 bits.
    ``writers`` are the numbers of framings in order of appearance.
    """
    offsets, validity, bit, data = values
    mode, has_indexes = framing
    slots, mask, framings = table
    count = 0
    last_at, last_length, last_writer, last_in_header = 0, 0, 0, False
    for row in range(starts.size):
        reasons[row] = 0
        writers[row] = -1
        if not is_valid(validity, bit + row):
            starts[row] = ends[row] = -1
            continue
        start, end = load_int32(offsets + 4 * row), load_int32(offsets + 4 * row + 4)
        starts[row], ends[row] = start, end
        if mode == NO_FRAMING:
            continue
        at, limit, in_header = data + start, data + end, False
        if mode == IN_HEADER:
            header, header_end = _last_header(headers, row)
            if header != 0:
                at, limit, in_header = header, header_end, True
        if (
            last_length
            and last_in_header == in_header
            and limit - at >= last_length
            and are_equal(at, last_at, last_length)
        ):
            writers[row] = last_writer
            starts[row] = start if in_header else start + last_length
            continue
        length = _framing_length(at, limit, has_indexes)
        if length < 0:
            reasons[row] = -length
            continue
        slot = _find_slot(slots, mask, framings, at, length)
        writer = load_int32(slot) - 1
        if writer < 0:
            writer = count
            count += 1
            store_int32(slot, count)
            store_int64(framings + 16 * writer, at)
            store_int64(framings + 16 * writer + 8, length)
        last_at, last_length, last_writer, last_in_header = at, length, writer, in_header
        writers[row] = writer
        if not in_header:
            starts[row] = start + length
    return count


@inlined
def is_valid(validity: int, bit: int) -> Any:
    """Return whether a row is not null."""
    return validity == 0 or load_uint8(validity + (bit >> 3)) >> (bit & 7) & 1 != 0


@inlined
def _last_header(headers: tuple[int, ...], row: int) -> Any:
    """Return where the value of the last header with the name starts and ends, or 0 and 0.

    The last one counts, and none if it is null (``DualSchemaIdDeserializer``).
    """
    offsets, validity, bit, name, name_length = headers[:5]
    key_offsets, keys, value_offsets, value_validity, value_bit, values = headers[5:]
    if not is_valid(validity, bit + row):
        return 0, 0
    first = load_int32(offsets + 4 * row)
    number = load_int32(offsets + 4 * row + 4)
    while number > first:
        number -= 1
        start = load_int32(key_offsets + 4 * number)
        length = load_int32(key_offsets + 4 * number + 4) - start
        if length == name_length and are_equal(keys + start, name, length):
            if not is_valid(value_validity, value_bit + number):
                return 0, 0
            place = value_offsets + 4 * number
            return values + load_int32(place), values + load_int32(place + 4)
    return 0, 0


@inlined
def _framing_length(at: int, end: int, has_indexes: int) -> Any:
    """Return the length of a framing, or a negative ``FailureReason``."""
    if at >= end:
        return -decoding.NO_FRAMING
    magic = load_uint8(at)
    length = _ID_LENGTH
    if magic == GUID_MAGIC:
        length = _GUID_LENGTH
    elif magic != ID_MAGIC:
        return -decoding.NO_FRAMING
    if end - at < length:
        return -decoding.NO_FRAMING
    if not has_indexes:
        return length
    after = _end_of_indexes(at + length, end)
    return after if after < 0 else after - at


@inlined
def _end_of_indexes(at: int, end: int) -> Any:
    """Return where the message indexes end, or a negative ``FailureReason``."""
    count, at = _varint(at, end)
    if at < 0:
        return at
    if count < 0 or count > MAX_INDEXES:
        return -decoding.UNKNOWN_MESSAGE
    for _ in range(count):
        index, at = _varint(at, end)
        if at < 0:
            return at
        if index < 0:
            return -decoding.UNKNOWN_MESSAGE
    return at


@inlined
def _varint(at: int, end: int) -> Any:
    """Return a zig-zag varint of 32 bits and where it ends; or 0 and a negative reason."""
    bits, after = read_varint(at, end, np.int64(_MAX_VARINT_BYTES))
    if bits >> np.uint64(32) != 0:
        return np.int64(0), np.int64(-decoding.BAD_VARINT)
    return zig_zag(bits), np.int64(after)


@inlined
def _find_slot(slots: int, mask: int, framings: int, at: int, length: int) -> Any:
    """Return the address of the slot that has a framing, or of an empty one for it."""
    code = hash_bytes(at, length, np.uint64(0))
    number = int(code >> np.uint64(20)) & mask
    while True:
        slot = slots + 4 * number
        writer = load_int32(slot) - 1
        if writer < 0:
            return slot
        known = framings + 16 * writer
        if load_int64(known + 8) == length and are_equal(load_int64(known), at, length):
            return slot
        number = (number + 1) & mask
