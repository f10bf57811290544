"""Codecs as producers write them."""

import struct
from collections.abc import Callable

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import gzip_decode, lz4_decode, snappy_decode, snappy_encode, zstd_decode

from pyspark_kafka.adapters.kafka_format.compression import LEVELS, Codec, Compressor
from pyspark_kafka.adapters.kafka_format.decompression import open_stream

PLAIN = b"".join(b"%d;" % number for number in range(40_000))
"""More than one block of each codec."""

TEXT = b" ".join(b"word%d" % (number * number % 1_009 % 97) for number in range(20_000))
"""What takes some trouble to be made as small as it can be."""

PEERS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: gzip_decode,
    Codec.SNAPPY: snappy_decode,
    Codec.LZ4: lz4_decode,
    Codec.ZSTD: zstd_decode,
}
PACKERS = [codec for codec in Codec if codec is not Codec.NONE]

plains = st.binary(min_size=1, max_size=300) | st.binary(min_size=1, max_size=9).map(
    lambda part: 9_000 * part
)


def read(codec: Codec, compressed: bytes) -> bytes:
    """Decompress as our own reader does."""
    stream = open_stream(codec, memoryview(compressed), 2)
    found, room = bytearray(), memoryview(bytearray(70_000))
    while size := stream.readinto(room):
        found += room[:size]
    return bytes(found)


@given(st.sampled_from(PACKERS), plains)
def test_what_is_written_is_read(codec, plain):
    """What a codec writes, our reader and kafka-python's read."""
    packed = Compressor(codec).compress(memoryview(plain))
    assert read(codec, packed) == plain
    assert PEERS[codec](packed) == plain


@pytest.mark.parametrize("codec", PACKERS)
def test_blocks(codec):
    """More than one block is read likewise, and is fewer bytes than before."""
    packed = Compressor(codec).compress(memoryview(PLAIN))
    assert read(codec, packed) == PEERS[codec](packed) == PLAIN
    assert len(packed) < len(PLAIN)


def test_none():
    """Without a codec the bytes stay as they are."""
    assert Compressor().compress(memoryview(PLAIN)) == PLAIN


def test_again():
    """A compressor is used again and again."""
    for codec in PACKERS:
        compressor = Compressor(codec)
        packed = [compressor.compress(memoryview(plain)) for plain in (PLAIN, b"x", PLAIN)]
        assert [read(codec, each) for each in packed] == [PLAIN, b"x", PLAIN]


def test_the_frame_of_snappy():
    """Snappy stands in the frame of snappy-java, in blocks of 32 kB."""
    packed = Compressor(Codec.SNAPPY).compress(memoryview(PLAIN))
    assert packed == snappy_encode(PLAIN)
    assert packed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))


@pytest.mark.parametrize("level", [None, 1, 12])
def test_the_frame_of_lz4(level):
    """Lz4 stands in the frame that Java writes: independent blocks of 64 kB and no sum of them."""
    packed = Compressor(Codec.LZ4, level).compress(memoryview(PLAIN))
    assert packed[:6] == b"\x04\x22\x4d\x18\x60\x40"
    assert lz4.frame.get_frame_info(packed)["content_size"] == 0


@pytest.mark.parametrize("codec", LEVELS)
def test_levels(codec):
    """Every level of Kafka's is taken, and the highest makes less than the lowest."""
    levels = LEVELS[codec]
    tried = {*levels[:3], *levels[-3:], 9}
    packed = {level: Compressor(codec, level).compress(memoryview(TEXT)) for level in tried}
    assert {read(codec, each) for each in packed.values()} == {TEXT}
    assert len(packed[levels[-1]]) < len(packed[levels[0]])


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 6), (Codec.LZ4, 9), (Codec.ZSTD, 3)])
def test_usual_levels(codec, level):
    """Without a level it is the one that Java has without one."""
    usual = Compressor(codec).compress(memoryview(PLAIN))
    assert Compressor(codec, level).compress(memoryview(PLAIN)) == usual


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Codec.NONE, 1),
        (Codec.SNAPPY, 1),
        (Codec.GZIP, 0),
        (Codec.GZIP, 10),
        (Codec.LZ4, 0),
        (Codec.LZ4, 18),
        (Codec.ZSTD, 23),
        (Codec.ZSTD, -131_073),
    ],
)
def test_levels_that_there_are_not(codec, level):
    """A level that Kafka does not have is refused."""
    with pytest.raises(ValueError, match=f"^the codec {codec.name.lower()} has no level {level}$"):
        Compressor(codec, level)
