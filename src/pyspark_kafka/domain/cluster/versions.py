"""Versions of Python and of packages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from .finding import Environment, Finding, error, ok, warning

MIN_PYTHON: Final = (3, 11)

MIN_VERSIONS: Final[Mapping[str, str]] = {
    "pyspark": "4.0",
    "pyarrow": "18.0",
    "kafka-python": "3.0.12",
    "confluent-kafka": "2.15.1",
}
"""The minimum versions of packages, which ``pyproject.toml`` has as well."""

_OWN: Final = "pyspark-kafka"
REPORTED: Final = (_OWN, *MIN_VERSIONS)
"""The packages whose versions are reported."""

_OPTIONAL: Final[Mapping[str, str]] = {
    "pyspark": "Spark cannot be used here. Install it with: pip install 'pyspark-kafka[spark]'",
}


def check_environment(found: Environment, client: str) -> Iterator[Finding]:
    """Yield a finding for Python and for each package; ``client`` is the Kafka client in use."""
    if _numbers(found.python) < MIN_PYTHON:
        yield error("python", f"Python {found.python}", "Use Python 3.11 or newer.")
    else:
        yield ok("python", f"Python {found.python}")
    yield ok(_OWN, found.packages.get(_OWN, "from a source tree"))
    for name, minimum in MIN_VERSIONS.items():
        yield _check_package(name, found.packages.get(name), minimum, client)


def _check_package(name: str, version: str | None, minimum: str, client: str) -> Finding:
    extra = "confluent" if name == "confluent-kafka" else name
    if version is None:
        if extra == client:
            advice = f"Install it with: pip install 'pyspark-kafka[{extra}]'"
            return error(name, "is not installed, and the client needs it", advice)
        if name in _OPTIONAL:
            return warning(name, "is not installed", _OPTIONAL[name])
        return ok(name, "is not installed")
    if _numbers(version) < _numbers(minimum):
        advice = f"Install version {minimum} or newer: pip install '{name}>={minimum}'"
        return error(name, f"version {version} is too old", advice)
    return ok(name, version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``(4, 2)`` for ``4.2.0.dev1``'s first two."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
