"""Python environments that have this project's dependencies and not the project."""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def output_of(command: Sequence[str | Path], **options: Any) -> str:
    """Return what a command prints, which has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def without_the_package(directory: Path) -> Path:
    """Make an environment that sees the dependencies installed here, pip too; return its Python."""
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    see_dependencies(python)
    return python


def see_dependencies(python: Path) -> None:
    """Let the Python of an environment see the packages that are installed here.

    .pth files in a directory that is appended to the path are not read, so the editable install of
    this checkout stays out of sight. venv-pack takes the name of a directory in a .pth file for an
    editable install, and refuses it.
    """
    line = f"import sys; sys.path.append({sysconfig.get_path('purelib')!r})\n"
    (_site_packages(python) / "dependencies.pth").write_text(line)


def install_wheel(base: Path, directory: Path, wheel: Path, extras: str = "") -> Path:
    """Make an environment of a Python, install a wheel there, and return the environment's Python.

    It has neither pip nor setuptools: the wheel could need them by accident.
    """
    subprocess.run([base, "-m", "venv", "--clear", "--without-pip", directory], check=True)
    python = directory / "bin" / "python"
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    subprocess.run([*install, f"{wheel}[{extras}]" if extras else wheel], check=True)
    return python


def build(source: Path, directory: Path) -> Path:
    output_of([sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, source])
    [wheel] = directory.glob("*.whl")
    return wheel


def _site_packages(python: Path) -> Path:
    [found] = python.parents[1].glob("lib/python*/site-packages")
    return found
