"""librdkafka's messages to columns, in one pass of machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numba import types

from ..kafka_format import column_mask as wants
from ..kafka_format import decode_cursor as at
from ..kafka_format import status
from ..kernels.compiled import compiled, force_inlined, inlined
from ..kernels.intrinsics import borrowed, copy_from
from .foreign import byte_at, function, int32_at, int64_at, uint64_at
from .librdkafka import Message, address_of

if TYPE_CHECKING:
    import ctypes

    Addresses: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

EVENT: Final = 100
"""The next message is none, and says of the partition what its error code is."""

BAD_HEADERS: Final = 101
"""The headers of the next message are not what Kafka writes."""

TIMESTAMP_TYPE: Final = 16
"""``timestampType`` is projected: a bit besides those of ``columns_wanted``."""

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
_OUT: Final = 4
_FIELDS: Final = 5
"""What ``Calls.addresses`` holds: functions, and the memory that they write to."""

_destroy = function(types.void, types.uint64)
_timestamp = function(types.int64, types.uint64, types.uint64)
_headers = function(types.int32, types.uint64, types.uint64)
_header = function(types.int32, *[types.uint64] * 5)

_WORD: Final = np.uint64(8)
_NULL: Final = np.uint64(0)


class Calls:
    """The functions that kernels call, by address."""

    __slots__ = ("_out", "addresses")

    def __init__(self, library: ctypes.CDLL) -> None:
        # Three words: what a header is given back as, at the most.
        self._out: Addresses = np.zeros(3, np.uint64)
        self.addresses: Addresses = np.zeros(_FIELDS, np.uint64)
        self.addresses[_DESTROY] = address_of(library.rd_kafka_message_destroy)
        self.addresses[_TIMESTAMP] = address_of(library.rd_kafka_message_timestamp)
        self.addresses[_HEADERS] = address_of(library.rd_kafka_message_headers)
        self.addresses[_HEADER] = address_of(library.rd_kafka_header_get_all)
        self.addresses[_OUT] = self._out.ctypes.data


@compiled
def gather(
    messages: Any, cursor: Any, until_offset: int, wanted: int, columns: Any, calls: Any
) -> Any:
    """Write messages as rows behind those there are, destroy them, and put 0 where each was.

    Goes on with message ``cursor[RECORD]`` and comes back with a ``status``; the cursor then
    stands before the message that was not written. ``DONE`` says that all were, or that the range
    is at its end. ``cursor[OFFSET]`` is the last offset that was passed.
    """
    messages, cursor, columns, calls = borrowed((messages, cursor, columns, calls))
    while cursor[at.RECORD] < len(messages):
        message = messages[cursor[at.RECORD]]
        if int32_at(message + _ERR) != 0:
            return EVENT
        offset = int64_at(message + _OFFSET)
        if offset >= until_offset:
            cursor[at.OFFSET] = offset
            return status.DONE
        if offset > cursor[at.OFFSET]:
            result = _put_message(message, offset, cursor, wanted, columns, calls)
            if result != status.DONE:
                return result
            cursor[at.OFFSET] = offset
        _destroy(calls[_DESTROY], (message,))
        messages[cursor[at.RECORD]] = _NULL
        cursor[at.RECORD] += 1
    return status.DONE


@compiled
def destroy(messages: Any, calls: Any) -> None:
    """Destroy the messages that are left."""
    messages, calls = borrowed((messages, calls))
    for place in range(len(messages)):
        if messages[place] != _NULL:
            _destroy(calls[_DESTROY], (messages[place],))
            messages[place] = _NULL


@force_inlined
def _put_message(
    message: Any, offset: int, cursor: Any, wanted: int, columns: Any, calls: Any
) -> Any:
    """Write one message; give a ``status``."""
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    row = cursor[at.ROWS]
    if row >= len(offsets):
        return status.ROWS_FULL
    key_at = cursor[at.KEY_BYTES]
    if wanted & wants.KEY:
        key_at = _put(keys, row, key_at, uint64_at(message + _KEY), int64_at(message + _KEY_LEN))
        if key_at < 0:
            return status.KEYS_FULL
    value_at = cursor[at.VALUE_BYTES]
    if wanted & wants.VALUE:
        length = int64_at(message + _LEN)
        value_at = _put(values, row, value_at, uint64_at(message + _PAYLOAD), length)
        if value_at < 0:
            return status.VALUES_FULL
    if wanted & (wants.TIMESTAMP | TIMESTAMP_TYPE):
        timestamp = _timestamp(calls[_TIMESTAMP], (message, calls[_OUT]))
        # librdkafka counts the types from 0, and Kafka from -1.
        timestamp_types[row] = int32_at(calls[_OUT]) - 1
        timestamps[row] = timestamp * 1_000
        if wanted & wants.TIMESTAMP and not _fits(timestamp):
            cursor[at.TIMESTAMP] = timestamp
            return status.BAD_TIMESTAMP
    if wanted & wants.HEADERS:
        result = _put_headers(headers, row, cursor, message, calls)
        if result != status.DONE:
            return result
    offsets[row] = offset
    cursor[at.KEY_BYTES] = key_at
    cursor[at.VALUE_BYTES] = value_at
    cursor[at.ROWS] = row + 1
    return status.DONE


@inlined
def _fits(timestamp: int) -> bool:
    return -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS


@force_inlined
def _put(column: Any, row: Any, used: Any, address: Any, length: Any) -> Any:
    """Write bytes, or null for no address, and give how much is used then; -1 if it is full."""
    ends, into, valid = column
    valid[row] = address != _NULL
    if address == _NULL:
        ends[row + 1] = used
        return used
    behind = used + length
    if behind > len(into):
        return np.int64(-1)
    copy_from(into, used, address, length)
    ends[row + 1] = behind
    return behind


@force_inlined
def _put_headers(headers: Any, row: Any, cursor: Any, message: Any, calls: Any) -> Any:
    """Write a message's headers; give a ``status``."""
    list_ends, list_valid, keys, values = headers
    out = calls[_OUT]
    entry = first = cursor[at.HEADERS]
    key_at = cursor[at.HEADER_KEY_BYTES]
    value_at = cursor[at.HEADER_VALUE_BYTES]
    error = _headers(calls[_HEADERS], (message, out))
    found = uint64_at(out)
    while error == 0:
        error = _header(
            calls[_HEADER], (found, np.uint64(entry - first), out, out + _WORD, out + _WORD * 2)
        )
        if error != 0:
            break
        if entry >= len(keys[2]):
            return status.HEADERS_FULL
        name = uint64_at(out)
        key_at = _put(keys, entry, key_at, name, _length(name))
        if key_at < 0:
            return status.HEADER_KEYS_FULL
        value_at = _put(values, entry, value_at, uint64_at(out + _WORD), int64_at(out + _WORD * 2))
        if value_at < 0:
            return status.HEADER_VALUES_FULL
        entry += 1
    if error != _NOENT:
        return BAD_HEADERS
    list_ends[row + 1] = entry
    list_valid[row] = entry > first
    cursor[at.HEADERS] = entry
    cursor[at.HEADER_KEY_BYTES] = key_at
    cursor[at.HEADER_VALUE_BYTES] = value_at
    return status.DONE


@inlined
def _length(text: Any) -> Any:
    """Count the bytes before the one that is zero."""
    length = np.int64(0)
    while byte_at(text + np.uint64(length)) != 0:
        length += 1
    return length
