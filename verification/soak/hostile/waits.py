"""How long the calls of queries take, those included that have not returned yet."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Wait:
    """A call, and its seconds until it returned, raised, or was asked for."""

    seconds: float
    call: str

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s: {self.call}"


class Waits:
    """Takes the calls of several threads, and keeps the longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, tuple[float, str]] = {}
        self._longest = Wait(0.0, "none")
        self._count = 0

    @contextmanager
    def timed(self, call: str) -> Iterator[None]:
        """Measure a block; it may be inside of another one."""
        with self._lock:
            self._count += 1
            number = self._count
            self._running[number] = time.monotonic(), call
        try:
            yield
        finally:
            with self._lock:
                began, _ = self._running.pop(number)
                self._longest = max(self._longest, Wait(time.monotonic() - began, call))

    def longest(self) -> Wait:
        """Return the longest call, also of those that still run."""
        with self._lock:
            now = time.monotonic()
            return max(
                self._longest,
                *(Wait(now - began, f"{call} (runs)") for began, call in self._running.values()),
                Wait(0.0, "none"),
            )

    def forget(self) -> None:
        with self._lock:
            self._longest = Wait(0.0, "none")
