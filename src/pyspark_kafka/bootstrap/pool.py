"""Containers that a process keeps, so that the next task or micro-batch need not connect."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final, overload

from ..domain.options import SinkOptions, SourceOptions
from .container import Container, SinkContainer, container_for, sink_container_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

Options: TypeAlias = SourceOptions | SinkOptions
AnyContainer: TypeAlias = Container | SinkContainer

MAX_IDLE: Final = 8
"""How many containers wait at the most; Spark's worker runs one task at a time."""

IDLE_SECONDS: Final = 300.0
"""How long a source's waits at the most: Spark's ``spark.kafka.consumer.cache.timeout``."""

SINK_IDLE_SECONDS: Final = 600.0
"""How long a sink's waits at the most: Spark's ``spark.kafka.producer.cache.timeout``."""


@final
@dataclass(frozen=True, slots=True)
class _Idle:
    key: tuple[int, Options]
    container: AnyContainer
    since: float


@final
class ContainerPool:
    """Lends a container to one user at a time, keyed by process and options.

    The process belongs to the key because clients do not survive a fork (librdkafka's threads
    stay in the parent, confluentinc/librdkafka#2374), and Spark's worker daemon forks.
    """

    def __init__(
        self,
        most_idle: int = MAX_IDLE,
        idle_seconds: float = IDLE_SECONDS,
        sink_idle_seconds: float = SINK_IDLE_SECONDS,
    ) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._most_idle = most_idle
        self._idle_seconds = idle_seconds
        self._sink_idle_seconds = sink_idle_seconds
        self._has_spared = False

    @overload
    def lease(self, options: SourceOptions) -> AbstractContextManager[Container]: ...

    @overload
    def lease(self, options: SinkOptions) -> AbstractContextManager[SinkContainer]: ...

    def lease(self, options: Options) -> AbstractContextManager[AnyContainer]:
        """Lend a container; one whose user failed is closed and not lent again."""
        return self._lease(options)

    @contextmanager
    def _lease(self, options: Options) -> Iterator[AnyContainer]:
        key = (os.getpid(), options)
        container = self._take(key) or _made_for(options)
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

    def _take(self, key: tuple[int, Options]) -> AnyContainer | None:
        with self._lock:
            stale = [idle for idle in self._idle if self._is_stale(idle)]
            self._idle = [idle for idle in self._idle if idle not in stale]
            found = next((idle for idle in reversed(self._idle) if idle.key == key), None)
            if found is not None:
                self._idle.remove(found)
        self._shut_down(stale)
        return None if found is None else found.container

    def _give_back(self, key: tuple[int, Options], container: AnyContainer) -> None:
        with self._lock:
            is_first, self._has_spared = not self._has_spared, True
            self._idle.append(_Idle(key, container, time.monotonic()))
            surplus = self._idle[: -self._most_idle]
            self._idle = self._idle[-self._most_idle :]
        self._shut_down(surplus)
        if is_first:
            # By now clients and kernels are loaded, and later tasks load nothing more.
            freeze_gc()

    def _is_stale(self, idle: _Idle) -> bool:
        is_sink = isinstance(idle.key[1], SinkOptions)
        most = self._sink_idle_seconds if is_sink else self._idle_seconds
        return time.monotonic() - idle.since > most

    def _shut_down(self, idle: list[_Idle]) -> None:
        for one in idle:
            # What a parent process left behind is not ours to close.
            if one.key[0] == os.getpid():
                shut_down(one.container)


def freeze_gc() -> None:
    """Exempt everything that is alive from garbage collection. Call it once per process.

    Spark's Python worker collects after every task (``pyspark/daemon.py``) and visits every object
    that was ever loaded: with numba that takes as long as the rest of a small micro-batch. What
    becomes a garbage cycle later is never freed.
    """
    gc.collect()
    gc.freeze()


def _made_for(options: Options) -> AnyContainer:
    if isinstance(options, SinkOptions):
        return sink_container_for(options)
    return container_for(options)


def shut_down(container: AnyContainer) -> None:
    """Close the clients that a container made."""
    container.shutdown_resources()


POOL: Final = ContainerPool()
"""The process's pool: the one global state of this library."""
