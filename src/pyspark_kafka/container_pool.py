"""Containers that a process keeps, so that the next task or micro-batch need not connect."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .adapters.system.garbage import spare_what_is_loaded
from .container import Container, container_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .domain.options import SourceOptions

MOST_IDLE: Final = 8
"""How many containers wait at the most; Spark's worker runs one task at a time."""

IDLE_SECONDS: Final = 300.0
"""How long one waits at the most: Spark's ``spark.kafka.consumer.cache.timeout``."""


@final
@dataclass(frozen=True, slots=True)
class _Idle:
    key: tuple[int, SourceOptions]
    container: Container
    since: float


@final
class ContainerPool:
    """Lends a container to one user at a time, keyed by process and options.

    The process belongs to the key because clients do not survive a fork (librdkafka's threads
    stay in the parent, confluentinc/librdkafka#2374), and Spark's worker daemon forks.
    """

    def __init__(self, most_idle: int = MOST_IDLE, idle_seconds: float = IDLE_SECONDS) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._most_idle = most_idle
        self._idle_seconds = idle_seconds
        self._has_spared = False

    @contextmanager
    def lease(self, options: SourceOptions) -> Iterator[Container]:
        """Lend a container; one whose user failed is closed and not lent again."""
        key = (os.getpid(), options)
        container = self._take(key) or container_for(options)
        try:
            yield container
        except BaseException:
            shut_down(container)
            raise
        self._give_back(key, container)

    def close(self) -> None:
        """Close what waits."""
        with self._lock:
            idle, self._idle = self._idle, []
        self._shut_down(idle)

    def _take(self, key: tuple[int, SourceOptions]) -> Container | None:
        with self._lock:
            stale = [idle for idle in self._idle if self._is_stale(idle)]
            self._idle = [idle for idle in self._idle if idle not in stale]
            found = next((idle for idle in reversed(self._idle) if idle.key == key), None)
            if found is not None:
                self._idle.remove(found)
        self._shut_down(stale)
        return None if found is None else found.container

    def _give_back(self, key: tuple[int, SourceOptions], container: Container) -> None:
        with self._lock:
            is_first, self._has_spared = not self._has_spared, True
            self._idle.append(_Idle(key, container, time.monotonic()))
            surplus = self._idle[: -self._most_idle]
            self._idle = self._idle[-self._most_idle :]
        self._shut_down(surplus)
        if is_first:
            # By now clients and kernels are loaded, and later tasks load nothing more.
            spare_what_is_loaded()

    def _is_stale(self, idle: _Idle) -> bool:
        return time.monotonic() - idle.since > self._idle_seconds

    def _shut_down(self, idle: list[_Idle]) -> None:
        for one in idle:
            # What a parent process left behind is not ours to close.
            if one.key[0] == os.getpid():
                shut_down(one.container)


def shut_down(container: Container) -> None:
    """Close the clients that a container made."""
    container.shutdown_resources()


POOL: Final = ContainerPool()
"""The process's pool: the one global state of this library."""
