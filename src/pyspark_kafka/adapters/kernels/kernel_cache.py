"""The cache of compiled kernels on disk. A broken cache costs time and raises no error.

A file is run as machine code. It is trusted as the compiled modules beside it are: only its owner,
who is root, this user or the owner of the module, may have written it. A hash detects damage.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import llvmlite

from .cache_directories import SUFFIX, cache_directories
from .processor import processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

SHARED: Final = (
    "adapters/kafka_format",
    "adapters/partitioning",
    "adapters/value_columns",
    "adapters/value_encoding",
    "domain/values",
)
"""The packages whose functions and constants the kernels of others have."""

OPTIONS: Final = ("BOUNDSCHECK", "DEBUGINFO", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")
"""Numba's variables that change machine code."""

LOCK_NAME: Final = "kernels.lock"
LOCK_SECONDS: Final = 60.0
"""How long a process waits for another that compiles."""

_DIGEST: Final = hashlib.sha256
_NAME_DIGITS: Final = 16
_FORMAT: Final = b"pyspark_kafka kernel 1\n"


@final
@dataclass(frozen=True, slots=True)
class CachedKernel:
    """A kernel's packed code, and where it is; ``path`` is ``None`` if it could not be stored."""

    code: bytes
    path: Path | None
    is_new: bool = False


@final
class KernelCache:
    """The files of one kernel, in the first of several directories that has them.

    A kernel is compiled again when a module of its folder, of this one or of one of ``SHARED`` has
    changed, as kernels call functions of other modules.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__name__}"
        self.hits = 0

    def get(self, kinds: tuple[object, ...], compile_it: Callable[[], bytes]) -> CachedKernel:
        """Return a kernel for kinds of arguments; compile it if it is in no directory.

        Of several processes that need it, one compiles it and the others wait.
        """
        found = self.find(kinds)
        if found is None:
            with _only_one(self._directories()):
                found = self.find(kinds)
                if found is None:
                    found = self._write(kinds, compile_it())
        return found

    def find(self, kinds: tuple[object, ...]) -> CachedKernel | None:
        """Return a kernel for kinds of arguments if it is in one of the directories."""
        name = self._file_name(kinds)
        stamp = self._stamp()
        for directory in self._directories():
            try:
                path = directory / name
                content = _read_trusted(path, self._source)
            except OSError as error:
                log.debug("No compiled kernel in %s: %s", directory, error)
                continue
            code = _unsealed(content, stamp)
            if code is not None:
                self.hits += 1
                return CachedKernel(code, path)
        return None

    def _write(self, kinds: tuple[object, ...], code: bytes) -> CachedKernel:
        content, name = _sealed(code, self._stamp()), self._file_name(kinds)
        for directory in self._directories():
            try:
                _write_file(directory, name, content)
            except OSError as error:
                log.debug("Cannot store a compiled kernel in %s: %s", directory, error)
            else:
                return CachedKernel(code, directory / name, is_new=True)
        return CachedKernel(code, None, is_new=True)

    def _file_name(self, kinds: tuple[object, ...]) -> str:
        described = json.dumps([_environment(), [str(kind) for kind in kinds]])
        digest = _DIGEST(described.encode()).hexdigest()
        return f"{self._name}-{digest[:_NAME_DIGITS]}{SUFFIX}"

    def _stamp(self) -> bytes:
        """Return a hash of the modules that a kernel may be made of."""
        here = Path(__file__).parent
        package = here.parents[1]
        folders = {here, *(package / name for name in SHARED), self._source.parent}
        return _DIGEST(b"".join(map(_hash_of_sources, sorted(folders)))).digest()

    def _directories(self) -> list[Path]:
        return cache_directories(self._source.parent)


@cache
def _environment() -> list[object]:
    """Return what besides its sources and arguments makes a kernel's machine code."""
    try:
        numba_version = version("numba")
    except PackageNotFoundError:
        numba_version = ""
    options = [os.environ.get(f"NUMBA_{name}", "") for name in OPTIONS]
    versions = [sys.implementation.cache_tag, numba_version, llvmlite.__version__]
    return [*versions, object.__basicsize__, sys.platform, *processor(), *options]


@cache
def _hash_of_sources(folder: Path) -> bytes:
    digest = _DIGEST()
    modules = sorted(folder.glob("*.py"))
    if not modules:
        # In a zip, which is one file.
        modules = [parent for parent in folder.parents if parent.is_file()]
    for module in modules:
        digest.update(module.name.encode() + b"\0" + _DIGEST(module.read_bytes()).digest())
    return digest.digest()


def _sealed(code: bytes, stamp: bytes) -> bytes:
    body = stamp + code
    return _FORMAT + _DIGEST(body).digest() + body


def _unsealed(content: bytes, stamp: bytes) -> bytes | None:
    """Return the code of an undamaged file for these sources."""
    if not content.startswith(_FORMAT):
        return None
    start = len(_FORMAT) + len(stamp)
    digest, body = content[len(_FORMAT) : start], content[start:]
    if digest != _DIGEST(body).digest() or not body.startswith(stamp):
        return None
    return body[len(stamp) :]


def _read_trusted(path: Path, source: Path) -> bytes:
    """Return the content of a file that nobody but its owner can write.

    :raises OSError: if it cannot be read, or somebody else may have written it.
    """
    with open(path, "rb", opener=_open_no_link) as file:
        found = os.fstat(file.fileno())
        if not is_trusted(found, source):
            raise PermissionError(f"others may have written {path}")
        return file.read()


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def is_trusted(found: os.stat_result, source: Path) -> bool:
    """Return whether only root, this user or the owner of the module can have written a file."""
    if os.name == "nt":
        return True
    owners = {0}
    if sys.platform != "win32":
        owners.add(os.geteuid())
    with suppress(OSError):
        owners.add(source.stat().st_uid)
    return found.st_uid in owners and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write_file(directory: Path, name: str, content: bytes) -> None:
    """Write a file at once, so that no reader sees a part of it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        try:
            file.write(content)
            file.close()
            # Others may run it, as they may the modules beside it.
            os.chmod(file.name, 0o644)
            os.replace(file.name, directory / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


@contextmanager
def _only_one(directories: list[Path]) -> Iterator[None]:
    """Let one process at a time compile, for a limited time."""
    # Imported here for start-up time: kernels are rarely compiled.
    from filelock import FileLock, Timeout

    for directory in directories:
        lock = FileLock(directory / LOCK_NAME, timeout=LOCK_SECONDS)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            log.debug("Another process has compiled for %s s", LOCK_SECONDS)
            break
        except OSError:
            continue
        try:
            yield
        finally:
            lock.release()
        return
    yield
