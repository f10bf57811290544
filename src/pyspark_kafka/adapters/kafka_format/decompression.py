"""Kafka's codecs for consumers: streams, so that a batch is decompressed piece by piece."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

import lz4.frame
import snappy
import zstandard

from .snappy_kernel import decompress_snappy

GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_SNAPPY_MAX_RATIO: Final = 32
"""Three bytes of snappy decompress to 64 bytes at most."""

_SNAPPY_MAX_WHOLE_BYTES: Final = 4 * 1024 * 1024
"""A larger block is decompressed piece by piece, which the library cannot."""

FAILURES: Final = (
    zlib.error,
    zstandard.ZstdError,
    snappy.UncompressError,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What the codecs' libraries raise for corrupt bytes."""


class Stream(Protocol):
    """A stream of decompressed bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer, and return the number of bytes: 0 at the end."""


def open_stream(codec: int, compressed: memoryview, magic: int) -> Stream:
    """Return a stream that decompresses the records of a batch of format ``magic``.

    :raises ValueError: if Kafka has no such codec.
    """
    if codec == LZ4 and magic == 0:
        compressed = _with_header_checksum(compressed)
    if codec not in _CODECS:
        raise ValueError(f"its codec {codec} is unknown")
    return _CODECS[codec](compressed)


def _gzip(compressed: memoryview) -> Stream:
    return gzip.GzipFile(fileobj=io.BytesIO(compressed))


def _lz4(compressed: memoryview) -> Stream:
    frames: Stream = lz4.frame.LZ4FrameFile(io.BytesIO(compressed))
    return frames


def _with_header_checksum(frame: memoryview) -> memoryview:
    """Correct the checksum in the frame's header.

    Producers of format 0 computed it over the wrong bytes (KAFKA-3160). It is one byte: each value
    is tried until the library accepts the header.
    """
    corrected = bytearray(frame)
    place = 14 if len(frame) > 4 and frame[4] & 0x08 else 6
    for checksum in range(256 if place < len(frame) else 0):
        corrected[place] = checksum
        try:
            lz4.frame.get_frame_info(corrected)
        except RuntimeError:
            continue
        break
    return memoryview(corrected)


def _zstd(compressed: memoryview) -> Stream:
    reader: Stream = zstandard.ZstdDecompressor().stream_reader(compressed, read_across_frames=True)
    return reader


@final
class _Blocks(io.RawIOBase):
    """A stream over blocks; each block is decompressed at once."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks = blocks
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # of any buffer
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        size = min(len(buffer), len(self._block))
        buffer[:size] = self._block[:size]
        self._block = self._block[size:]
        return size


def _snappy(compressed: memoryview) -> Stream:
    if bytes(compressed[: len(_XERIAL)]) == _XERIAL:
        return _Blocks(_xerial_blocks(compressed[_XERIAL_HEADER:]))
    return _Blocks(_snappy_block(compressed))


def _xerial_blocks(framed: memoryview) -> Iterator[bytes]:
    """Yield the blocks of snappy-java's frame: up to 32 kB each, with its length before it."""
    while framed:
        (size,) = struct.unpack_from(">i", framed)
        if not 0 <= size <= len(framed) - 4:
            raise ValueError("a block extends past its end")
        yield from _snappy_block(framed[4 : 4 + size])
        framed = framed[4 + size :]


def _snappy_block(block: memoryview) -> Iterator[bytes]:
    size, start = _declared_size(block)
    if size > _SNAPPY_MAX_RATIO * len(block):
        raise ValueError("a block declares a larger size than it can have")
    if size > _SNAPPY_MAX_WHOLE_BYTES:
        yield from decompress_snappy(block[start:], size)
    else:
        yield snappy.uncompress(bytes(block))


def _declared_size(block: memoryview) -> tuple[int, int]:
    """Return the size of a block, decompressed, and where its data starts."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size, place + 1
    raise ValueError("a block declares no size")


_CODECS: Final[dict[int, Callable[[memoryview], Stream]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
