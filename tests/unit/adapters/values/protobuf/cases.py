"""Messages by hand, each with what is expected of it beyond the same result as the oracle's.

A line of ``cases.txt`` says what a message is about, its bytes in the language of Google's
``protoscope``, and a field of the result or the reason why it is refused. The lines below a type
of messages in brackets are of it, and read with the settings that it names.
"""

import ast
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings
from pyspark_kafka.domain.values.errors import FailureReason as Reason

from .wire import fixed32, fixed64, group, number, sized, tag, varint, zigzag

PLAIN: Final = ProtobufSettings(max_recursion=3)
ALL: Final = ProtobufSettings(
    emit_defaults=True,
    enums_as_ints=True,
    upcast_unsigned=True,
    unwrap_wrappers=True,
    retain_empty=True,
    max_recursion=2,
)
SETTINGS: Final = {
    "": PLAIN,
    "ALL": ALL,
    "UNWRAP": ProtobufSettings(unwrap_wrappers=True),
    "EMIT": ProtobufSettings(emit_defaults=True, max_recursion=2),
}


class Case(NamedTuple):
    """A message's bytes; ``reason`` is why it is refused, and ``shows`` a field of the result."""

    about: str
    message: str
    data: bytes
    reason: Reason = Reason.NONE
    settings: ProtobufSettings = PLAIN
    shows: tuple[str, object] | None = None


_TOKEN: Final = re.compile(
    r"(?P<field>\d+):|(?P<number>-?[\d.]+)(?P<kind>z|i32|i64)?"
    r'|"(?P<text>(?:[^"\\]|\\.)*)"|`(?P<raw>[0-9a-f]*)`|(?P<open>!?\{)|(?P<end>\})'
)


def message_bytes_of(text: str) -> bytes:
    """Return the bytes of a message in ``protoscope``: ``1: 5 2: {3: "text"} 4: !{} `08ff```."""
    return _fields(_TOKEN.finditer(text))


def _fields(tokens: Iterator[re.Match[str]]) -> bytes:
    out = b""
    for token in tokens:
        if token["end"]:
            break
        field = int(token["field"] or 0)
        out += _value(field, next(tokens) if field else token, tokens)
    return out


def _value(field: int, token: re.Match[str], tokens: Iterator[re.Match[str]]) -> bytes:
    if token["raw"] is not None:
        return bytes.fromhex(token["raw"])
    if token["open"]:
        make = sized if token["open"] == "{" else group
        return make(field, _fields(tokens))
    if token["text"] is not None:
        escaped = token["text"].encode().decode("unicode_escape")
        return sized(field, escaped.encode("latin-1"))
    return _number(field, token["number"], token["kind"])


def _number(field: int, text: str, kind: str | None) -> bytes:
    if kind in {"i32", "i64"}:
        make, codes = (fixed32, "<f<I") if kind == "i32" else (fixed64, "<d<Q")
        if "." in text:
            [bits] = struct.unpack(codes[2:], struct.pack(codes[:2], float(text)))
            return make(field, bits)
        return make(field, int(text))
    value = zigzag(int(text)) if kind == "z" else int(text)
    return number(field, value) if field else varint(value)


def _read_cases() -> Iterator[Case]:
    message = settings = ""
    for line in (Path(__file__).parent / "cases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            message, _, settings = line[1:-1].partition(" ")
        elif not line.startswith("#"):
            about, data, expected = (part.strip() for part in f"{line} ".split(" |"))
            name, is_shown, value = expected.partition(" = ")
            yield Case(
                about,
                message,
                message_bytes_of(data),
                Reason.NONE if is_shown or not expected else Reason[expected],
                SETTINGS[settings],
                (name, ast.literal_eval(value)) if is_shown else None,
            )


def nested(depth: int) -> bytes:
    """Return a tree whose branches are ``depth`` deep."""
    inner = b""
    for _ in range(depth):
        inner = sized(2, inner)
    return inner


def unknown_groups(depth: int) -> bytes:
    """Return groups in groups."""
    return tag(77, 3) * depth + tag(77, 4) * depth


ENTRIES: Final = b"".join(sized(2, number(1, n % 40), sized(2, b"%d" % n)) for n in range(90))
ELEMENTS: Final = sized(1, b"\1" * 3_000) + sized(6, b"x") * 500

CASES: Final = (
    *_read_cases(),
    Case("a hundred unknown groups", "test.Atoms", unknown_groups(100)),
    Case("a hundred and one unknown groups", "test.Atoms", unknown_groups(101), Reason.TOO_DEEP),
    Case("a hundred messages", "test.Tree", nested(100)),
    Case("many equal keys", "test.Maps", ENTRIES, shows=("counts", {})),
    Case("more elements than a batch has room for", "test.Repeated", ELEMENTS),
)
