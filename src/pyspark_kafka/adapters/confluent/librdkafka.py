"""librdkafka's C API, by the library that confluent-kafka has loaded."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_ssize_t,
    c_uint64,
    c_void_p,
)
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from confluent_kafka import cimpl

from ...domain.errors import UnsupportedFeatureError
from ...domain.reading.leader_epochs import NO_EPOCH
from ..kernels.parts import intrinsic

OLDEST: Final = (2, 15, 1)
"""The version in the oldest supported confluent-kafka; older ones were never tested."""

PRODUCER: Final = 0
CONSUMER: Final = 1
"""``RD_KAFKA_PRODUCER`` and ``RD_KAFKA_CONSUMER``."""

EVENT_DR: Final = 0x1
EVENT_LOG: Final = 0x4
EVENT_ERROR: Final = 0x8
"""``RD_KAFKA_EVENT_DR``, ``RD_KAFKA_EVENT_LOG`` and ``RD_KAFKA_EVENT_ERROR``."""

LISTED_LATEST: Final = -1
LISTED_EARLIEST: Final = -2
"""``RD_KAFKA_OFFSET_SPEC_LATEST`` and ``RD_KAFKA_OFFSET_SPEC_EARLIEST``."""


_is_windows = sys.platform == "win32"


class Message(ctypes.Structure):
    """``rd_kafka_message_t``."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


class TopicPartitionResult(ctypes.Structure):
    """``rd_kafka_topic_partition_t``."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
    )


class MetadataPartition(ctypes.Structure):
    """``rd_kafka_metadata_partition_t``."""

    _fields_ = (
        ("id", c_int32),
        ("err", c_int),
        ("leader", c_int32),
        ("replica_cnt", c_int),
        ("replicas", c_void_p),
        ("isr_cnt", c_int),
        ("isrs", c_void_p),
    )


class MetadataTopic(ctypes.Structure):
    """``rd_kafka_metadata_topic_t``."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition_cnt", c_int),
        ("partitions", POINTER(MetadataPartition)),
        ("err", c_int),
    )


class Metadata(ctypes.Structure):
    """``rd_kafka_metadata_t``."""

    _fields_ = (
        ("broker_cnt", c_int),
        ("brokers", c_void_p),
        ("topic_cnt", c_int),
        ("topics", POINTER(MetadataTopic)),
        ("orig_broker_id", c_int32),
        ("orig_broker_name", c_char_p),
    )


