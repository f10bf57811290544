"""Which options and settings hold a secret, by their names."""

from __future__ import annotations

import json
import re
from typing import Any, Final

SENSITIVE_NAMES: Final = (
    r"secret|password|passphrase|token|credential|jaas|(?:access|account|private|keystore)[._-]?key"
    r"|[._]key[._]pem|connection[._-]?string|storage[._-]?options|user[._-]?info"
)
"""A pattern of such names, for Python and for Java, in upper or lower case.

Java's clients, librdkafka, kafka-python (with underscores for dots), fsspec and the clients of
schema registries name them. It matches some names too many: of files, addresses and times.
"""

SENSITIVE_VALUES: Final = r"://[^/@ ]*:[^/@ ]*@|-----BEGIN [A-Z ]*PRIVATE KEY-----"
"""A pattern of values that are secrets under any name: URLs with a password, private keys."""

_SENSITIVE_VALUE: Final = re.compile(SENSITIVE_VALUES)
_SECRET: Final = re.compile(SENSITIVE_NAMES, re.IGNORECASE)

_NO_VALUE: Final = re.compile(
    r"(?:[._](?:class|endpoint|file|id|location|ms|name|scope|seconds|source|type|ur[il])|provider)s?$",
    re.IGNORECASE,
)
"""How names end that only say where a secret is, or whose."""


def is_secret(name: str) -> bool:
    """Return whether the value of an option or a setting of this name must not be shown."""
    return bool(_SECRET.search(name)) and not _NO_VALUE.search(name)


def holds_secret(name: str, value: str) -> bool:
    """Return whether an option or a setting must not be shown, by its name, value or JSON keys."""
    if is_secret(name) or _SENSITIVE_VALUE.search(value):
        return True
    try:
        return _has_secret(json.loads(value))
    except ValueError:
        return False


def _has_secret(parsed: Any) -> bool:
    match parsed:
        case dict():
            return any(is_secret(name) or _has_secret(value) for name, value in parsed.items())
        case list():
            return any(map(_has_secret, parsed))
        case _:
            return False
