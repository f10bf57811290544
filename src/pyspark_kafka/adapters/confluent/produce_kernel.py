"""Columns to librdkafka's queues, in one pass of machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..kafka_format.encode_kernel import header_range, headers_payload, value_length, value_span
from ..kernels.kernel import kernel
from ..kernels.kinds import COLUMNS, ROWS, WIDE_COLUMNS
from ..kernels.parts import inlined
from ..partitioning.topic_rows import NO_PARTITION
from .librdkafka import Message, address_of, c_function

if TYPE_CHECKING:
    import ctypes

    from ..kernels.arrays import UInt64Array

MESSAGES: Final = 256
"""The rows per call: their messages stay in the processor's cache."""

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
_OPAQUE: Final = Message.private.offset // _WORD
_MESSAGE_WORDS: Final = 9

# The tags of `rd_kafka_vu_t`, in the order of our array; 64 bytes follow each tag.
_TAGS: Final = (2, 3, 4, 5, 6, 7, 8, 10)
_TOPIC, _TO, _VALUE, _KEY_OF, _OPAQUE_OF, _FLAGS, _TIMESTAMP, _HEADERS = range(len(_TAGS))
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
"""The fields of the addresses: functions, the client, and the memory that they read."""

_produce_batch = c_function("int32", "uint64", "int32", "int32", "uint64", "int32")
_produceva = c_function("uint64", "uint64", "uint64", "uint64")
_error_code = c_function("int32", "uint64")
_error_destroy = c_function("void", "uint64")
_headers_new = c_function("uint64", "uint64")
_header_add = c_function("int32", "uint64", "uint64", "int64", "uint64", "int64")
_headers_destroy = c_function("void", "uint64")

_NULL: Final = np.uint64(0)
_EMPTY: Final = 1
"""An address that is not null, for values without bytes."""


class ProducerCalls:
    """The addresses of the functions that kernels call, and the memory of their arguments."""

    __slots__ = ("arrays",)

    def __init__(self, library: ctypes.CDLL, client: int) -> None:
        messages: UInt64Array = np.zeros((MESSAGES, _MESSAGE_WORDS), np.uint64)
        fields: UInt64Array = np.zeros((len(_TAGS), _TAGGED_WORDS), np.uint64)
        fields[:, 0] = _TAGS
        addresses: UInt64Array = np.zeros(_ADDRESSES, np.uint64)
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


def bases_of(columns: Any) -> UInt64Array:
    """Return the addresses of the data of keys, values, header keys and header values."""
    _, keys, values, headers = columns
    # The address of an empty array may be 0, which means null to librdkafka.
    return np.array(
        [column[1].ctypes.data or _EMPTY for column in (keys, values, headers[2], headers[3])],
        np.uint64,
    )


_SENDING: Final = (
    *("uint64[]", ROWS, "const int32[]", "int64"),
    *(("const uint64[]", ROWS), "int64", ("uint64[]", "uint64[,]", "uint64[,]")),
)


@kernel(COLUMNS, *_SENDING, results=2, wide=(WIDE_COLUMNS, *_SENDING))
def produce_plain(
    columns: Any,
    bases: Any,
    rows: Any,
    partitions: Any,
    at: int,
    topics: Any,
    opaque: int,
    calls: Any,
) -> Any:
    """Queue keys and values of ``rows`` from place ``at`` on, with the current time.

    ``partitions`` has one for each of the rows. ``topics`` are librdkafka's, and the places where
    the rows of each end. Delivery reports return ``opaque``. Return the place of the first row that
    was not queued, and librdkafka's error code for it, 0 if all were.
    After a row that librdkafka refused, later rows may have been queued; if the queue had no room
    for a row, no later one was.
    """
    handles, topic_ends = topics
    addresses, messages, _ = calls
    _, keys, values, _ = columns
    topic = 0
    while at < len(rows):
        while topic_ends[topic] <= at:
            topic += 1
        count = min(len(messages), topic_ends[topic] - at)
        for place in range(count):
            row = rows[at + place]
            message = messages[place]
            message[_ERR] = 0
            message[_TO_PARTITION] = np.uint64(np.uint32(partitions[at + place]))
            message[_PAYLOAD], message[_LEN] = _bytes_of(values, bases[1], row)
            message[_KEY], message[_KEY_LEN] = _bytes_of(keys, bases[0], row)
            message[_OPAQUE] = np.uint64(opaque)
        queued = _produce_batch(
            addresses[_PRODUCE_BATCH],
            (
                handles[topic],
                np.int32(NO_PARTITION),
                np.int32(_COPY | _PARTITION),
                addresses[_MESSAGES],
                np.int32(count),
            ),
        )
        if queued < count:
            for place in range(count):
                error = np.int32(np.uint32(messages[place][_ERR]))
                if error != 0:
                    return at + place, np.int64(error)
        at += count
    return at, np.int64(0)


