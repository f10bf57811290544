import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.options.option import boolean, clamp, integer, milliseconds


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (boolean, "True", True),
        (boolean, "TRUE", True),
        (boolean, "fAlSe", False),
        (integer, "007", 7),
        (integer, "+5", 5),
        (integer, "-0", 0),
    ],
)
def test_values_are_read_as_the_jvm_reads_them(parse, text, value):
    assert parse(text) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_that_fit_a_jvm_long_are_read(number):
    assert integer(str(number)) == number


NO_BOOLEANS = ["", "x", "yes", "1", "0", "t", "truefalse", " true"]
NO_INTEGERS = ["", " ", "a", "+", "--5", "+-5", "5-", " 5", "5 ", "5_0", "1.0", "5L", "0x5", "1e3"]
NO_INTEGERS += ["²", "٣", str(2**63), str(-(2**63) - 1), "9" * 5_000]


@pytest.mark.parametrize(("parse", "texts"), [(boolean, NO_BOOLEANS), (integer, NO_INTEGERS)])
def test_other_values_are_refused_in_the_jvms_words(parse, texts):
    for text in texts:
        with pytest.raises(ValueError, match=r"^For input") as caught:
            parse(text)
        assert str(caught.value) == f'For input string: "{text}"'


@pytest.mark.parametrize(("number", "nearest"), [(0, 1), (1, 1), (5, 5), (9, 9), (10, 9)])
def test_clamp(number, nearest):
    assert clamp(1, number, 9) == nearest


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
def test_durations_are_read_as_whole_milliseconds(text, expected):
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
def test_a_duration_that_a_long_does_not_hold_becomes_the_nearest_long(text, expected):
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
def test_what_is_no_duration_is_refused_in_sparks_words(text, detail):
    with pytest.raises(ValueError, match=r"^Time must be specified") as caught:
        milliseconds(text)
    assert str(caught.value) == f"{HELP}\n{detail}"


@given(st.text())
def test_any_text_is_a_duration_or_is_refused(text):
    try:
        milliseconds(text)
    except ValueError as error:
        assert str(error).startswith(HELP)  # noqa: PT017


@given(st.integers(0, 10**9))
def test_units_are_multiples_of_the_next(number):
    assert milliseconds(f"{number}d") == milliseconds(f"{24 * number}h")
    assert milliseconds(f"{number}h") == milliseconds(f"{60 * number}m")
    assert milliseconds(f"{number}min") == milliseconds(f"{60 * number}s")
    assert milliseconds(f"{number}s") == milliseconds(f"{1_000 * number}ms")
    assert milliseconds(f"{number}ms") == milliseconds(f"{1_000 * number}us")
