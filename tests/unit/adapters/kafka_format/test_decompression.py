"""Decompression of whatever clients write, in pieces of any size, and of corrupt bytes."""

import gzip
import io
import random
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.adapters.kafka_format.compression import LEVELS, Codec, Compressor
from pyspark_kafka.adapters.kafka_format.decompression import FAILURES, Decompressor

from .batches import GZIP, LZ4, SNAPPY, ZSTD, java_lz4, raw_snappy
from .decompressing import MIB, faults_of, packed_by

PROGRAM = "tests.unit.adapters.kafka_format.decompressing"
GUARD = 64


def text(seed: int, size: int) -> bytes:
    """Return words, which can be compressed, between bytes that cannot."""
    dice = random.Random(seed)  # noqa: S311  # nothing is secret
    words = [dice.randbytes(dice.randrange(1, 12)) for _ in range(60)]
    parts = dice.choices(words, k=size // 3 + 8)
    parts[::9] = [dice.randbytes(9) for _ in parts[::9]]
    return b"".join(parts)[:size]


plains = st.one_of(
    st.binary(max_size=400),
    st.builds(lambda part, times: part * times, st.binary(max_size=9), st.integers(1, 20_000)),
    st.builds(text, st.integers(0, 2**32), st.sampled_from([1_000, 65_536, 150_000])),
)
rooms = st.sampled_from([1_000, 32_768, 65_535, 65_536, 100_000, MIB])

Writer = Callable[[bytes], bytes]


def gzip_writer(level: int, window: int, strategy: int) -> Writer:
    def write(plain: bytes) -> bytes:
        packer = zlib.compressobj(level, zlib.DEFLATED, window + 16, 8, strategy)
        return packer.compress(plain) + packer.flush()

    return write


def xerial_writer(block_bytes: int, versions: bytes) -> Writer:
    """Frame blocks as snappy-java does, with any size of blocks."""

    def write(plain: bytes) -> bytes:
        framed = b"\x82SNAPPY\x00" + versions
        for start in range(0, len(plain), block_bytes):
            block = raw_snappy(plain[start : start + block_bytes])
            framed += struct.pack(">i", len(block)) + block
        return framed

    return write


def zstd_writer(level: int, *, checksum: bool, size: bool, streams: bool) -> Writer:
    packer = zstandard.ZstdCompressor(level, write_checksum=checksum, write_content_size=size)

    def write(plain: bytes) -> bytes:
        if not streams:
            return packer.compress(plain)
        stream = packer.compressobj()
        return stream.compress(plain) + stream.flush()

    return write


def own_writer(codec: int, level: int | None) -> Writer:
    return lambda plain: Compressor(Codec(codec), level).compress(memoryview(plain))


def own_writers(codec: int) -> st.SearchStrategy[Writer]:
    levels = [level for level in LEVELS.get(Codec(codec), ()) if -9 < level < 13]
    return st.builds(own_writer, st.just(codec), st.sampled_from([None, *levels]))


flags = st.booleans()
WRITERS: dict[int, st.SearchStrategy[Writer]] = {
    GZIP: own_writers(GZIP)
    | st.builds(
        gzip_writer,
        st.integers(0, 9),
        st.integers(9, 15),
        st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY, zlib.Z_FIXED]),
    ),
    SNAPPY: own_writers(SNAPPY)
    | st.just(raw_snappy)
    | st.builds(
        xerial_writer,
        st.sampled_from([1_000, 32 * 1024, 70_000]),
        st.binary(min_size=8, max_size=8),
    ),
    LZ4: own_writers(LZ4)
    | st.just(java_lz4)
    | st.builds(
        lambda **options: partial(lz4.frame.compress, **options),
        compression_level=st.integers(-5, 12),
        block_size=st.sampled_from([0, 4, 5, 6, 7]),
        block_linked=flags,
        content_checksum=flags,
        block_checksum=flags,
        store_size=flags,
    ),
    ZSTD: own_writers(ZSTD)
    | st.builds(zstd_writer, st.integers(-7, 12), checksum=flags, size=flags, streams=flags),
}


