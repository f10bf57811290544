"""The format ``json``, and its options: some of ``from_json``'s, by the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....domain.errors import OptionsError
from ....domain.values.data_types import parse_struct
from ....ports.values.value_format import ValueFormat
from ..encoding.time_zones import NOT_A_ZONE, find_zone
from . import context
from .decoder import DEFAULT_LIMIT, JsonDecoder, JsonOptions
from .encoder import JsonEncoder
from .patterns import parsing_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ....domain.values.data_types import StructType
    from ....domain.values.registry import Schema
    from ....domain.values.value_options import ValueOptions
    from ...kernels.arrays import Int64Array

# Spark's `JSONOptions`: names, defaults.
_FLAGS: Final = {
    "allowComments": (context.COMMENTS, False),
    "allowUnquotedFieldNames": (context.UNQUOTED_NAMES, False),
    "allowSingleQuotes": (context.SINGLE_QUOTES, True),
    "allowNumericLeadingZeros": (context.LEADING_ZEROS, False),
    "allowNonNumericNumbers": (context.NOT_A_NUMBER, True),
    "allowBackslashEscapingAnyCharacter": (context.ANY_ESCAPE, False),
    "allowUnquotedControlChars": (context.CONTROL_CHARACTERS, False),
}
_FALLBACK: Final = "enableDateTimeParsingFallback"
_PATTERNS: Final = {
    "dateFormat": (context.DATE_STEPS, context.DATES_HAVE_FALLBACK),
    "timestampFormat": (context.TIMESTAMP_STEPS, context.TIMESTAMPS_HAVE_FALLBACK),
    "timestampNTZFormat": (context.NTZ_STEPS, 0),
}
"""The places of the steps, and the alternative that is tried without a pattern."""

_MAX_DEPTH: Final = "maxNestingDepth"
_MAX_DIGITS: Final = "maxNumLen"
_TIME_ZONE: Final = "timeZone"
_LOCALE: Final = "locale"

MAX_LIMIT: Final = 100_000


def parse_json_options(options: ValueOptions) -> JsonOptions:
    """Parse the settings of a column.

    :raises OptionsError: if one is invalid.
    """
    settings = {name.lower(): value for name, value in options.settings}
    problems: list[str] = []
    parsed = JsonOptions(
        _flags(settings),
        _limit(settings, _MAX_DEPTH, problems),
        _limit(settings, _MAX_DIGITS, problems),
        settings.get(_TIME_ZONE.lower(), "UTC"),
        tuple(_patterns(settings, problems)),
    )
    if find_zone(parsed.time_zone) is None:
        problems.append(f"{_TIME_ZONE} {parsed.time_zone!r} {NOT_A_ZONE}")
    locale = settings.get(_LOCALE, "en-US")
    if locale.lower() != "en-us":
        problems.append(f"{_LOCALE} {locale!r} is not supported: only en-US is")
    if problems:
        raise OptionsError(problems)
    return parsed


def _flags(settings: Mapping[str, str]) -> int:
    flags = 0
    for name, (_, fallback) in _PATTERNS.items():
        has_fallback = _is_set(settings, _FALLBACK, default=name.lower() not in settings)
        flags |= fallback if has_fallback else 0
    for name, (bit, default) in _FLAGS.items():
        flags |= bit if _is_set(settings, name, default=default) else 0
    return flags


def _is_set(settings: Mapping[str, str], name: str, *, default: bool) -> bool:
    return settings.get(name.lower(), str(default)).lower() == "true"


def _patterns(settings: Mapping[str, str], problems: list[str]) -> Iterator[tuple[int, Int64Array]]:
    for name, (place, _) in _PATTERNS.items():
        if (pattern := settings.get(name.lower())) is not None:
            try:
                yield place, parsing_steps(pattern)
            except ValueError as error:
                problems.append(f"{name} {pattern!r} cannot be used: {error}")


def _limit(settings: Mapping[str, str], name: str, problems: list[str]) -> int:
    text = settings.get(name.lower(), str(DEFAULT_LIMIT)).strip()
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_LIMIT:
        problems.append(f"{name} must be between 1 and {MAX_LIMIT}, got {text!r}")
        return DEFAULT_LIMIT
    return int(text)


def _data_type(options: ValueOptions, _schema: Schema | None) -> StructType:
    if options.schema is None:
        name = f"{options.column}Schema"
        raise OptionsError([f"'{name}' is needed to read JSON: DDL such as 'a int, b string'"])
    # So that the driver refuses them, before any task runs.
    parse_json_options(options)
    try:
        return parse_struct(options.schema)
    except ValueError as error:
        raise OptionsError([f"'{options.column}Schema' cannot be used: {error}"]) from None


def _decoder(options: ValueOptions, _schema: Schema | None, data_type: StructType) -> JsonDecoder:
    return JsonDecoder(data_type, parse_json_options(options))


def _encoder(options: ValueOptions, _schema: Schema | None, data_type: StructType) -> JsonEncoder:
    return JsonEncoder(options, data_type)


VALUE_FORMAT: Final = ValueFormat(_data_type, _decoder, _encoder)
