"""The build backend: setuptools', after the library of kernels was built (PEP 517, PEP 660)."""

from __future__ import annotations

import shutil
import sys
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

    from .targets import Target

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

SOURCE: Final = Path(__file__).parents[1] / "src"
COMPILER: Final = ("numba>=0.61",)
LINKER: Final = "ziglang>=0.13"
"""For systems without a C compiler, and for other platforms than this one."""


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """Return what the build needs, besides setuptools."""
    linker = () if shutil.which("cc") and not (settings or {}).get("target") else (LINKER,)
    return [*build_meta.get_requires_for_build_wheel(), *COMPILER, *linker]


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    """Return what the build needs, besides setuptools."""
    return get_requires_for_build_wheel(settings)


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build a wheel for every Python on one platform, and return its name.

    The setting ``target`` is another platform of ``TARGETS``, and ``tag`` the one of the wheel.
    """
    given = dict(settings or {})
    target = _built(given.pop("target", None))
    option = f"--plat-name={given.pop('tag', target.tag)}"
    given["--build-option"] = [option]
    return str(build_meta.build_wheel(directory, given, metadata))


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build the library in place, and return the name of a wheel that leads here."""
    _built(None)
    return str(build_meta.build_editable(directory, settings, metadata))


def _built(name: str | None) -> Target:
    if str(SOURCE) not in sys.path:
        sys.path.insert(0, str(SOURCE))
    from .build import build_library, is_built
    from .targets import TARGETS, here

    package, target = SOURCE / "pyspark_kafka", TARGETS[name] if name else here()
    if not is_built(package, target):
        build_library(package, target)
    return target
