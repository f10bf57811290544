"""A pipe that ends a wait from other threads, librdkafka's included."""

from __future__ import annotations

import os
import selectors
import threading
import weakref
from contextlib import suppress
from typing import Final, final

_READ: Final = 4_096


@final
class WakePipe:
    """Waits until a byte is written to ``file``; one thread waits, and any may write."""

    def __init__(self) -> None:
        self._source, self.file = os.pipe()
        for end in (self._source, self.file):
            # librdkafka ignores that a pipe is full: a byte in it is enough.
            os.set_blocking(end, False)  # type: ignore[attr-defined,unused-ignore]  # on win32
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._source, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, _close, self._selector, self._source, self.file)
        self._close.atexit = False

    def wait(self, timeout_s: float) -> None:
        """Return when something was written since the last call, or in time."""
        if self._selector.select(timeout_s):
            with suppress(BlockingIOError):
                os.read(self._source, _READ)

    def set(self) -> None:
        """End the current wait, or else the next one; do nothing once the pipe is closed."""
        # Another file may have got its number since.
        with self._lock, suppress(BlockingIOError):
            if self._close.alive:
                os.write(self.file, b".")

    def close(self) -> None:
        """Close both ends; librdkafka may not write any more. A second call does nothing."""
        with self._lock:
            self._close()


def _close(selector: selectors.BaseSelector, *ends: int) -> None:
    selector.close()
    for end in ends:
        os.close(end)
