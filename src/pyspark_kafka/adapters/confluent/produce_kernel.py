"""Columns to librdkafka's queues, in one pass of machine code: no record becomes an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numba import types

from ..kafka_format.java_sizes import field_length, header_range
from ..kernels.compiled import compiled, force_inlined, inlined
from ..kernels.intrinsics import borrowed
from ..partitioning.topic_rows import NO_PARTITION
from .foreign import function
from .librdkafka import Message, address_of

if TYPE_CHECKING:
    import ctypes

    Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

MESSAGES: Final = 256
"""The rows that are handed over at once: their messages stay in the processor's cache."""

_COPY: Final = 0x2
_PARTITION: Final = 0x8
"""``RD_KAFKA_MSG_F_COPY`` and ``RD_KAFKA_MSG_F_PARTITION``."""

_WORD: Final = 8
_ERR: Final = Message.err.offset // _WORD
_TO_PARTITION: Final = Message.partition.offset // _WORD
_PAYLOAD: Final = Message.payload.offset // _WORD
_LEN: Final = Message.len.offset // _WORD
_KEY: Final = Message.key.offset // _WORD
_KEY_LEN: Final = Message.key_len.offset // _WORD
_MESSAGE_WORDS: Final = 9

# The tags of `rd_kafka_vu_t`, in the order in which they are handed over; 64 bytes follow a tag.
_TAGS: Final = (2, 3, 4, 5, 7, 8, 10)
_TOPIC, _TO, _VALUE, _KEY_OF, _FLAGS, _TIMESTAMP, _HEADERS = range(len(_TAGS))
_TAGGED_WORDS: Final = 9

_PRODUCE_BATCH: Final = 0
_PRODUCEVA: Final = 1
_ERROR_CODE: Final = 2
_ERROR_DESTROY: Final = 3
_HEADERS_NEW: Final = 4
_HEADER_ADD: Final = 5
_HEADERS_DESTROY: Final = 6
_CLIENT: Final = 7
_MESSAGES: Final = 8
_FIELDS_OF_ONE: Final = 9
_ADDRESSES: Final = 10
"""What ``Calls.addresses`` holds: functions, the client, and the memory that they read."""

_produce_batch = function(
    types.int32, types.uint64, types.int32, types.int32, types.uint64, types.int32
)
_produceva = function(types.uint64, types.uint64, types.uint64, types.uint64)
_error_code = function(types.int32, types.uint64)
_error_destroy = function(types.void, types.uint64)
_headers_new = function(types.uint64, types.uint64)
_header_add = function(
    types.int32, types.uint64, types.uint64, types.int64, types.uint64, types.int64
)
_headers_destroy = function(types.void, types.uint64)

_NULL: Final = np.uint64(0)
_SOMEWHERE: Final = 1
"""An address that is not null, for values without bytes."""


class Calls:
    """The functions that kernels call, by address, and the memory that they are given."""

    __slots__ = ("arrays",)

    def __init__(self, library: ctypes.CDLL, client: int) -> None:
        messages: Words = np.zeros((MESSAGES, _MESSAGE_WORDS), np.uint64)
        fields: Words = np.zeros((len(_TAGS), _TAGGED_WORDS), np.uint64)
        fields[:, 0] = _TAGS
        addresses: Words = np.zeros(_ADDRESSES, np.uint64)
        self.arrays = addresses, messages, fields
        addresses[_PRODUCE_BATCH] = address_of(library.rd_kafka_produce_batch)
        addresses[_PRODUCEVA] = address_of(library.rd_kafka_produceva)
        addresses[_ERROR_CODE] = address_of(library.rd_kafka_error_code)
        addresses[_ERROR_DESTROY] = address_of(library.rd_kafka_error_destroy)
        addresses[_HEADERS_NEW] = address_of(library.rd_kafka_headers_new)
        addresses[_HEADER_ADD] = address_of(library.rd_kafka_header_add)
        addresses[_HEADERS_DESTROY] = address_of(library.rd_kafka_headers_destroy)
        addresses[_CLIENT] = client
        addresses[_MESSAGES] = messages.ctypes.data
        addresses[_FIELDS_OF_ONE] = fields.ctypes.data


def bases_of(columns: Any) -> Words:
    """Give where the bytes of keys, values, headers' keys and headers' values begin."""
    _, keys, values, headers = columns
    # Of no bytes numpy may give any address, and librdkafka takes 0 for null.
    return np.array(
        [column[1].ctypes.data or _SOMEWHERE for column in (keys, values, headers[2], headers[3])],
        np.uint64,
    )


