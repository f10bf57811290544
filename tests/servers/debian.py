"""Debian's packages, unpacked into a directory, which needs no root."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Final

from tests.slowness import bound_s

_COMMAND_S: Final = bound_s(300)


def unpack(packages: tuple[str, ...], root: Path) -> None:
    """Download packages, and unpack them into a directory.

    :raises OSError: if they cannot be downloaded.
    """
    if not which("apt-get") or not which("dpkg-deb"):
        raise OSError(f"there is no apt-get to download {' and '.join(packages)}")
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-debian-") as name:
        directory = Path(name)
        download = ("download", *packages)
        if not run("apt-get", *download, directory=directory):
            # The machine's lists of packages may be missing or too old.
            lists = directory / "lists"
            (lists / "partial").mkdir(parents=True)
            apt = ("apt-get", "-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={directory}")
            if not run(*apt, "update") or not run(*apt, *download, directory=directory):
                raise OSError(f"apt-get cannot download {' and '.join(packages)}")
        for package in directory.glob("*.deb"):
            if not run("dpkg-deb", "-x", str(package), str(root)):
                raise OSError(f"dpkg-deb cannot unpack {package.name}")


def run(
    *command: str, directory: Path | None = None, environment: Mapping[str, str] | None = None
) -> bool:
    """Return whether a command ended well."""
    ended = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | (environment or {}),
        check=False,
        capture_output=True,
        timeout=_COMMAND_S,
    )
    return ended.returncode == 0