@st.composite
def written(draw: st.DrawFn) -> tuple[int, bytes, bytes]:
    """Return a codec, bytes, and the frames or members that they were compressed to."""
    codec = draw(st.sampled_from([GZIP, SNAPPY, LZ4, ZSTD]))
    parts = draw(st.lists(plains, min_size=1, max_size=1 if codec == SNAPPY else 3))
    packed = [draw(WRITERS[codec])(part) for part in parts]
    return codec, b"".join(parts), b"".join(packed)


def read(decompressor: Decompressor, codec: int, compressed: bytes, room: int) -> bytes:
    """Decompress into memory between guards, of which no byte may change."""
    memory = bytearray(b"\xa5" * (room + 2 * GUARD))
    found = bytearray()
    stream = decompressor.open(codec, memoryview(compressed), 2)
    try:
        while size := stream.readinto(memoryview(memory)[GUARD : GUARD + room]):
            found += memory[GUARD : GUARD + size]
    finally:
        assert memory[:GUARD] == memory[-GUARD:] == b"\xa5" * GUARD
    return bytes(found)


@given(st.lists(written(), min_size=1, max_size=4), rooms)
def test_whatever_is_written_is_read_by_one_decompressor(batches, room):
    """Any level, block mode, size of blocks, checksums and number of frames."""
    decompressor = Decompressor()
    for codec, plain, compressed in batches:
        assert read(decompressor, codec, compressed, room) == plain


@given(written(), rooms, st.data())
def test_what_is_cut_off_fails_or_is_a_part(batch, room, data):
    """And the next batch is read as if nothing had happened."""
    codec, plain, compressed = batch
    decompressor = Decompressor()
    cut = compressed[: data.draw(st.integers(0, len(compressed)))]
    try:
        found = read(decompressor, codec, cut, room)
    except FAILURES:
        pass
    else:
        assert plain.startswith(found)
    assert read(decompressor, codec, compressed, room) == plain


@given(written(), rooms, st.data())
def test_changed_bytes_fail_in_a_known_way_or_are_read(batch, room, data):
    """No byte outside of the memory is touched, and the next batch is read.

    What ends inside a frame of zstd is a part, which is shorter where there is less memory.
    """
    codec, plain, compressed = batch
    changed = bytearray(compressed)
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), max_size=3)):
        changed[place] = data.draw(st.integers(0, 255))
    decompressor = Decompressor()
    outcomes = [outcome(decompressor, codec, bytes(changed), size) for size in (room, 3)]
    short, long = sorted(outcomes, key=lambda each: len(each or b""))
    is_part = codec == ZSTD and short is not None and long is not None and long.startswith(short)
    assert short == long or is_part
    assert read(decompressor, codec, compressed, room) == plain


def outcome(decompressor: Decompressor, codec: int, compressed: bytes, room: int) -> bytes | None:
    try:
        return read(decompressor, codec, compressed, room)
    except FAILURES:
        return None


PEERS: dict[int, Callable[[bytes], io.BufferedIOBase]] = {
    GZIP: lambda data: gzip.GzipFile(fileobj=io.BytesIO(data)),
    LZ4: lambda data: lz4.frame.LZ4FrameFile(io.BytesIO(data)),
}


@given(plains, st.sampled_from([GZIP, LZ4]), st.data())
def test_what_is_refused_of_changed_bytes_is_what_the_usual_library_refuses(plain, codec, data):
    changed = bytearray(Compressor(Codec(codec)).compress(memoryview(plain)))
    # Which extensions of a header are known differs between libraries of gzip.
    first = 10 if codec == GZIP else 0
    for place in data.draw(st.lists(st.integers(first, len(changed) - 1), max_size=3)):
        changed[place] = data.draw(st.integers(0, 255))
    try:
        expected = PEERS[codec](bytes(changed)).read()
    except (zlib.error, OSError, EOFError, RuntimeError):
        expected = None
    assert outcome(Decompressor(), codec, bytes(changed), MIB) == expected


