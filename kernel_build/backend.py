"""The build backend: setuptools', after the library of kernels was built (PEP 517, PEP 660)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Settings = Mapping[str, Any] | None

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT: Final = Path(__file__).parents[1]
COMPILER: Final = ("numba>=0.61",)
LINKER: Final = "ziglang>=0.13"
"""For systems without a C compiler, and for other platforms than this one."""


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """Return the requirements of the build, without setuptools."""
    linker = () if shutil.which("cc") and not (settings or {}).get("target") else (LINKER,)
    return [*build_meta.get_requires_for_build_wheel(), *COMPILER, *linker]


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    """Return the requirements of the build, without setuptools."""
    return get_requires_for_build_wheel(settings)


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build a wheel for every Python on one platform, and return its name.

    The settings are a ``target`` of ``TARGETS``, and the wheel's ``tag``: this machine's, if not
    given.
    """
    given = dict(settings or {})
    _build(given.pop("target", None))
    tag = given.pop("tag", None) or sysconfig.get_platform()
    given["--build-option"] = [f"--plat-name={tag}"]
    return str(build_meta.build_wheel(directory, given, metadata))


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build the library in place, and return the name of a wheel that leads here."""
    _build(None)
    return str(build_meta.build_editable(directory, settings, metadata))


def _build(target: str | None) -> None:
    """Build the library in place, unless it fits the sources already."""
    command = [sys.executable, "-m", "kernel_build", "--if-needed"]
    chosen = [] if target is None else ["--target", target]
    subprocess.run([*command, *chosen], cwd=ROOT, check=True)  # noqa: S603
