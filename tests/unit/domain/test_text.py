import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.text import (
    QuotedError,
    Rendering,
    describe_error,
    excerpt,
    find_error,
    html_table,
    printable,
    render,
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (
            OptionsError(["One.", "Two."]),
            "[KAFKA_INVALID_OPTIONS] 2 options cannot be used: - One. - Two.",
        ),
    ],
)
def test_an_error_is_one_line(error, line):
    """Only errors of other libraries need the name of their class."""
    assert describe_error(error) == line


def test_our_error_is_found_in_a_traceback_that_spark_quotes():
    quoted = (
        "An exception was thrown from the Python worker:\n"
        "pyspark_kafka.domain.errors.DriverLostError: [KAFKA_DRIVER_LOST] It closed.\n\n"
        "at org.apache.spark.Something"
    )
    assert find_error(quoted) == QuotedError("DriverLostError", "[KAFKA_DRIVER_LOST] It closed.")


def test_a_text_may_have_no_error_of_ours():
    assert find_error("ValueError: [X] y") is None


def test_an_excerpt_shows_no_control_characters():
    assert excerpt("a\x1b[2J\n") == r"a\x1b[2J\n"
    assert excerpt("x" * 10_000).endswith("x...")


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
def test_bytes_are_shown(data, rendering, expected):
    assert render(data, rendering) == expected


def test_a_terminal_obeys_no_record():
    assert printable("né 1") == "né 1"
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\\nb"


def test_a_table_without_headings():
    assert html_table("a & b", [("<i>", 12_345)]) == (
        "<table><caption>a &amp; b</caption>"
        "<tbody><tr><td>&lt;i&gt;</td><td>12,345</td></tr></tbody></table>"
    )


def test_headings_are_escaped_too():
    assert "<thead><tr><th>&lt;b&gt;</th></tr></thead>" in html_table("", [], ["<b>"])
