"""Bytes as texts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_format.utf8 import valid_utf8

LOST = "\ufffd"


def text(value: bytes) -> str:
    found = valid_utf8(pa.array([b"a", value], pa.binary())).to_pylist()[1]
    assert isinstance(found, str)
    return found


def test_texts_are_not_copied() -> None:
    """Where all bytes are UTF-8, the texts have the memory of the bytes."""
    binary = pa.array(["a", "ü", "主题", "😀", ""], pa.string()).cast(pa.binary())
    texts = valid_utf8(binary)
    assert texts.to_pylist() == ["a", "ü", "主题", "😀", ""]
    assert [buffer and buffer.address for buffer in texts.buffers()] == [
        buffer and buffer.address for buffer in binary.buffers()
    ]


# What `new String(bytes, UTF_8)` gives on Java 17.
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"a\xffb", "a" + LOST + "b"),
        (b"\x80", LOST),
        (b"\xc3", LOST),
        (b"\xc3(", LOST + "("),
        (b"\xc0\x80", 2 * LOST),
        (b"\xe2\x82", LOST),
        (b"\xe2\x82(", LOST + "("),
        (b"\xe0\x80\x80", 3 * LOST),
        (b"\xf0\x9f\x98", LOST),
        (b"\xf0\x9f(", LOST + "("),
        (b"\xf5\x80\x80\x80", 4 * LOST),
        (b"\xed\xa0\x80", LOST),
        (b"\xed\xbf\xbf\xed\xa0\x80", 2 * LOST),
        (b"\xed\xa0", LOST),
        (b"\xed\xa0(", LOST + "("),
        (b"\xed\x9f\xbf", "\ud7ff"),
        (b"\xed\xed\xa0\x80\x80", 3 * LOST),
    ],
)
def test_other_bytes(value: bytes, expected: str) -> None:
    """Bytes of no text become as many U+FFFD as in Java's strings."""
    assert text(value) == expected
