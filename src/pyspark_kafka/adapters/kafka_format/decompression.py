"""Kafka's codecs for consumers: streams, so that a batch is decompressed piece by piece."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from typing import Final, NamedTuple, Protocol, final

import cramjam
import lz4.frame
import numpy as np
import zstandard
from isal import igzip_lib

from .snappy_kernel import decompress_snappy

GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

XERIAL: Final = b"\x82SNAPPY\x00"
"""The beginning of snappy-java's frame."""

_XERIAL_HEADER: Final = 16
_SNAPPY_MAX_RATIO: Final = 32
"""Three bytes of snappy decompress to 64 bytes at most."""

_SNAPPY_MAX_WHOLE_BYTES: Final = 4 * 1024 * 1024
"""Larger blocks are decompressed piece by piece, which the library cannot do."""

_LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
"""The header of a frame of independent blocks of up to 64 kB, without a size and further checksums,
as Java's client and librdkafka write it."""

_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_STORED: Final = 1 << 31
"""The bit in a block's size that marks a block that is not compressed."""

_PIECE_BYTES: Final = 64 * 1024
"""The most bytes that are requested from a library that allocates its output. Allocators reuse
memory of this size; they return larger pieces to the system, so that the next piece causes page
faults."""

_ZSTD_MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
"""A larger state of zstd is not kept for the next batch. Most of it is the window: 2 MB at Kafka's
default level, 8 MB at level 19, and up to 128 MB at higher ones."""

FAILURES: Final[tuple[type[Exception], ...]] = (
    igzip_lib.error,  # type: ignore[assignment]  # declared as an exception instead of a class
    zstandard.ZstdError,
    cramjam.DecompressionError,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""The errors that the codecs' libraries raise for corrupt bytes."""


class Stream(Protocol):
    """A stream of decompressed bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer, and return the number of bytes: 0 at the end."""


@final
class Decompressor:
    """Decompresses the records of batches, in memory that it reuses.

    Not thread-safe. A stream must not be read after the next one is opened.
    """

    __slots__ = ("_spare", "_zstd")

    def __init__(self) -> None:
        self._spare = memoryview(b"")
        self._zstd = zstandard.ZstdDecompressor()

    def open(self, codec: int, compressed: memoryview, magic: int) -> Stream:
        """Return a stream that decompresses the records of a batch of format ``magic``.

        :raises ValueError: if Kafka has no such codec.
        """
        if codec == ZSTD:
            return self._zstd_stream(compressed)
        if codec not in _BLOCKS:
            raise ValueError(f"its codec {codec} is unknown")
        if codec == LZ4 and magic == 0:
            compressed = _with_header_checksum(compressed)
        return _BlockStream(_BLOCKS[codec](compressed), self)

    def spare(self, size: int) -> memoryview:
        """Return memory of ``size`` or more bytes, the same each time if it is large enough."""
        if len(self._spare) < size:
            self._spare = np.empty(1 << (size - 1).bit_length(), np.uint8).data
        return self._spare

    def _zstd_stream(self, compressed: memoryview) -> Stream:
        if self._zstd.memory_size() > _ZSTD_MAX_KEPT_BYTES:
            self._zstd = zstandard.ZstdDecompressor()
        reader: Stream = self._zstd.stream_reader(compressed, read_across_frames=True)
        return reader


@final
class _Block(NamedTuple):
    """A compressed block, or a part of one that is decompressed already."""

    data: memoryview
    size: int = 0
    """The most bytes that it can decompress to."""

    decompress_into: Callable[[memoryview, memoryview], int] | None = None
    """Returns the number of bytes; ``None`` if the data are not compressed."""


@final
class _BlockStream:
    """A stream over blocks, which are decompressed straight into the buffer if they fit."""

    __slots__ = ("_blocks", "_decompressor", "_rest")

    def __init__(self, blocks: Iterator[_Block], decompressor: Decompressor) -> None:
        self._blocks = blocks
        self._decompressor = decompressor
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            data, size, decompress_into = block
            if decompress_into is None:
                self._rest = data
            elif size > len(buffer):
                room = self._decompressor.spare(size)
                self._rest = room[: decompress_into(data, room[:size])]
            elif filled := decompress_into(data, buffer[:size]):
                return filled
        filled = min(len(buffer), len(self._rest))
        buffer[:filled] = self._rest[:filled]
        self._rest = self._rest[filled:]
        return filled


class _Frame(Protocol):
    """A decompressor of one frame, with the interface of ``bz2.BZ2Decompressor``."""

    eof: bool
    needs_input: bool

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: memoryview, max_length: int) -> bytes: ...


