"""Secrets as files that only memory holds, for libraries that read keys from a path."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def memory_file(content: bytes) -> Iterator[str]:
    """Yield a path from which this process can read the content once, from its beginning.

    No disk ever has the content, so that nothing is left behind if the process is killed.
    """
    try:
        file = os.memfd_create("pyspark-kafka", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (AttributeError, OSError):
        # Not Linux, or it forbids such files: sysctl vm.memfd_noexec=2, a seccomp filter.
        with _piped(content) as path:
            yield path
        return
    with open(file, "wb", buffering=0) as memory:
        memory.write(content)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        yield f"/proc/self/fd/{file}"


@contextmanager
def _piped(content: bytes) -> Iterator[str]:
    source, target = os.pipe()
    # A pipe may hold less than the content: a thread writes it while it is read.
    writer = threading.Thread(target=_write, args=(target, content), daemon=True)
    writer.start()
    try:
        yield f"/dev/fd/{source}"
    finally:
        os.close(source)
        writer.join()


def _write(target: int, content: bytes) -> None:
    # The reader may leave before the end.
    with suppress(BrokenPipeError), open(target, "wb", buffering=0) as pipe:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[pipe.write(remaining) :]
