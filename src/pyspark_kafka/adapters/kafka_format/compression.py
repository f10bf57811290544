"""Kafka's codecs, as producers write them."""

from __future__ import annotations

import enum
import struct
import zlib
from typing import TYPE_CHECKING, Final, final

import lz4.frame
import snappy
import zstandard

from . import decompression as compression

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP_WINDOW: Final = 31
"""Zlib's largest window, and 16 for a frame of gzip."""

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024

_LZ4_DEFAULT_LEVEL: Final = 9
"""Java's default, for which it takes its fast compressor (``Lz4BlockOutputStream``)."""

_LZ4_MIN_HIGH_LEVEL: Final = 3
"""The library takes the fast compressor below it, and Java's levels are all of the other one."""

_ZSTD_DEFAULT_LEVEL: Final = 3


class Codec(enum.IntEnum):
    """A codec of Kafka's, with the number that stands in a batch's attributes."""

    NONE = 0
    GZIP = compression.GZIP
    SNAPPY = compression.SNAPPY
    LZ4 = compression.LZ4
    ZSTD = compression.ZSTD


LEVELS: Final = {
    Codec.GZIP: range(1, 10),
    Codec.LZ4: range(1, 18),
    Codec.ZSTD: range(-131_072, 23),
}
"""What ``compression.<codec>.level`` may be, as in Kafka's ``CompressionType``."""


@final
class Compressor:
    """Compresses the records of batches. One thread uses it at a time."""

    __slots__ = ("_compress", "codec", "level")

    def __init__(self, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        """Take a codec, and a level of Kafka's; without one it is Kafka's default.

        :raises ValueError: if the codec has no such level.
        """
        if level is not None and level not in LEVELS.get(codec, ()):
            raise ValueError(f"the codec {codec.name.lower()} has no level {level}")
        self.codec = codec
        self.level = level
        self._compress = _COMPRESSORS[codec](level)

    def compress(self, data: memoryview) -> bytes:
        """Give what a batch holds in the place of these records."""
        return self._compress(data)


def _none(_level: int | None) -> Callable[[memoryview], bytes]:
    return bytes


def _gzip(level: int | None) -> Callable[[memoryview], bytes]:
    usual = zlib.Z_DEFAULT_COMPRESSION if level is None else level
    return lambda data: zlib.compress(data, usual, _GZIP_WINDOW)


def _snappy(_level: int | None) -> Callable[[memoryview], bytes]:
    return _xerial


def _xerial(data: memoryview) -> bytes:
    """Write blocks behind their lengths, as snappy-java's ``SnappyOutputStream`` does."""
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = snappy.compress(bytes(data[start : start + _XERIAL_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _lz4(level: int | None) -> Callable[[memoryview], bytes]:
    """Write what ``Lz4BlockOutputStream`` writes: blocks of 64 kB that do not lean on others."""
    usual = 0 if level in {None, _LZ4_DEFAULT_LEVEL} else max(level, _LZ4_MIN_HIGH_LEVEL)

    def compress(data: memoryview) -> bytes:
        frame: bytes = lz4.frame.compress(
            data,
            compression_level=usual,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return frame

    return compress


def _zstd(level: int | None) -> Callable[[memoryview], bytes]:
    return zstandard.ZstdCompressor(_ZSTD_DEFAULT_LEVEL if level is None else level).compress


_COMPRESSORS: Final[dict[Codec, Callable[[int | None], Callable[[memoryview], bytes]]]] = {
    Codec.NONE: _none,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
