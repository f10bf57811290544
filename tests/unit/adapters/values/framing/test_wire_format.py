"""Confluent's wire format, in the bytes that its documentation and ``SchemaId`` define."""

from typing import Final

import pytest

from pyspark_kafka.adapters.values.framing.wire_format import (
    guid_header,
    header_name,
    id_prefix,
    parse_framing,
)

GUID: Final = "89791762-2336-4186-9674-299b90a802e2"
GUID_BYTES: Final = bytes.fromhex("8979176223364186 9674299b90a802e2")

INDEXES: Final = [
    (None, b""),
    ((0,), b"\0"),
    ((1,), b"\2\2"),
    ((0, 0), b"\4\0\0"),
    ((3, 2, 1), b"\6\6\4\2"),
    ((63, 64, 300), b"\6\x7e\x80\1\xd8\4"),
    ((2**31 - 1,), b"\2\xfe\xff\xff\xff\x0f"),
]


@pytest.mark.parametrize("schema_id", [1, 255, 256, 0x01020304, 2**31 - 1])
@pytest.mark.parametrize(("indexes", "encoded"), INDEXES)
def test_an_id_before_a_payload(schema_id, indexes, encoded):
    prefix = id_prefix(schema_id, indexes)
    assert prefix == b"\0" + schema_id.to_bytes(4, "big") + encoded
    assert parse_framing(prefix) == (schema_id, indexes or ())


@pytest.mark.parametrize(("indexes", "encoded"), INDEXES)
def test_a_guid_in_a_header(indexes, encoded):
    header = guid_header(GUID, indexes)
    assert header == b"\1" + GUID_BYTES + encoded
    assert parse_framing(header) == (GUID, indexes or ())


def test_the_first_message_has_a_short_form():
    """The indexes of the first message are one zero byte, and may be written in full."""
    assert parse_framing(b"\0\0\0\0\5\0") == parse_framing(b"\0\0\0\0\5\2\0") == (5, (0,))


def test_the_names_of_the_headers():
    assert header_name("value") == "__value_schema_id"
    assert header_name("key") == "__key_schema_id"
