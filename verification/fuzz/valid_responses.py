"""Valid responses of each type and version, encoded by kafka-python's classes."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

CORRELATION_ID: Final = 1
TOPIC: Final = "t"
TOPIC_ID: Final = UUID(int=7)

_VALUES: Final[Mapping[str, object]] = {
    "int8": 1,
    "int16": 1,
    "uint16": 1,
    "int32": 1,
    "int64": 5,
    "float64": 1.0,
    "bool": False,
    "uuid": TOPIC_ID,
    "string": TOPIC,
    "bytes": b"bytes",
    "records": b"records",
    "bitfield": set(),
}


def valid_response(response: Any, version: int, **given: object) -> bytes:
    """Return a response of a version without its size: one element in each array, no error.

    ``given`` are values of fields, wherever they are.
    """
    body: bytes = _filled(response, response._struct, version, given).encode(version=version)
    tags = b"\0" if response.flexible_version_q(version) else b""
    return struct.pack(">i", CORRELATION_ID) + tags + body


def variants(response: Any, version: int, **given: object) -> Iterator[bytes]:
    """Yield responses without an error, and with errors that pass or not; and an empty one."""
    for error_code in (0, 15, 29, 47):
        yield valid_response(response, version, **{"error_code": error_code, **given})
    yield struct.pack(">i", CORRELATION_ID) + bytes(24)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _filled(make: Any, fields: Any, version: int, given: Mapping[str, object]) -> Any:
    values = {
        each.name: given.get(each.name, _value(each, version, given))
        for each in fields._fields
        if each.for_version_q(version)
    }
    return make(version=version, **values) if make is not fields.data_class else make(**values)


def _value(each: Any, version: int, given: Mapping[str, object]) -> object:
    if each.is_struct_array():
        return [_filled(each.data_class, each.array_of, version, given)]
    if each.is_struct():
        return _filled(each.data_class, each, version, given)
    if each.is_array():
        return [_VALUES[each.array_of.type_str]]
    if each.name.endswith("error_code"):
        return given.get("error_code", 0)
    if each.name.endswith(("partition_index", "node_id", "leader_id", "index")):
        return 0
    return _VALUES[each.type_str]
