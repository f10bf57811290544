"""Reading a JAAS line, as Java's ``JaasContext`` does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JAAS: Final = "Option 'kafka.sasl.jaas.config'"
_SHADED: Final = "kafkashaded."
"""The package prefix of Kafka's classes on platforms that shade them."""


def jaas_entry(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the login module and its options; no message repeats what may be a password."""
    tokens = list(_jaas_tokens(text))
    words = [word for word, _ in tokens]
    if len(tokens) < 2 or words[1].lower() not in _FLAGS:
        raise ValueError(
            f"{JAAS} must be a login module's class, one of required, requisite, sufficient "
            'and optional, and options as name="value", with a semicolon at the end'
        )
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != _END:
        name, equals, value = (*tokens[position : position + 3], _END, _END)[:3]
        if name == _EQUALS or equals != _EQUALS or value in (_EQUALS, _END):
            raise ValueError(
                f"{JAAS}: option {(position + 1) // 3} of the login module is not of the form "
                'name="value"'
            )
        options[name[0]] = value[0]
        position += 3
    if position >= len(tokens):
        raise ValueError(f"{JAAS} does not end with a semicolon")
    if position + 1 < len(tokens):
        raise ValueError(f"{JAAS} must hold one login module, and has text after it")
    return words[0].removeprefix(_SHADED), options


_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_EQUALS: Final = ("=", False)
_END: Final = (";", False)

_JAAS_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | //[^\n\r]* | /\*.*?\*/ )
  | (?P<sign> [=;] )
  | "(?P<double> (?: [^"\\\n\r] | \\. )* ) (?: " | (?=[\n\r]) | \Z )
  | '(?P<single> (?: [^'\\\n\r] | \\. )* ) (?: ' | (?=[\n\r]) | \Z )
  | (?P<word> (?: (?! //|/\* ) [^\s=;"'] )+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final[Mapping[str, str]] = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def _jaas_tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the tokens of Java's ``StreamTokenizer``, each with whether it was quoted."""
    position = 0
    while position < len(text):
        found = _JAAS_TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"{JAAS} cannot be read from character {position + 1} on")
        position = found.end()
        match found.lastgroup:
            case "double" | "single":
                yield _ESCAPE.sub(_unescaped, found[found.lastgroup]), True
            case "sign" | "word":
                yield found[0], False


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
