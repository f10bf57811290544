import gzip
import struct
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import gzip_decode, lz4_decode, snappy_decode, snappy_encode, zstd_decode

from pyspark_kafka.adapters.kafka_format.compression import LEVELS, Codec, Compressor
from pyspark_kafka.adapters.kafka_format.decompression import FAILURES, Decompressor

from .batches import GZIP, LZ4, SNAPPY, ZSTD, compress, raw_snappy, sizeless_zstd

PLAIN = b"".join(b"%d;" % number for number in range(40_000))
"""More than one block of each codec."""

TEXT = b" ".join(b"word%d" % (number * number % 1_009 % 97) for number in range(20_000))
"""Text that takes some effort to compress as far as possible."""

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


def read(codec: int, compressed: bytes, magic: int = 2, at_once: int = 70_000) -> bytes:
    """Decompress all there is, some bytes at once."""
    stream = Decompressor().open(codec, memoryview(compressed), magic)
    found, room = bytearray(), memoryview(bytearray(at_once))
    while size := stream.readinto(room):
        found += room[:size]
    assert not stream.readinto(room)
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


XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def xerial(*blocks: bytes) -> bytes:
    """Frame blocks as snappy-java does."""
    packed = map(raw_snappy, blocks)
    return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in packed)


WRITERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (GZIP, gzip.compress),
    "gzip in two": (GZIP, lambda plain: gzip.compress(plain[:9]) + gzip.compress(plain[9:])),
    "gzip, not compressed": (GZIP, lambda plain: gzip.compress(plain, 0)),
    "snappy": (SNAPPY, raw_snappy),
    "snappy of Java": (SNAPPY, lambda plain: compress(SNAPPY, plain)),
    "snappy of Java in two": (SNAPPY, lambda plain: xerial(plain[:9], plain[9:])),
    "snappy of Java with nothing in it": (SNAPPY, lambda plain: xerial(b"", plain, b"")),
    "lz4": (LZ4, lz4.frame.compress),
    "lz4 of Java": (
        LZ4,
        lambda plain: lz4.frame.compress(plain, block_linked=False, store_size=False),
    ),
    "lz4 with checksums": (
        LZ4,
        lambda plain: lz4.frame.compress(plain, content_checksum=True, block_checksum=True),
    ),
    "lz4 in large blocks": (LZ4, lambda plain: lz4.frame.compress(plain, block_size=7)),
    "zstd": (ZSTD, lambda plain: compress(ZSTD, plain)),
    "zstd of Java": (ZSTD, sizeless_zstd),
    "zstd in two": (ZSTD, lambda plain: sizeless_zstd(plain[:9]) + compress(ZSTD, plain[9:])),
    "zstd with a checksum": (ZSTD, zstandard.ZstdCompressor(19, write_checksum=True).compress),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("at_once", [1_000, 32_768, 65_536, len(PLAIN) - 1, len(PLAIN), 2**20])
def test_all_that_is_written_is_read_in_pieces_of_any_size(name, at_once):
    codec, write = WRITERS[name]
    assert read(codec, write(PLAIN), at_once=at_once) == PLAIN


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("plain", [b"", b"x", b"0123456789"])
def test_few_bytes_and_none_are_read_one_at_a_time(name, plain):
    codec, write = WRITERS[name]
    assert read(codec, write(plain), at_once=1) == plain


@pytest.mark.parametrize("name", [name for name in WRITERS if name.startswith("lz4")])
def test_the_wrong_checksum_of_format_0(name):
    """A frame of lz4 may have any checksum in its header in format 0 (KAFKA-3160), not later."""
    frame = bytearray(WRITERS[name][1](PLAIN))
    place = 14 if frame[4] & 0x08 else 6
    for other in (0x00, 0x5A, 0xFF, frame[place]):
        wrong = bytes(frame[:place]) + bytes([other]) + bytes(frame[place + 1 :])
        assert read(LZ4, wrong, magic=0) == PLAIN
        if other != frame[place]:
            with pytest.raises(RuntimeError):
                read(LZ4, wrong, magic=1)


@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_every_cut(codec):
    """Compressed bytes that are cut off fail, or give what there is before the cut."""
    packed = compress(codec, PLAIN[:300])
    for cut in range(1, len(packed)):
        with pytest.raises(FAILURES):
            read(codec, packed[:cut])


def test_every_cut_of_zstd():
    """Zstd bytes that are cut off give what there is before the cut: their end adds nothing."""
    packed = compress(ZSTD, PLAIN[:300])
    for cut in range(len(packed)):
        assert PLAIN[:300].startswith(read(ZSTD, packed[:cut]))


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("size", [*range(1, 20), 100])
def test_bytes_that_no_codec_wrote_fail_in_one_of_the_known_ways(codec, magic, size):
    with pytest.raises(FAILURES):
        read(codec, b"\xf3" * size, magic)


@pytest.mark.parametrize(
    "framed",
    [
        XERIAL + b"\0",
        XERIAL + struct.pack(">i", -1),
        XERIAL + struct.pack(">i", 5) + b"\x01\x00a",
        XERIAL + struct.pack(">i", 2**31 - 1),
        XERIAL + struct.pack(">i", 0),
        xerial(b"a") + b"\0\0",
        b"",
        b"\x80",
        b"\xff" * 5,
    ],
)
def test_lengths_of_blocks_that_do_not_fit_fail(framed):
    with pytest.raises(FAILURES):
        read(SNAPPY, framed)


def test_a_block_that_announces_too_much():
    with pytest.raises(ValueError, match="declares a larger size than it can have"):
        read(SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100))


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_refused_by_its_number(codec):
    with pytest.raises(ValueError, match=f"^its codec {codec} is unknown$"):
        Decompressor().open(codec, memoryview(b""), 2)