_SIGNATURES: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_version": (c_int, ()),
    "rd_kafka_version_str": (c_char_p, ()),
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_set_events": (None, (c_void_p, c_int)),
    "rd_kafka_conf_enable_sasl_queue": (None, (c_void_p, c_int)),
    "rd_kafka_conf_set_oauthbearer_token_refresh_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_name": (c_char_p, (c_void_p,)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_last_error": (c_int, ()),
    "rd_kafka_fatal_error": (c_int, (c_void_p, c_char_p, c_size_t)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_error_is_retriable": (c_int, (c_void_p,)),
    "rd_kafka_error_txn_requires_abort": (c_int, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
    "rd_kafka_sasl_background_callbacks_enable": (c_void_p, (c_void_p,)),
    "rd_kafka_oauthbearer_set_token": (
        c_int,
        (c_void_p, c_char_p, c_int64, c_char_p, POINTER(c_char_p), c_size_t, c_char_p, c_size_t),
    ),
    "rd_kafka_oauthbearer_set_token_failure": (c_int, (c_void_p, c_char_p)),
    "rd_kafka_set_log_queue": (c_int, (c_void_p, c_void_p)),
    "rd_kafka_topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "rd_kafka_topic_name": (c_char_p, (c_void_p,)),
    "rd_kafka_topic_destroy": (None, (c_void_p,)),
    "rd_kafka_metadata": (c_int, (c_void_p, c_int, c_void_p, POINTER(POINTER(Metadata)), c_int)),
    "rd_kafka_metadata_destroy": (None, (POINTER(Metadata),)),
    "rd_kafka_queue_new": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_get_main": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_queue_poll": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_queue_io_event_enable": (None, (c_void_p, c_int, c_char_p, c_size_t)),
    "rd_kafka_event_type": (c_int, (c_void_p,)),
    "rd_kafka_event_error": (c_int, (c_void_p,)),
    "rd_kafka_event_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_event_log": (c_int, (c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int))),
    "rd_kafka_event_message_array": (c_size_t, (c_void_p, c_void_p, c_size_t)),
    "rd_kafka_event_destroy": (None, (c_void_p,)),
    "rd_kafka_consume_start_queue": (c_int, (c_void_p, c_int32, c_int64, c_void_p)),
    "rd_kafka_consume_batch_queue": (c_ssize_t, (c_void_p, c_int, c_void_p, c_size_t)),
    "rd_kafka_consume_stop": (c_int, (c_void_p, c_int32)),
    "rd_kafka_seek_partitions": (c_void_p, (c_void_p, c_void_p, c_int)),
    "rd_kafka_message_errstr": (c_char_p, (c_uint64,)),
    "rd_kafka_message_destroy": (None, (c_uint64,)),
    "rd_kafka_message_timestamp": (c_int64, (c_uint64, c_void_p)),
    "rd_kafka_message_leader_epoch": (c_int32, (c_uint64,)),
    "rd_kafka_message_headers": (c_int, (c_uint64, c_void_p)),
    "rd_kafka_header_cnt": (c_size_t, (c_void_p,)),
    "rd_kafka_header_get_all": (c_int, (c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
    "rd_kafka_headers_new": (c_void_p, (c_size_t,)),
    "rd_kafka_header_add": (c_int, (c_void_p, c_void_p, c_ssize_t, c_void_p, c_ssize_t)),
    "rd_kafka_headers_destroy": (None, (c_void_p,)),
    "rd_kafka_produce_batch": (c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    "rd_kafka_produceva": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "rd_kafka_flush": (c_int, (c_void_p, c_int)),
    "rd_kafka_purge": (c_int, (c_void_p, c_int)),
    "rd_kafka_outq_len": (c_int, (c_void_p,)),
    "rd_kafka_ListOffsets": (None, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "rd_kafka_event_ListOffsets_result": (c_void_p, (c_void_p,)),
    "rd_kafka_ListOffsets_result_infos": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_ListOffsetsResultInfo_topic_partition": (c_void_p, (c_void_p,)),
    "rd_kafka_TopicCollection_of_topic_names": (c_void_p, (POINTER(c_char_p), c_size_t)),
    "rd_kafka_TopicCollection_destroy": (None, (c_void_p,)),
    "rd_kafka_DescribeTopics": (None, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "rd_kafka_event_DescribeTopics_result": (c_void_p, (c_void_p,)),
    "rd_kafka_DescribeTopics_result_topics": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_TopicDescription_topic_id": (c_void_p, (c_void_p,)),
    "rd_kafka_Uuid_most_significant_bits": (c_int64, (c_void_p,)),
    "rd_kafka_Uuid_least_significant_bits": (c_int64, (c_void_p,)),
    "rd_kafka_topic_partition_list_new": (c_void_p, (c_int,)),
    "rd_kafka_topic_partition_list_add": (c_void_p, (c_void_p, c_char_p, c_int32)),
    "rd_kafka_topic_partition_list_set_offset": (c_int, (c_void_p, c_char_p, c_int32, c_int64)),
    "rd_kafka_topic_partition_set_leader_epoch": (None, (c_void_p, c_int32)),
    "rd_kafka_topic_partition_list_destroy": (None, (c_void_p,)),
}


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL:
    """Load the library and declare its functions.

    :raises UnsupportedFeatureError: if it is not found, is too old or lacks a function.
    """
    if ctypes.sizeof(c_void_p) != ctypes.sizeof(c_uint64) or sys.byteorder != "little":
        raise _unusable("a 64-bit little-endian machine")
    library = _open_library()
    missing = [name for name in _SIGNATURES if not hasattr(library, name)]
    if missing:
        raise _unusable(f"librdkafka's {', '.join(missing)}")
    for name, (result, parameters) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    version: int = library.rd_kafka_version()
    if (version >> 24, version >> 16 & 0xFF, version >> 8 & 0xFF) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        installed = library.rd_kafka_version_str().decode()
        raise _unusable(f"librdkafka {oldest} or later, and not {installed}")
    return library


def address_of(function: Any) -> int:
    """Return the address of a function of the library."""
    return ctypes.cast(function, c_void_p).value or 0


@contextmanager
def partition_list(
    library: ctypes.CDLL, topic: str, offsets: Mapping[int, int], last_epoch: int = NO_EPOCH
) -> Iterator[int]:
    """Yield a list of a topic's partitions with their offsets, and destroy it afterwards.

    ``last_epoch`` is the leader epoch of the records before.
    """
    partitions, name = library.rd_kafka_topic_partition_list_new(len(offsets)), topic.encode()
    try:
        for partition, offset in offsets.items():
            each = library.rd_kafka_topic_partition_list_add(partitions, name, partition)
            library.rd_kafka_topic_partition_list_set_offset(partitions, name, partition, offset)
            if last_epoch != NO_EPOCH:
                library.rd_kafka_topic_partition_set_leader_epoch(each, last_epoch)
        yield partitions
    finally:
        library.rd_kafka_topic_partition_list_destroy(partitions)


def _open_library() -> ctypes.CDLL:
    """Return the extension: the functions of its bundled librdkafka are found through it."""
    place = Path(cimpl.__file__)
    if _is_windows:
        # GetProcAddress finds no function of a dependency. delvewheel puts it beside the package.
        found = place.parent.with_name("confluent_kafka.libs").glob("*rdkafka[-.]*")
        place = min(found, default=Path("librdkafka.dll"))
    try:
        return ctypes.CDLL(str(place))
    except OSError:
        raise _unusable("librdkafka's library") from None


def _unusable(missing: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "The client 'confluent'", f"run here: it needs {missing}; use the client 'kafka-python'"
    )


def c_function(result: str, *parameters: str) -> Any:
    """Return a function for kernels that calls a C function: ``call(address, (argument, ...))``.

    The types have numba's names.
    """
    return intrinsic("c_function", result, *parameters)
