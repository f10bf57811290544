"""Records and messages that say what cannot be, in batches whose checksums are right."""

import struct
import zlib

import pytest

from pyspark_kafka.adapters.kafka_format import status
from pyspark_kafka.adapters.kafka_format.legacy_kernel import MESSAGE_HEAD_BYTES, scan_messages
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS, Projection
from verification.fuzz.guarded import guarded_copy

from .batches import GZIP, NONE, Batch, holding, message, raw_batch, raw_record, sized, varint
from .reading import decoded

FRONT = b"\0\0\0"
"""Attributes, and no delta of time and of offset."""

KV = sized(b"k") + sized(b"v")
PAIR = sized(b"a") + sized(b"b")
SIX = b"\x80\x80\x80\x80\x80\0"
ELEVEN = b"\x80" * 10 + b"\0"

BAD_VARINT = "a varint has more bytes than its type"
BAD_LENGTH = "a length does not fit its record"
TRUNCATED = "a record extends past its end"

# Each is right but for one thing, and that is wrong by as little as can be.
WITH_ALL_COLUMNS = {
    "headers that are missing": (FRONT + KV, BAD_VARINT),
    "a long count of headers": (FRONT + KV + SIX, BAD_VARINT),
    "less than no headers": (FRONT + KV + varint(-1), BAD_LENGTH),
    "a header too many": (FRONT + KV + varint(2) + PAIR, BAD_VARINT),
    "a header too few": (FRONT + KV + varint(1) + PAIR + PAIR, BAD_LENGTH),
    "a byte behind the headers": (FRONT + KV + varint(0) + b"\0", BAD_LENGTH),
    "a header without a key": (FRONT + KV + varint(1) + sized(None) + sized(b"b"), BAD_LENGTH),
    "a header's key beyond": (FRONT + KV + varint(1) + varint(2) + b"a", BAD_LENGTH),
    "a header's value beyond": (FRONT + KV + varint(1) + sized(b"a") + varint(1), BAD_LENGTH),
    "a header's value below null": (FRONT + KV + varint(1) + sized(b"a") + varint(-2), BAD_LENGTH),
    "a header's long length": (FRONT + KV + varint(1) + sized(b"a") + SIX, BAD_VARINT),
}
WITH_ANY_COLUMNS = {
    "nothing": (b"", BAD_VARINT),
    "a long delta of time": (b"\0" + ELEVEN + b"\0" + KV + b"\0", BAD_VARINT),
    "a long delta of offsets": (b"\0\0" + SIX + KV + b"\0", BAD_VARINT),
    "an offset before the first": (b"\0\0" + varint(-1) + KV + b"\0", "do not ascend"),
    "an offset behind the last": (b"\0\0" + varint(1) + KV + b"\0", "do not ascend"),
    "no key": (FRONT, BAD_VARINT),
    "a key below null": (FRONT + varint(-2) + sized(b"v") + b"\0", BAD_LENGTH),
    "a key beyond": (FRONT + varint(2) + b"k", BAD_LENGTH),
    "a key's long length": (FRONT + SIX + sized(b"v") + b"\0", BAD_VARINT),
    "no value": (FRONT + sized(b"k"), BAD_VARINT),
    "a value below null": (FRONT + sized(b"k") + varint(-2) + b"\0", BAD_LENGTH),
    "a value beyond": (FRONT + sized(b"k") + varint(2) + b"v", BAD_LENGTH),
    "a value far beyond": (FRONT + sized(b"k") + varint(2**31 - 1) + b"v", BAD_LENGTH),
    "a length that does not end": (FRONT + b"\xff", BAD_VARINT),
}
IN_THE_BATCH = {
    "a record that is missing": (raw_record(0), 2, TRUNCATED),
    "a record too many": (raw_record(0) + raw_record(1), 1, "bytes after its last record"),
    "a byte too many": (raw_record(0) + b"\0", 1, "bytes after its last record"),
    "no record, and a byte": (b"\0", 0, "bytes after its last record"),
    "a record beyond": (raw_record(0)[:-1], 1, TRUNCATED),
    "a length below nothing": (varint(-1) + raw_record(0), 1, BAD_LENGTH),
    "a length that does not end": (b"\xff\xff", 1, TRUNCATED),
    "a long length": (SIX, 1, BAD_VARINT),
}


