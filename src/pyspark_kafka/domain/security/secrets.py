"""Which options and settings hold a secret, by their names and values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar, final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    T = TypeVar("T")


SENSITIVE_NAMES: Final = (
    r"secret|pass?w|pwd|passphrase|token|credential|jaas|(?:access|account|private|keystore)[._-]?key"
    r"|[._]key[._]pem|connection[._-]?string|storage[._-]?options|user[._-]?info"
    r"|basic[._-]?auth|ssl[._-]?key(?![._a-z])|oauthbearer[._]config"
)
"""A pattern of such names, for Python and for Java, in upper or lower case.

Java's clients, librdkafka, kafka-python (with underscores for dots), fsspec and the clients of
schema registries name them, and some are misspelled. It also matches some names of files, addresses
and times.
"""

SENSITIVE_VALUES: Final = (
    r"://[^/@: ]*:(?![0-9]{2,5}/)[^@ ]*@|s3[an]?:/+[^/@: ]*:[^@ ]*@"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?:[?]|&)(?:[a-z-]*signature|sig|delegation)="
)
"""A pattern of values that are secrets under any name: private keys, URLs with a password.

A password may have a "/", as AWS's secret keys do; after a port, which URLs of S3 lack, "/" begins
the path. The last ones are signed URLs (Azure's SAS, AWS, Google), and delegation tokens of
WebHDFS.
"""

_SENSITIVE_VALUE: Final = re.compile(SENSITIVE_VALUES, re.IGNORECASE)
_SECRET: Final = re.compile(SENSITIVE_NAMES, re.IGNORECASE)

_NO_VALUE: Final = re.compile(
    r"(?:[._-](?:class|endpoint|file|id|location|ms|name|scope|seconds|source|type|ur[il])|provider)s?$",
    re.IGNORECASE,
)
"""Endings of names whose values are only a secret's place or owner."""


HIDDEN: Final = "[hidden]"

_MAX_WORD: Final = 3
"""Characters of a secret that other words may contain, such as a container's name."""

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# With one slash as well, as Hadoop prints paths. A user without a password may be a token.
URL_LOGIN: Final = re.compile(
    r"(?:(?<=\bs3:/)|(?<=\bs3[an]:/)|(?<=:/)(?!/?[^/@:\s]*:[0-9]{2,5}/))(/?)[^/@:\s]*:\S*@"
    r"|(?<=://)[^/@\s]*@",
    re.IGNORECASE,
)
PORT_OR_PASSWORD: Final = re.compile(r"(?<=:/)(/?[^/@:\s]*:)[0-9]{2,5}/\S*@")
"""A port and a path with "@", or a password that begins like a port: ``ftp://ann:98/secret@host``."""

_QUERY: Final = re.compile(r"\?[\w.%-]+=[^\s'\")]*")
_ASSIGNED: Final = re.compile(
    rf"""(?P<name>(?:{SENSITIVE_NAMES})[\w.-]{{0,99}})(?P<sign>["']?\s*[=:]\s*)"""
    r"""(?:"(?:[^"\\]|\\+[^\\])*"?|'(?:[^'\\]|\\+[^\\])*'?|\[[^\]]*\]?)""",
    re.IGNORECASE | re.DOTALL,
)
"""An option of a JAAS line, or a member of JSON, whose value is quoted or a list."""
_UNQUOTED: Final = re.compile(
    rf"(?P<name>(?:{SENSITIVE_NAMES})[\w.-]{{0,99}})(?P<sign>[ \t]*=[ \t]*)"
    r"""(?:\\+["'])?[^\s"';&]+""",
    re.IGNORECASE,
)
"""The same without quotes, or with a string's: a form, properties, or a connection string."""
_CREDENTIALS: Final = re.compile(
    r"""(authorization["']?\s*[=:]\s*["']?\w+\s+)[^\s"']+""", re.IGNORECASE
)
_JWT: Final = re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]+)+")


@final
class Secret(str):
    """A text whose ``repr`` hides it, as Java hides a password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


def is_secret(name: str) -> bool:
    """Return whether the value of an option or a setting of this name must not be shown."""
    return bool(_SECRET.search(name)) and not _NO_VALUE.search(name)


def holds_secret(name: str, value: str) -> bool:
    """Return whether an option or a setting must not be shown, by its name, value or JSON keys."""
    if is_secret(name) or _SENSITIVE_VALUE.search(value):
        return True
    try:
        return _has_secret(json.loads(value))
    except (RecursionError, ValueError):
        return False


def without_secrets(text: str) -> str:
    """Return a text without what is a secret under any name.

    These are private keys, logins and queries of URLs, tokens that are JWTs, and secrets in JAAS
    lines, JSON, forms, headers and connection strings. Every message passes here, since a secret
    may be pasted into an option that holds none.
    """
    text = URL_LOGIN.sub(r"\1", _PRIVATE_KEY.sub(HIDDEN, text))
    text = PORT_OR_PASSWORD.sub(rf"\1{HIDDEN}@", text)
    text = _JWT.sub(HIDDEN, _CREDENTIALS.sub(rf"\1{HIDDEN}", _QUERY.sub(f"?{HIDDEN}", text)))
    return _UNQUOTED.sub(_without_value, _ASSIGNED.sub(_without_value, text))


def _without_value(found: re.Match[str]) -> str:
    if not is_secret(found["name"]):
        return found[0]
    shown = HIDDEN if found.re is _UNQUOTED else f'"{HIDDEN}"'
    return f"{found['name']}{found['sign']}{shown}"


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets, as they are and as in URLs, HTML and JSON.

    One of a few letters is replaced as a whole word only: a message must stay readable.
    """
    forms = {form for each in secrets for form in _spellings(each)}
    for form in sorted(forms - {""}, key=len, reverse=True):
        word = re.escape(form)
        text = re.sub(word if len(form) > _MAX_WORD else rf"\b{word}\b", HIDDEN, text)
    return text


def _spellings(secret: str) -> Iterator[str]:
    # Few processes have a secret to hide.
    from html import escape

    yield secret
    for quoted in (quote(secret, safe=""), quote_plus(secret)):
        yield quoted
        yield _ESCAPE.sub(lambda found: found[0].lower(), quoted)
    yield escape(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]


_ESCAPE: Final = re.compile("%[0-9A-F]{2}")


def hides_secrets(kind: type[T]) -> type[T]:
    """Decorate a dataclass, so that its ``repr`` is ``without_secrets``."""
    generated = kind.__repr__
    kind.__repr__ = lambda self: without_secrets(generated(self))  # type: ignore[method-assign]
    return kind


def _has_secret(parsed: Any) -> bool:
    match parsed:
        case dict():
            return any(is_secret(name) or _has_secret(value) for name, value in parsed.items())
        case list():
            return any(map(_has_secret, parsed))
        case _:
            return False
