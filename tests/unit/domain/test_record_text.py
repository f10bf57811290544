from __future__ import annotations

import pytest

from pyspark_kafka.domain.record_text import Rendering, printable, render

TEXT, JSON, HEX = Rendering.TEXT, Rendering.JSON, Rendering.HEX


@pytest.mark.parametrize(
    ("data", "rendering", "expected"),
    [
        (None, TEXT, (None, "")),
        (b"caf\xc3\xa9", TEXT, ("café", "")),
        (b"caf\xe9", TEXT, ("caf\\xe9", "")),
        (b"\x00\xff", HEX, ("00ff", "")),
        (b'{"id": 1}', JSON, ({"id": 1}, "")),
        (b"{", JSON, ("{", "not JSON")),
        (b"[" * 200_000, JSON, ("[" * 200_000, "not JSON")),
    ],
    ids=str,
)
def test_bytes_are_shown(
    data: bytes | None, rendering: Rendering, expected: tuple[object, str]
) -> None:
    """No bytes fail: what cannot be decoded is escaped, or shown as text."""
    assert render(data, rendering) == expected


def test_a_terminal_obeys_no_record() -> None:
    """Control characters are escaped, and a text stays on its line."""
    assert printable("né 1") == "né 1"
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