def refuse(batch: Batch | bytes, reason: str, projection: Projection = ALL_COLUMNS) -> None:
    with pytest.raises(CorruptBatchError, match=reason):
        decoded(guarded_copy(bytes(batch)), projection=projection)


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("name", WITH_ANY_COLUMNS)
@pytest.mark.parametrize("projection", [ALL_COLUMNS, WITHOUT_HEADERS, Projection(("topic",))])
def test_what_a_record_says_of_itself_is_held_against_its_bytes(name, codec, projection):
    body, reason = WITH_ANY_COLUMNS[name]
    refuse(raw_batch(sized(body), codec=codec), reason, projection)


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("name", WITH_ALL_COLUMNS)
def test_what_a_record_says_of_its_headers_is_held_against_its_bytes(name, codec):
    body, reason = WITH_ALL_COLUMNS[name]
    refuse(raw_batch(sized(body), codec=codec), reason)


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("name", IN_THE_BATCH)
def test_what_a_batch_says_of_its_records_is_held_against_them(name, codec):
    body, count, reason = IN_THE_BATCH[name]
    refuse(raw_batch(body, count=count, last_delta=5, codec=codec), reason)


@pytest.mark.parametrize(
    ("field", "number"), [("base_offset", -1), ("last_delta", -1), ("count", -1)]
)
def test_a_batch_has_no_negative_offsets_and_not_less_than_no_records(field, number):
    refuse(raw_batch(raw_record(), **{field: number}), "offsets")


def test_offsets_beyond_the_last():
    refuse(raw_batch(raw_record(), base_offset=2**63 - 1, last_delta=1), "offsets")


def checked(magic: int, key_length: int, value_length: int, rest: bytes) -> bytes:
    """Return a message with possibly wrong lengths and a valid checksum."""
    made = bytearray(message(magic, 0, rest[:0]))
    del made[-8:]
    made += struct.pack(">i", key_length) + rest[: max(key_length, 0)]
    made += struct.pack(">i", value_length) + rest[max(key_length, 0) :]
    return resealed(bytes(made))


def resealed(made: bytes) -> bytes:

    return made[:8] + struct.pack(">iI", len(made) - 12, zlib.crc32(made[16:])) + made[16:]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize(
    ("key_length", "value_length", "rest"),
    [
        (-2, 1, b"v"),
        (1, -2, b"k"),
        (1, 2, b"kv"),
        (1, 0, b"kv"),
        (1, -1, b"kv"),
        (2**31 - 1, 1, b""),
        (1, 2**31 - 1, b"kv"),
        (1, -(2**31), b"kv"),
    ],
)
def test_a_message_is_held_against_its_bytes(magic, codec, key_length, value_length, rest):
    made = checked(magic, key_length, value_length, rest)
    if codec:
        made = holding(magic, 0, made)
    refuse(made, "a length does not fit")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("beyond", [1, 2, 3, 4])
def test_a_key_that_leaves_no_room(magic, beyond):
    wrong = bytearray(message(magic, 0, b"", b"12345678")[:-4])
    struct.pack_into(">i", wrong, len(wrong) - 12, 4 + beyond)
    refuse(resealed(bytes(wrong)), "a length does not fit")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("cut", range(1, 40))
def test_compressed_messages_that_are_cut_off(magic, cut):
    inner = message(magic, 0, b"v" * 5) + message(magic, 1, b"v" * 14)
    made = holding(magic, 1, inner[:-cut])
    refuse(made, TRUNCATED)


@pytest.mark.parametrize("magic", [0, 1])
def test_nothing_is_read_behind_messages(magic):
    inner = message(magic, 0, b"v" * 5) + message(magic, 1, b"v" * 14)
    first = len(message(magic, 0, b"v" * 5))
    for cut in range(1, len(inner)):
        position, offset, problem = scan_messages(guarded_copy(inner[:cut]), 0, -1)
        assert problem == status.DONE
        heads = (cut >= MESSAGE_HEAD_BYTES) + (cut >= first + MESSAGE_HEAD_BYTES)
        assert (offset, position) == (heads - 1, (0, first, len(inner))[heads])


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [-1, 0, 13])
def test_compressed_messages_of_no_size(magic, size):
    inner = message(magic, 0, b"v" * 14)
    inner = inner[:8] + struct.pack(">i", size) + inner[12:]
    made = holding(magic, 0, inner)
    refuse(made, "its size is too small for a batch")


@pytest.mark.parametrize("value", [None, b""])
def test_a_message_that_is_to_hold_others_and_holds_none_is_refused(value):
    refuse(message(1, 0, value, attributes=GZIP), "is corrupt")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", [-1, 0, 3, 2**31 - 1])
def test_compressed_messages_of_another_length(magic, length):
    made = holding(magic, 0, message(magic, 0, b"v"))
    place = 22 if magic == 0 else 30
    wrong = made[:place] + struct.pack(">i", length) + made[place + 4 :]
    refuse(resealed(wrong), "a length does not fit")


def test_compressed_messages_behind_their_last():
    inner = message(0, 5, b"v") + message(0, 6, b"v")
    made = holding(0, 5, inner)
    refuse(made, "do not ascend")
