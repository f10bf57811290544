"""Messages in this process's memory, and librdkafka's functions that read them."""

from collections import Counter
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspark_kafka.adapters.confluent.librdkafka import Message

NOENT = -156


@dataclass(frozen=True)
class Sent:
    offset: int
    value: bytes | None = b"v"
    key: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    timestamp: tuple[int, int] = (1_700_000_000_000, 1)
    error: int = 0
    headers_error: int = 0


def copied(content: bytes) -> np.ndarray[Any, Any]:
    """Return an array of its own for some bytes."""
    return np.frombuffer(bytearray(content or b"."), np.uint8)


class FakeLibrary:
    """The functions that the kernel calls, over messages in this process's memory."""

    def __init__(
        self, sent: Sequence[Sent], copy: Callable[[bytes], np.ndarray[Any, Any]] = copied
    ) -> None:
        """Keep messages in memory that a function makes."""
        self.destroyed: Counter[int] = Counter()
        self._copy = copy
        self._kept: list[np.ndarray[Any, Any]] = []
        messages = [self._address(bytes(self._message(each))) for each in sent]
        self.addresses = np.array(messages, np.uint64)
        self._by_address: dict[int, Sent] = dict(zip(self.addresses.tolist(), sent, strict=True))
        self.rd_kafka_message_destroy = CFUNCTYPE(None, c_uint64)(self._destroy)
        self.rd_kafka_message_timestamp = CFUNCTYPE(c_int64, c_uint64, c_void_p)(self._timestamp)
        self.rd_kafka_message_headers = CFUNCTYPE(c_int, c_uint64, c_void_p)(self._headers)
        self.rd_kafka_header_cnt = CFUNCTYPE(c_size_t, c_uint64)(self._header_count)
        self.rd_kafka_header_get_all = CFUNCTYPE(
            c_int, c_uint64, c_size_t, c_void_p, c_void_p, c_void_p
        )(self._header)

    def _message(self, sent: Sent) -> Message:
        return Message(
            err=sent.error,
            payload=self._address(sent.value),
            len=len(sent.value or b""),
            key=self._address(sent.key),
            key_len=len(sent.key or b""),
            offset=sent.offset,
        )

    def _address(self, content: bytes | None) -> int | None:
        if content is None:
            return None
        self._kept.append(self._copy(content))
        return self._kept[-1].ctypes.data

    def _destroy(self, address: int) -> None:
        self.destroyed[self._by_address[address].offset] += 1

    def _timestamp(self, address: int, kind: int) -> int:
        sent = self._by_address[address]
        milliseconds, number = sent.timestamp
        c_int.from_address(kind).value = number
        return milliseconds

    def _headers(self, address: int, found: int) -> int:
        sent = self._by_address[address]
        c_uint64.from_address(found).value = address
        return sent.headers_error if sent.headers or sent.headers_error else NOENT

    def _header_count(self, found: int) -> int:
        return len(self._by_address[found].headers)

    def _header(self, found: int, index: int, name: int, value: int, size: int) -> int:
        headers = self._by_address[found].headers
        if index >= len(headers):
            return NOENT
        key, content = headers[index]
        c_uint64.from_address(name).value = self._address(key + b"\0") or 0
        c_uint64.from_address(value).value = self._address(content) or 0
        c_uint64.from_address(size).value = len(content or b"")
        return 0
