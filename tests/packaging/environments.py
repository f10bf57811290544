"""Python environments that have this project's dependencies and not the project."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def without_the_package(directory: Path) -> Path:
    """Make an environment that sees the dependencies installed here, pip too; return its Python.

    A path that a .pth file names is not itself searched for .pth files (``site.addsitedir``), so
    the editable install of this checkout stays out of sight.
    """
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    site_packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    ours = sysconfig.get_path("purelib")
    (directory / "pth").write_text(ours)
    (directory / "pth").rename(f"{site_packages}/dependencies.pth")
    return python


def build(source: Path, directory: Path) -> Path:
    """Build the sdist, and from it the wheel, and give the wheel."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, source],
        check=True,
        capture_output=True,
    )
    [wheel] = directory.glob("*.whl")
    return wheel
