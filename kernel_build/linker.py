"""Linking object files to one shared library that needs nothing but a C library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pyspark_kafka.adapters.kernels.library import this_platform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .targets import Target

_SHARED: Final = {
    ".so": ("-shared", "-nostdlib", "-s"),
    ".dylib": ("-dynamiclib", "-Wl,-install_name,@rpath/kernels", "-s"),
    ".dll": ("-shared", "-s"),
}


class LinkerError(Exception):
    """There is no linker, or it failed."""


def link(objects: Sequence[Path], library: Path, target: Target) -> None:
    """Link object files.

    :raises LinkerError: if that fails.
    """
    command = [*_linker(target), *_SHARED[target.suffix], "-o", str(library), *map(str, objects)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise LinkerError(f"{' '.join(command[:4])} failed: {done.stderr.strip()}")


def _linker(target: Target) -> Sequence[str]:
    if find_spec("ziglang") is not None:
        # `zig cc` would link its own `memcpy`, which is slower than the system's.
        chosen = ("cc", "-target", target.zig) if target.zig else ("ld.lld",)
        return [sys.executable, "-m", "ziglang", *chosen]
    if target.platform == this_platform() and shutil.which("cc") is not None:
        return ["cc"]
    raise LinkerError(f"No linker for {target.platform}. Install one with: pip install ziglang")
