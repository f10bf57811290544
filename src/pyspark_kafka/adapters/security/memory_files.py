"""Secrets as files that only memory holds, for libraries that read keys from a path."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def memory_file(content: bytes) -> Iterator[str]:
    """Yield a path from which this process can read the content once, from its beginning.

    The content is never on a disk, so that nothing is left behind if the process is killed. Windows
    has no path for memory: there the path is a file of the user's, which is deleted afterwards.
    """
    if sys.platform == "win32":
        with tempfile.TemporaryDirectory(prefix="pyspark-kafka-") as directory:
            Path(directory, "content").write_bytes(content)
            yield str(Path(directory, "content"))
    elif (file := _memory()) is None:
        with _piped(content) as path:
            yield path
    else:
        with open(file, "wb", buffering=0) as memory:
            memory.write(content)
            _seal(file)
            yield f"/proc/self/fd/{file}"


def _memory() -> int | None:
    """Return a file that memory holds, if this system has them."""
    if sys.platform == "linux":
        # Python was built without memfd_create, or Linux forbids it: sysctl vm.memfd_noexec=2, a
        # seccomp filter.
        with suppress(AttributeError, OSError):
            return os.memfd_create("pyspark-kafka", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    return None


def _seal(file: int) -> None:
    if sys.platform == "linux":
        import fcntl

        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)


@contextmanager
def _piped(content: bytes) -> Iterator[str]:
    source, target = os.pipe()
    # A pipe may hold less than the content: a thread writes it while it is read.
    failures: list[Exception] = []
    writer = threading.Thread(target=_write, args=(target, content, failures), daemon=True)
    writer.start()
    try:
        yield f"/dev/fd/{source}"
    finally:
        os.close(source)
        writer.join()
        if failures:
            raise failures[0]


def _write(target: int, content: bytes, failures: list[Exception]) -> None:
    try:
        # The reader may stop before the end.
        with suppress(BrokenPipeError), open(target, "wb", buffering=0) as pipe:
            remaining = memoryview(content)
            while remaining:
                remaining = remaining[pipe.write(remaining) :]
    except Exception as error:  # noqa: BLE001 - the thread that reads raises it
        failures.append(error)
