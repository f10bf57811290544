"""Kafka's codecs for producers: batches are compressed as Java's client does it."""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable
from typing import Final, final

import cramjam
import lz4.frame
import zstandard

from . import decompression

_GZIP_WINDOW: Final = 31
"""zlib's largest window, plus 16 for the gzip format."""

_XERIAL_HEADER: Final = decompression.XERIAL + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024

_LZ4_DEFAULT_LEVEL: Final = 9
"""Java's default, at which it uses its fast compressor (``Lz4BlockOutputStream``)."""

_LZ4_MIN_HIGH_LEVEL: Final = 3
"""Below it the library uses its fast compressor; all of Java's levels mean the other one."""

_ZSTD_DEFAULT_LEVEL: Final = 3


class Codec(enum.IntEnum):
    """A codec; the value is its number in the attributes of a batch."""

    NONE = 0
    GZIP = decompression.GZIP
    SNAPPY = decompression.SNAPPY
    LZ4 = decompression.LZ4
    ZSTD = decompression.ZSTD


LEVELS: Final = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-131_072, 23)}
"""The valid ``compression.<codec>.level``, as in Kafka's ``CompressionType``."""


@final
class Compressor:
    """Compresses the records of batches. Not thread-safe."""

    __slots__ = ("_compress", "codec", "level")

    def __init__(self, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        """Take a codec and its level, by default Kafka's.

        :raises ValueError: if the codec has no such level.
        """
        if level is not None and level not in LEVELS.get(codec, ()):
            raise ValueError(f"the codec {codec.name.lower()} has no level {level}")
        self.codec = codec
        self.level = level
        self._compress = _COMPRESSORS[codec](level)

    def compress(self, data: memoryview) -> bytes:
        """Return the records of a batch, compressed."""
        return self._compress(data)


def _none(_level: int | None) -> Callable[[memoryview], bytes]:
    return bytes


def _gzip(level: int | None) -> Callable[[memoryview], bytes]:
    zlib_level = zlib.Z_DEFAULT_COMPRESSION if level is None else level
    return lambda data: zlib.compress(data, zlib_level, _GZIP_WINDOW)


def _snappy(_level: int | None) -> Callable[[memoryview], bytes]:
    return _xerial


def _xerial(data: memoryview) -> bytes:
    """Write blocks with their lengths before them, as snappy-java's ``SnappyOutputStream`` does."""
    parts: list[bytes | cramjam.Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK])
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _lz4(level: int | None) -> Callable[[memoryview], bytes]:
    """Write independent blocks of 64 kB, as ``Lz4BlockOutputStream`` does."""
    lz4_level = 0 if level in {None, _LZ4_DEFAULT_LEVEL} else max(level, _LZ4_MIN_HIGH_LEVEL)

    def compress(data: memoryview) -> bytes:
        frame: bytes = lz4.frame.compress(
            data,
            compression_level=lz4_level,
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
