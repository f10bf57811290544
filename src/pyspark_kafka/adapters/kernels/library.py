"""The library of all kernels, which is made when the package is built."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import KernelLibraryError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

PACKAGE: Final = "pyspark_kafka"
MANIFEST: Final = "kernels.json"
"""The file beside this module that has the library's name and platform, and all digests."""


@final
class KernelLibrary:
    """The machine code of all kernels, in memory."""

    def __init__(self, loaded: ctypes.CDLL) -> None:
        self._loaded = loaded

    def address(self, symbol: str) -> int:
        """Return the address of a function."""
        return ctypes.cast(getattr(self._loaded, symbol), ctypes.c_void_p).value or 0


@cache
def kernel_library() -> KernelLibrary:
    """Return the library, loaded once for each process.

    :raises KernelLibraryError: if it is missing or damaged, or of another platform or version.
    """
    return load_library(files(__package__), files(PACKAGE))


def load_library(folder: Traversable, package: Traversable) -> KernelLibrary:
    """Check and load the library in a folder for the modules of a package.

    :raises KernelLibraryError: if it cannot be used.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        library = folder / manifest["library"]
        code = library.read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelLibraryError("it is not there", _BUILD) from error
    here = this_platform()
    if manifest["platform"] != here:
        raise KernelLibraryError(f"it is for {manifest['platform']}, and this is {here}", _SHIP)
    if digest(code) != manifest["digest"]:
        raise KernelLibraryError("its file is damaged", "Install pyspark-kafka again")
    for name, known in manifest["sources"].items():
        if _has_changed(package / name, known):
            raise KernelLibraryError(f"{name} has changed since it was built", _BUILD)
    try:
        return KernelLibrary(_loaded(library, code))
    except OSError as error:
        raise KernelLibraryError(f"the system does not load it ({error})", _EXECUTABLE) from error


_BUILD: Final = (
    "Install pyspark-kafka from a wheel, or build it in a checkout: pip install --editable ."
)
_EXECUTABLE: Final = (
    "Install pyspark-kafka on a file system that is not mounted with noexec; for a zip, set TMPDIR "
    "to a directory of one"
)
_SHIP: Final = "Ship the wheel of pyspark-kafka that was built for the platform of the executors"


def digest(content: bytes) -> str:
    """Return the digest by which a file is known."""
    return hashlib.sha256(content).hexdigest()


def this_platform() -> str:
    """Return the operating system and the processor that a library is built for."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    return f"{system}-{_MACHINES.get(machine, machine)}"


_MACHINES: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64"}


def _has_changed(source: Traversable, known: str) -> bool:
    """Return whether a module has changed; an installation may have no sources."""
    try:
        return digest(source.read_bytes()) != known
    except FileNotFoundError:
        return False


def _loaded(library: Traversable, code: bytes) -> ctypes.CDLL:
    if isinstance(library, Path):
        return ctypes.CDLL(str(library))
    # The package is in a zip, and no system loads a library from one.
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pyspark_kafka_kernels")
        with os.fdopen(descriptor, "wb") as file:
            file.write(code)
            file.flush()
            return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        copy = Path(directory, library.name)
        copy.write_bytes(code)
        return ctypes.CDLL(str(copy))