def _frames(
    compressed: memoryview, new_frame: Callable[[], _Frame], *, are_padded: bool = False
) -> Iterator[_Block]:
    """Decompress frames in pieces. Zeros may follow each if they ``are_padded``."""
    start = 0
    while start < len(compressed):
        frame = new_frame()
        while not frame.eof:
            data = compressed[start : start + (_PIECE_BYTES if frame.needs_input else 0)]
            if frame.needs_input and not data:
                raise EOFError("a frame is truncated")
            start += len(data)
            yield _Block(memoryview(frame.decompress(data, _PIECE_BYTES)))
        start -= len(frame.unused_data or b"")
        while are_padded and start < len(compressed) and not compressed[start]:
            start += 1


def _gzip(compressed: memoryview) -> Iterator[_Block]:
    return _frames(compressed, _gzip_member, are_padded=True)


def _gzip_member() -> _Frame:
    return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)


def _lz4(compressed: memoryview) -> Iterator[_Block]:
    """Yield the blocks of the frames that most clients write, and decompress other frames."""
    if not compressed:
        raise EOFError("there is no frame")
    while bytes(compressed[: len(_LZ4_HEADER)]) == _LZ4_HEADER:
        compressed = yield from _lz4_frame(compressed)
    yield from _frames(compressed, lz4.frame.LZ4FrameDecompressor)


def _lz4_frame(frame: memoryview) -> Generator[_Block, None, memoryview]:
    """Yield the blocks of a frame, and return the bytes after it."""
    start = len(_LZ4_HEADER)
    while True:
        head = frame[start : start + 4]
        size = int.from_bytes(head, "little")
        length = size & ~_LZ4_STORED
        start += 4
        data = frame[start : start + length]
        if len(head) < 4 or len(data) < length:
            raise EOFError("a frame is truncated")
        if length > _LZ4_BLOCK_BYTES:
            raise ValueError("a block is larger than its frame allows")
        if not size:
            return frame[start:]
        start += length
        yield _Block(data) if size & _LZ4_STORED else _Block(data, _LZ4_BLOCK_BYTES, _lz4_block)


def _lz4_block(data: memoryview, room: memoryview) -> int:
    return cramjam.lz4.decompress_block_into(data, room, output_len=_LZ4_BLOCK_BYTES)


def _with_header_checksum(frame: memoryview) -> memoryview:
    """Correct the checksum in the frame's header.

    Producers of format 0 computed it over the wrong bytes (KAFKA-3160). The checksum is one byte:
    each value is tried until the library accepts the header.
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


def _snappy(compressed: memoryview) -> Iterator[_Block]:
    if bytes(compressed[: len(XERIAL)]) == XERIAL:
        return _xerial_blocks(compressed[_XERIAL_HEADER:])
    return _snappy_block(compressed)


def _xerial_blocks(framed: memoryview) -> Iterator[_Block]:
    """Yield the blocks of snappy-java's frame: up to 32 kB each, with its length before it."""
    while framed:
        (size,) = struct.unpack_from(">i", framed)
        if not 0 <= size <= len(framed) - 4:
            raise ValueError("a block extends past its end")
        yield from _snappy_block(framed[4 : 4 + size])
        framed = framed[4 + size :]


def _snappy_block(block: memoryview) -> Iterator[_Block]:
    size, start = _declared_size(block)
    if size > _SNAPPY_MAX_RATIO * len(block):
        raise ValueError("a block declares a larger size than it can have")
    if size > _SNAPPY_MAX_WHOLE_BYTES:
        for piece in decompress_snappy(block[start:], size):
            yield _Block(memoryview(piece))
    else:
        yield _Block(block, size, cramjam.snappy.decompress_raw_into)


def _declared_size(block: memoryview) -> tuple[int, int]:
    """Return the size of a block, decompressed, and where its data starts."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size, place + 1
    raise ValueError("a block declares no size")


_BLOCKS: Final[dict[int, Callable[[memoryview], Iterator[_Block]]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
}
