"""Find or download libfaketime, which gives a process another clock.

    python -m tests.servers.faketime

Debian's package is downloaded and unpacked into the user's cache, which needs no root.
"""

from pathlib import Path
from typing import Final

from pyspark_kafka.brokers.jars import cache_directory

from .debian import unpack

_PACKAGE: Final = "libfaketime"
_LIBRARY: Final = "libfaketime.so.1"
_SYSTEM: Final = Path("/usr/lib")


def find() -> Path | None:
    for root in (cache_directory() / _PACKAGE, _SYSTEM):
        for found in sorted(root.glob(f"**/faketime/{_LIBRARY}")):
            return found
    return None


def install() -> Path:
    """Return the library, after downloading it if there is none.

    :raises OSError: if it cannot be downloaded.
    """
    if found := find():
        return found
    unpack((_PACKAGE,), cache_directory() / _PACKAGE)
    found = find()
    if found is None:
        raise OSError(f"Debian's package {_PACKAGE} has no {_LIBRARY}")
    return found


def write_java(directory: Path, java: Path, seconds: int) -> Path:
    """Write a program that runs Java with a clock that is ahead, or behind if negative.

    :raises OSError: if there is no libfaketime.
    """
    program = directory / f"java{seconds:+d}"
    variables = {
        "LD_PRELOAD": install(),
        "FAKETIME": f"{seconds:+d}",
        # Java waits by the monotonic clock: with the library's own correction, it would not wait.
        "FAKETIME_DONT_FAKE_MONOTONIC": 1,
        "FAKETIME_FORCE_MONOTONIC_FIX": 0,
    }
    given = " ".join(f"{name}='{value}'" for name, value in variables.items())
    program.write_text(f"#!/bin/sh\nexport {given}\nexec '{java}' \"$@\"\n")
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    print(install())  # noqa: T201
