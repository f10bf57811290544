"""librdkafka's messages to columns, in one pass of machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..kafka_format import column_mask as bit
from ..kafka_format import decode_cursor as at
from ..kafka_format import status
from ..kernels.kernel import kernel
from ..kernels.kinds import BUFFERS, LIMITS
from ..kernels.memory import copy_from, load_int32, load_int64, load_uint8, load_uint64
from ..kernels.parts import inlined
from .librdkafka import Message, address_of, c_function

if TYPE_CHECKING:
    import ctypes

    from ..kernels.arrays import UInt64Array

EVENT: Final = 100
"""The next message is no record: its error code is an event of the partition."""

BAD_HEADERS: Final = 101
"""The headers of the next message are corrupt."""

TIMESTAMP_TYPE: Final = 16
"""``timestampType`` is projected: a bit that ``column_mask`` does not use."""

_NOENT: Final = -156
"""``RD_KAFKA_RESP_ERR__NOENT``: there are no headers, or no more of them."""

_ERR: Final = np.uint64(Message.err.offset)
_PAYLOAD: Final = np.uint64(Message.payload.offset)
_LEN: Final = np.uint64(Message.len.offset)
_KEY: Final = np.uint64(Message.key.offset)
_KEY_LEN: Final = np.uint64(Message.key_len.offset)
_OFFSET: Final = np.uint64(Message.offset.offset)

_DESTROY: Final = 0
_TIMESTAMP: Final = 1
_HEADERS: Final = 2
_HEADER: Final = 3
_HEADER_COUNT: Final = 4
_OUT: Final = 5
_FIELD_COUNT: Final = 6
"""The fields of ``ConsumerCalls.addresses``: functions, and the memory that they write to."""

_destroy = c_function("void", "uint64")
_timestamp = c_function("int64", "uint64", "uint64")
_headers = c_function("int32", "uint64", "uint64")
_header = c_function("int32", *["uint64"] * 5)
_header_count = c_function("int64", "uint64")

_WORD: Final = np.uint64(8)
_NULL: Final = np.uint64(0)


class ConsumerCalls:
    """The addresses of the functions that kernels call."""

    __slots__ = ("_out", "addresses")

    def __init__(self, library: ctypes.CDLL) -> None:
        # Three words: the name, the value and the size of a header.
        self._out: UInt64Array = np.zeros(3, np.uint64)
        self.addresses: UInt64Array = np.zeros(_FIELD_COUNT, np.uint64)
        self.addresses[_DESTROY] = address_of(library.rd_kafka_message_destroy)
        self.addresses[_TIMESTAMP] = address_of(library.rd_kafka_message_timestamp)
        self.addresses[_HEADERS] = address_of(library.rd_kafka_message_headers)
        self.addresses[_HEADER] = address_of(library.rd_kafka_header_get_all)
        self.addresses[_HEADER_COUNT] = address_of(library.rd_kafka_header_cnt)
        self.addresses[_OUT] = self._out.ctypes.data


@kernel("uint64[]", "int64[]", "int64", "int64", LIMITS, BUFFERS, "uint64[]")
def gather(
    messages: Any,
    cursor: Any,
    until_offset: int,
    mask: int,
    limits: Any,
    columns: Any,
    calls: Any,
) -> Any:
    """Append messages to the rows of the columns; destroy each and replace its address by 0.

    Continues with message ``cursor[RECORD]`` and returns a ``status``; the cursor is then before
    the message that was not written. ``DONE`` means that all were, or that the range is complete.
    ``cursor[OFFSET]`` is the last offset that was passed; ``limits`` are ``RecordLimits.numbers``.
    """
    while cursor[at.RECORD] < len(messages):
        message = messages[cursor[at.RECORD]]
        if load_int32(message + _ERR) != 0:
            return EVENT
        offset = load_int64(message + _OFFSET)
        if offset >= until_offset:
            cursor[at.OFFSET] = offset
            return status.DONE
        if offset > cursor[at.OFFSET]:
            result = _put_message(message, offset, cursor, mask, limits, columns, calls)
            if result != status.DONE:
                return result
            cursor[at.OFFSET] = offset
        _destroy(calls[_DESTROY], (message,))
        messages[cursor[at.RECORD]] = _NULL
        cursor[at.RECORD] += 1
    return status.DONE


@kernel("uint64[]", "uint64[]")
def destroy(messages: Any, calls: Any) -> None:
    """Destroy the remaining messages."""
    for place in range(len(messages)):
        if messages[place] != _NULL:
            _destroy(calls[_DESTROY], (messages[place],))
            messages[place] = _NULL


@inlined
def _put_message(
    message: Any, offset: int, cursor: Any, mask: int, limits: Any, columns: Any, calls: Any
) -> Any:
    """Append one message; return a ``status``."""
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    row = cursor[at.ROWS]
    size = load_int64(message + _KEY_LEN) + load_int64(message + _LEN)
    if size > limits[0]:
        cursor[at.SIZE] = size
        return status.RECORD_TOO_LARGE
    if row >= len(offsets):
        return status.ROWS_FULL
    key_bytes = cursor[at.KEY_BYTES]
    if mask & bit.KEY:
        key_bytes = _put_value(
            keys, row, key_bytes, load_uint64(message + _KEY), load_int64(message + _KEY_LEN)
        )
        if key_bytes < 0:
            return status.KEYS_FULL
    value_bytes = cursor[at.VALUE_BYTES]
    if mask & bit.VALUE:
        length = load_int64(message + _LEN)
        value_bytes = _put_value(values, row, value_bytes, load_uint64(message + _PAYLOAD), length)
        if value_bytes < 0:
            return status.VALUES_FULL
    if mask & (bit.TIMESTAMP | TIMESTAMP_TYPE):
        timestamp = _timestamp(calls[_TIMESTAMP], (message, calls[_OUT]))
        # librdkafka counts the types from 0, and Kafka from -1.
        timestamp_types[row] = load_int32(calls[_OUT]) - 1
        timestamps[row] = timestamp * 1_000
        if mask & bit.TIMESTAMP and not _fits(timestamp):
            cursor[at.TIMESTAMP] = timestamp
            return status.BAD_TIMESTAMP
    if mask & bit.HEADERS:
        result = _put_headers(headers, row, cursor, message, size, limits, calls)
        if result != status.DONE:
            return result
    offsets[row] = offset
    cursor[at.KEY_BYTES] = key_bytes
    cursor[at.VALUE_BYTES] = value_bytes
    cursor[at.ROWS] = row + 1
    return status.DONE


@inlined
def _fits(timestamp: int) -> bool:
    return -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS


@inlined
def _put_value(column: Any, row: Any, used: Any, address: Any, length: Any) -> Any:
    """Append bytes to a column, null without an address; return its size, or -1 if it is full."""
    offsets, target, validity = column
    validity[row] = address != _NULL
    if address == _NULL:
        offsets[row + 1] = used
        return used
    end = used + length
    if end > len(target):
        return np.int64(-1)
    copy_from(target, used, address, length)
    offsets[row + 1] = end
    return end


@inlined
def _put_headers(
    headers: Any, row: Any, cursor: Any, message: Any, payload: Any, limits: Any, calls: Any
) -> Any:
    """Append a message's headers; return a ``status``. ``payload`` is the size of the rest."""
    list_offsets, list_validity, keys, values = headers
    max_bytes, max_headers, max_header_bytes = limits
    out = calls[_OUT]
    entry = first = cursor[at.HEADERS]
    key_bytes = cursor[at.HEADER_KEY_BYTES]
    value_bytes = cursor[at.HEADER_VALUE_BYTES]
    size = np.int64(0)
    error = _headers(calls[_HEADERS], (message, out))
    found = load_uint64(out)
    if error == 0:
        count = _header_count(calls[_HEADER_COUNT], (found,))
        if count > max_headers:
            cursor[at.SIZE] = count
            return status.TOO_MANY_HEADERS
    number = np.uint64(0)
    while error == 0:
        error = _header(calls[_HEADER], (found, number, out, out + _WORD, out + _WORD * 2))
        if error != 0:
            break
        number += np.uint64(1)
        name = load_uint64(out)
        name_size = _string_length(name)
        value_size = load_int64(out + _WORD * 2)
        size += name_size + value_size
        if size > max_header_bytes or payload + size > max_bytes:
            # The rest is only measured.
            continue
        if entry >= len(keys[2]):
            return status.HEADERS_FULL
        key_bytes = _put_value(keys, entry, key_bytes, name, name_size)
        if key_bytes < 0:
            return status.HEADER_KEYS_FULL
        value_bytes = _put_value(values, entry, value_bytes, load_uint64(out + _WORD), value_size)
        if value_bytes < 0:
            return status.HEADER_VALUES_FULL
        entry += 1
    if error != _NOENT:
        return BAD_HEADERS
    if size > max_header_bytes:
        cursor[at.SIZE] = size
        return status.HEADERS_TOO_LARGE
    if payload + size > max_bytes:
        cursor[at.SIZE] = payload + size
        return status.RECORD_TOO_LARGE
    list_offsets[row + 1] = entry
    list_validity[row] = entry > first
    cursor[at.HEADERS] = entry
    cursor[at.HEADER_KEY_BYTES] = key_bytes
    cursor[at.HEADER_VALUE_BYTES] = value_bytes
    return status.DONE


@inlined
def _string_length(text: Any) -> Any:
    """Return the length of a C string."""
    length = np.int64(0)
    while load_uint8(text + np.uint64(length)) != 0:
        length += 1
    return length
