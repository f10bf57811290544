from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.durations import milliseconds

HELP = (
    "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), "
    "minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", 900_000),
        ("3min", 180_000),
        ("5s", 5_000),
        ("100ms", 100),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("7", 7),
        ("0", 0),
        ("-5s", -5_000),
        (" 5S\t", 5_000),
        ("\x015Min\n", 300_000),
        ("500us", 0),
        ("1500us", 1),
        ("-1500us", -1),
    ],
)
def test_duration(text: str, expected: int) -> None:
    """A number and a unit in any case are read as milliseconds, without fractions."""
    assert milliseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775807d", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775808s", -(2**63)),
        ("9223372036854775807us", 9_223_372_036_854_775),
    ],
)
def test_largest(text: str, expected: int) -> None:
    """What a long does not hold becomes the nearest that it does."""
    assert milliseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "Failed to parse time string: "),
        ("s", "Failed to parse time string: s"),
        ("5 s", "Failed to parse time string: 5 s"),
        (" 1.5S ", "Failed to parse time string:  1.5S "),
        ("+5s", "Failed to parse time string: +5s"),
        ("1e3", "Failed to parse time string: 1e3"),
        ("٣s", "Failed to parse time string: ٣s"),
        ("\u00a05s", "Failed to parse time string: \u00a05s"),
        ("5X", 'Invalid suffix: "x"'),
        ("5ns", 'Invalid suffix: "ns"'),
        ("9223372036854775808", 'For input string: "9223372036854775808"'),
        ("-9223372036854775809s", 'For input string: "-9223372036854775809"'),
        ("99999999999999999999x", 'For input string: "99999999999999999999"'),
    ],
)
def test_refusal(text: str, detail: str) -> None:
    """What is no duration is refused in the words of Spark's JavaUtils."""
    with pytest.raises(ValueError, match=r"^Time must be specified") as caught:
        milliseconds(text)
    assert str(caught.value) == f"{HELP}\n{detail}"


@given(st.text())
def test_any_text(text: str) -> None:
    """Any text is a duration or is refused with the help."""
    try:
        milliseconds(text)
    except ValueError as error:
        assert str(error).startswith(HELP)  # noqa: PT017


@given(st.integers(0, 10**9))
def test_units(number: int) -> None:
    """Each unit is as many of the next as it is everywhere."""
    assert milliseconds(f"{number}d") == milliseconds(f"{24 * number}h")
    assert milliseconds(f"{number}h") == milliseconds(f"{60 * number}m")
    assert milliseconds(f"{number}min") == milliseconds(f"{60 * number}s")
    assert milliseconds(f"{number}s") == milliseconds(f"{1_000 * number}ms")
    assert milliseconds(f"{number}ms") == milliseconds(f"{1_000 * number}us")