@kernel(COLUMNS, *_SENDING, results=2, wide=(WIDE_COLUMNS, *_SENDING))
def produce_full(
    columns: Any,
    bases: Any,
    rows: Any,
    partitions: Any,
    at: int,
    topics: Any,
    opaque: int,
    calls: Any,
) -> Any:
    """Queue rows like ``produce_plain``, with timestamps and headers, one record at a time."""
    handles, topic_ends = topics
    addresses, _, fields = calls
    timestamps, keys, values, headers = columns
    topic = 0
    fields[_OPAQUE_OF][1] = np.uint64(opaque)
    fields[_FLAGS][1] = np.uint64(_COPY)
    while at < len(rows):
        while topic_ends[topic] <= at:
            topic += 1
        row = rows[at]
        fields[_TOPIC][1] = handles[topic]
        fields[_TO][1] = np.uint64(np.uint32(partitions[at]))
        fields[_VALUE][1], fields[_VALUE][2] = _bytes_of(values, bases[1], row)
        fields[_KEY_OF][1], fields[_KEY_OF][2] = _bytes_of(keys, bases[0], row)
        fields[_TIMESTAMP][1] = np.uint64(timestamps[row])
        header_list = _new_header_list(headers, bases, row, addresses)
        fields[_HEADERS][1] = header_list
        error = _produceva(
            addresses[_PRODUCEVA],
            (
                addresses[_CLIENT],
                addresses[_FIELDS_OF_ONE],
                np.uint64(len(fields) - (header_list == _NULL)),
            ),
        )
        if error != _NULL:
            code = np.int64(_error_code(addresses[_ERROR_CODE], (error,)))
            _error_destroy(addresses[_ERROR_DESTROY], (error,))
            if header_list != _NULL:  # librdkafka owns them only if it queued the record
                _headers_destroy(addresses[_HEADERS_DESTROY], (header_list,))
            return at, code
        at += 1
    return at, np.int64(0)


@kernel(COLUMNS, ROWS, wide=(WIDE_COLUMNS, ROWS))
def uncounted_bytes(columns: Any, rows: Any) -> int:
    """Return the bytes of keys and headers, which librdkafka's queue limit does not count."""
    _, keys, _, headers = columns
    total = 0
    for row in rows:
        total += value_length(keys, row) + headers_payload(headers, row)
    return total


@inlined
def _bytes_of(column: Any, base: Any, row: Any) -> Any:
    """Return the address and the length of a value; only the address of null is 0."""
    start, length = value_span(column, row)
    if length < 0:
        return _NULL, _NULL
    return base + np.uint64(start), np.uint64(length)


@inlined
def _new_header_list(headers: Any, bases: Any, row: Any, addresses: Any) -> Any:
    """Return librdkafka's list of a row's headers, 0 if it has none."""
    first, end = header_range(headers, row)
    if first == end:
        return _NULL
    header_list = _headers_new(addresses[_HEADERS_NEW], (np.uint64(end - first),))
    for entry in range(first, end):
        name, name_size = _bytes_of(headers[2], bases[2], entry)
        value, value_size = _bytes_of(headers[3], bases[3], entry)
        _header_add(
            addresses[_HEADER_ADD],
            (header_list, name, np.int64(name_size), value, np.int64(value_size)),
        )
    return header_list
