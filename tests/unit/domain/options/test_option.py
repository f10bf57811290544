import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.options.option import (
    boolean,
    clamp,
    integer,
    milliseconds,
    non_negative_integer,
    positive_integer,
    positive_long,
    time_to_live,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("False", False),
        ("fAlSe", False),
    ],
)
def test_boolean(text, value):
    assert boolean(text) is value


@pytest.mark.parametrize("text", ["", "x", "yes", "no", "1", "0", "t", "on", "truefalse"])
def test_other_booleans_are_refused_in_the_jvms_words(text):
    with pytest.raises(ValueError, match=r"^For input") as caught:
        boolean(text)
    assert str(caught.value) == f'For input string: "{text}"'


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_that_fit_a_jvm_long_are_read(number):
    assert integer(str(number)) == number


@pytest.mark.parametrize(
    ("text", "value"),
    [("007", 7), ("+5", 5), ("-0", 0), ("-5", -5), ("9223372036854775807", 2**63 - 1)],
)
def test_signs_and_leading_zeros_are_read(text, value):
    assert integer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "+",
        "-",
        "--5",
        "++5",
        "+-5",
        "5-",
        " 5",
        "5 ",
        "5_0",
        "1.0",
        "5L",
        "0x5",
        "1e3",
        "²",
        "9223372036854775808",
        "-9223372036854775809",
    ],
)
def test_other_integers_are_refused_in_the_jvms_words(text):
    with pytest.raises(ValueError, match=r"^For input") as caught:
        integer(text)
    assert str(caught.value) == f'For input string: "{text}"'


@pytest.mark.parametrize(
    ("make", "smallest", "problem"),
    [
        (positive_integer, 1, "someOption must be positive"),
        (positive_long, 1, "someOption must be positive"),
        (non_negative_integer, 0, "someOption must not be negative"),
    ],
)
def test_a_bounded_number_is_read_from_its_smallest_value_on(make, smallest, problem):
    parse = make("someOption")
    assert parse(str(smallest)) == smallest
    assert parse("2147483647") == 2**31 - 1
    for below in (smallest - 1, -(2**31)):
        with pytest.raises(ValueError, match=f"^{problem}$"):
            parse(str(below))
    with pytest.raises(ValueError, match=r'^For input string: "a"$'):
        parse("a")


@pytest.mark.parametrize("text", ["-+5", "9" * 5_000, "5 ", "٣"])
def test_what_the_jvm_does_not_read_is_refused_in_its_words(text):
    with pytest.raises(ValueError, match="For input string") as caught:
        integer(text)
    assert str(caught.value) == f'For input string: "{text}"'


def test_a_boolean_is_not_trimmed():
    with pytest.raises(ValueError, match='For input string: " true"'):
        boolean(" true")


@pytest.mark.parametrize("parse", [positive_integer("x"), non_negative_integer("x")])
def test_a_number_fits_a_jvm_int(parse):
    assert parse("2147483647") == 2**31 - 1
    with pytest.raises(ValueError, match='For input string: "2147483648"'):
        parse("2147483648")


def test_a_long_fits_a_jvm_long():
    parse = positive_long("x")
    assert parse("9223372036854775807") == 2**63 - 1
    with pytest.raises(ValueError, match='For input string: "9223372036854775808"'):
        parse("9223372036854775808")


@pytest.mark.parametrize(("text", "value"), [("-1", -1), ("1", 1), ("30000", 30_000)])
def test_a_time_to_live_is_minus_one_or_positive(text, value):
    assert time_to_live("x")(text) == value


@pytest.mark.parametrize("text", ["0", "-2", "-100"])
def test_other_times_to_live_are_refused(text):
    with pytest.raises(ValueError, match=f"^x must be -1 or positive, got {text}$"):
        time_to_live("x")(text)


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
