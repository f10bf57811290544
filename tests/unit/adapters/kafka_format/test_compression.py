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
    stream = open_stream(codec, memoryview(compressed), 2)
    found, room = bytearray(), memoryview(bytearray(70_000))
    while size := stream.readinto(room):
        found += room[:size]
    return bytes(found)


@given(st.sampled_from(PACKERS), plains)
def test_what_is_written_is_read(codec, plain):
    packed = Compressor(codec).compress(memoryview(plain))
    assert read(codec, packed) == plain
    assert PEERS[codec](packed) == plain


@pytest.mark.parametrize("codec", PACKERS)
def test_more_than_one_block_is_read_and_is_fewer_bytes_than_before(codec):
    packed = Compressor(codec).compress(memoryview(PLAIN))
    assert read(codec, packed) == PEERS[codec](packed) == PLAIN
    assert len(packed) < len(PLAIN)


def test_without_a_codec_the_bytes_stay_as_they_are():
    assert Compressor().compress(memoryview(PLAIN)) == PLAIN


def test_a_compressor_is_used_again_and_again():
    for codec in PACKERS:
        compressor = Compressor(codec)
        packed = [compressor.compress(memoryview(plain)) for plain in (PLAIN, b"x", PLAIN)]
        assert [read(codec, each) for each in packed] == [PLAIN, b"x", PLAIN]


def test_snappy_stands_in_the_frame_of_snappy_java_in_blocks_of_32_kb():
    packed = Compressor(Codec.SNAPPY).compress(memoryview(PLAIN))
    assert packed == snappy_encode(PLAIN)
    assert packed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))


@pytest.mark.parametrize("level", [None, 1, 12])
def test_lz4_stands_in_the_frame_that_java_writes(level):
    packed = Compressor(Codec.LZ4, level).compress(memoryview(PLAIN))
    assert packed[:6] == b"\x04\x22\x4d\x18\x60\x40"
    assert lz4.frame.get_frame_info(packed)["content_size"] == 0


@pytest.mark.parametrize("codec", LEVELS)
def test_every_level_of_kafkas_is_taken_and_the_highest_makes_less_than_the_lowest(codec):
    levels = LEVELS[codec]
    tried = {*levels[:3], *levels[-3:], 9}
    packed = {level: Compressor(codec, level).compress(memoryview(TEXT)) for level in tried}
    assert {read(codec, each) for each in packed.values()} == {TEXT}
    assert len(packed[levels[-1]]) < len(packed[levels[0]])


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 6), (Codec.LZ4, 9), (Codec.ZSTD, 3)])
def test_without_a_level_it_is_the_one_that_java_has_without_one(codec, level):
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
    with pytest.raises(ValueError, match=f"^the codec {codec.name.lower()} has no level {level}$"):
        Compressor(codec, level)