@compiled
def produce_plain(
    columns: Any, bases: Any, rows: Any, partitions: Any, at: int, topic: int, calls: Any
) -> Any:
    """Hand over keys and values of ``rows`` from place ``at`` on, with the time of now.

    ``partitions`` has one for each of the rows. Gives the place of the first that was not taken,
    and librdkafka's error code for it: 0 if all were. Behind a record that is refused by itself
    others may have been taken; behind one for which there is no room none was.
    """
    columns, bases, rows, partitions = borrowed((columns, bases, rows, partitions))
    addresses, messages, _ = borrowed(calls)
    _, keys, values, _ = columns
    while at < len(rows):
        count = min(len(messages), len(rows) - at)
        for place in range(count):
            row = rows[at + place]
            message = messages[place]
            message[_ERR] = 0
            message[_TO_PARTITION] = np.uint64(np.uint32(partitions[at + place]))
            message[_PAYLOAD], message[_LEN] = _bytes_of(values, bases[1], row)
            message[_KEY], message[_KEY_LEN] = _bytes_of(keys, bases[0], row)
        taken = _produce_batch(
            addresses[_PRODUCE_BATCH],
            (
                np.uint64(topic),
                np.int32(NO_PARTITION),
                np.int32(_COPY | _PARTITION),
                addresses[_MESSAGES],
                np.int32(count),
            ),
        )
        if taken < count:
            for place in range(count):
                error = np.int32(np.uint32(messages[place][_ERR]))
                if error != 0:
                    return at + place, np.int64(error)
        at += count
    return at, np.int64(0)


@compiled
def produce_full(
    columns: Any, bases: Any, rows: Any, partitions: Any, at: int, topic: int, calls: Any
) -> Any:
    """Do as ``produce_plain`` with timestamps and headers besides, one record at a time."""
    columns, bases, rows, partitions = borrowed((columns, bases, rows, partitions))
    addresses, _, fields = borrowed(calls)
    timestamps, keys, values, headers = columns
    fields[_TOPIC][1] = np.uint64(topic)
    fields[_FLAGS][1] = np.uint64(_COPY)
    while at < len(rows):
        row = rows[at]
        fields[_TO][1] = np.uint64(np.uint32(partitions[at]))
        fields[_VALUE][1], fields[_VALUE][2] = _bytes_of(values, bases[1], row)
        fields[_KEY_OF][1], fields[_KEY_OF][2] = _bytes_of(keys, bases[0], row)
        fields[_TIMESTAMP][1] = np.uint64(timestamps[row])
        made = _make_headers(headers, bases, row, addresses)
        fields[_HEADERS][1] = made
        error = _produceva(
            addresses[_PRODUCEVA],
            (
                addresses[_CLIENT],
                addresses[_FIELDS_OF_ONE],
                np.uint64(len(fields) - (made == _NULL)),
            ),
        )
        if error != _NULL:
            code = np.int64(_error_code(addresses[_ERROR_CODE], (error,)))
            _error_destroy(addresses[_ERROR_DESTROY], (error,))
            if made != _NULL:  # they belong to a record that was taken only
                _headers_destroy(addresses[_HEADERS_DESTROY], (made,))
            return at, code
        at += 1
    return at, np.int64(0)


@compiled
def unseen_bytes(columns: Any, rows: Any) -> int:
    """Give the bytes of keys and headers, which librdkafka's limit of a queue does not count."""
    columns, rows = borrowed((columns, rows))
    _, keys, _, headers = columns
    total = 0
    for row in rows:
        total += max(field_length(keys, row), 0)
        first, behind = header_range(headers, row)
        for entry in range(first, behind):
            total += max(field_length(headers[2], entry), 0) + max(
                field_length(headers[3], entry), 0
            )
    return total


@inlined
def _bytes_of(column: Any, base: Any, row: Any) -> Any:
    """Give the address and the length of a value; the address of null is 0, and no other's."""
    length = field_length(column, row)
    if length < 0:
        return _NULL, _NULL
    return base + np.uint64(column[0][row]), np.uint64(length)


@force_inlined
def _make_headers(headers: Any, bases: Any, row: Any, addresses: Any) -> Any:
    """Make librdkafka's headers of those of a row; 0 if it has none."""
    first, behind = header_range(headers, row)
    if first == behind:
        return _NULL
    made = _headers_new(addresses[_HEADERS_NEW], (np.uint64(behind - first),))
    for entry in range(first, behind):
        name, name_size = _bytes_of(headers[2], bases[2], entry)
        value, value_size = _bytes_of(headers[3], bases[3], entry)
        _header_add(
            addresses[_HEADER_ADD],
            (made, name, np.int64(name_size), value, np.int64(value_size)),
        )
    return made
