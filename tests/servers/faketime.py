"""Find or download libfaketime, which gives a process another clock.

    python -m tests.servers.faketime

Debian's package is downloaded and unpacked into the user's cache, which needs no root.
"""

import subprocess
import tempfile
from pathlib import Path
from shutil import which
from typing import Final

from pyspark_kafka.brokers.jars import cache_directory

_PACKAGE: Final = "libfaketime"
_LIBRARY: Final = "libfaketime.so.1"
_COMMAND_S: Final = 300.0
_SYSTEM: Final = Path("/usr/lib")


def find() -> Path | None:
    """Return the library, from the system or the cache, or ``None``."""
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
    if not which("apt-get") or not which("dpkg-deb"):
        raise OSError(f"there is no {_LIBRARY}, and no apt-get to download it")
    target = cache_directory() / _PACKAGE
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{_PACKAGE}-", dir=target.parent) as name:
        directory = Path(name)
        _run("apt-get", "download", _PACKAGE, directory=directory)
        for package in directory.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(directory / "root"), directory=directory)
        (directory / "root").replace(target)
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


def _run(*command: str, directory: Path) -> None:
    ended = subprocess.run(
        command, cwd=directory, check=False, capture_output=True, timeout=_COMMAND_S
    )
    if ended.returncode != 0:
        raise OSError(f"{command[0]} failed: {ended.stderr.decode(errors='replace')[-200:]}")


if __name__ == "__main__":
    print(install())  # noqa: T201