@pytest.mark.parametrize("pack", [java_lz4, raw_snappy, Compressor(Codec.SNAPPY).compress])
def test_every_cut_of_what_clients_write(pack):
    codec = LZ4 if pack is java_lz4 else SNAPPY
    plain = text(7, 600)
    packed = pack(plain)
    header = 16 if packed.startswith(b"\x82SNAPPY") else 0
    for cut in range(header + 1, len(packed)):
        with pytest.raises(FAILURES):
            read(Decompressor(), codec, packed[:cut], 10_000)


def test_nothing_is_no_frame_of_lz4():
    with pytest.raises(EOFError):
        read(Decompressor(), LZ4, b"", MIB)


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        (b"\0\0\0", "truncated"),
        (b"\x05\0\0\0abcd", "truncated"),
        (b"\x05\0\0\x80abcd", "truncated"),
        (b"\x01\0\x01\0" + bytes(65_537), "larger than its frame allows"),
        (b"\x01\0\x01\x80" + bytes(65_537), "larger than its frame allows"),
    ],
)
def test_blocks_of_lz4_that_do_not_fit(blocks, reason):
    with pytest.raises((EOFError, ValueError), match=reason):
        read(Decompressor(), LZ4, java_lz4(b"")[:7] + blocks, MIB)


def test_a_block_of_lz4_that_decompresses_to_more_than_its_frame_allows():
    block = bytes(cramjam.lz4.compress_block(bytes(65_537), store_size=False))
    frame = java_lz4(b"")[:7] + struct.pack("<I", len(block)) + block + bytes(4)
    for room in (MIB, 1_000):
        with pytest.raises(cramjam.DecompressionError):
            read(Decompressor(), LZ4, frame, room)


@pytest.mark.parametrize("name", ["lz4", "gzip", "snappy", "raw snappy", "zstd", "linked lz4"])
def test_nothing_is_allocated_for_a_batch_but_a_small_piece(name):
    codec, packed = packed_by(name, text(3, MIB))
    decompressor, room = Decompressor(), memoryview(bytearray(MIB + 1_000))

    def decompress() -> int:
        stream, total = decompressor.open(codec, memoryview(packed), 2), 0
        while size := stream.readinto(room[total:]):
            total += size
        return total

    assert decompress() == MIB
    tracemalloc.start()
    try:
        assert [decompress() for _ in range(3)] == [MIB] * 3
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * 64 * 1024


@pytest.mark.parametrize("name", ["lz4", "snappy", "raw snappy"])
def test_blocks_that_do_not_fit_take_the_same_spare_memory(name):
    codec, packed = packed_by(name, text(3, 200_000))
    decompressor = Decompressor()
    assert len(read(decompressor, codec, packed, 10_000)) == 200_000
    spare = decompressor.spare(1)
    assert len(read(decompressor, codec, packed, 10_000)) == 200_000
    assert decompressor.spare(len(spare)) is spare
    assert len(spare) < MIB


def test_a_large_window_of_zstd_is_not_kept():
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    packed = packer.compress(b"wide") + packer.flush()
    decompressor = Decompressor()
    assert read(decompressor, ZSTD, packed, 100) == b"wide"
    assert decompressor._zstd.memory_size() > 128 * MIB
    assert read(decompressor, ZSTD, zstandard.compress(b"usual"), 100) == b"usual"
    usual = decompressor._zstd
    assert usual.memory_size() < MIB
    assert read(decompressor, ZSTD, zstandard.compress(b"usual"), 100) == b"usual"
    assert decompressor._zstd is usual


@pytest.mark.parametrize(
    ("name", "batch_bytes"), [("lz4", 16_384), ("lz4", 1_000_000), ("gzip", 1_000_000)]
)
def test_a_fresh_reader_has_under_1000_page_faults_per_100_mb(name, batch_bytes):
    command = [sys.executable, "-m", PROGRAM, name, str(batch_bytes)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert faults_of(printed) < 1_000
