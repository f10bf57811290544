"""A pool of containers, so that the next task or micro-batch reuses connected clients."""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import secrets
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final, overload

from ..adapters.process_local import ProcessLocal
from ..adapters.system.clock import SystemClock
from ..domain.cluster.refusal import Refusals
from ..domain.options.sink import SinkOptions
from ..domain.options.source import SourceOptions
from ..domain.security.errors import AuthenticationError
from .container import Container, SinkContainer, container_for, sink_container_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from ..ports.clock import Clock


Options: TypeAlias = SourceOptions | SinkOptions
AnyContainer: TypeAlias = Container | SinkContainer

MAX_IDLE: Final = 8
"""The maximum number of idle containers; a Spark worker runs one task at a time."""

MAX_IDLE_SECONDS: Final = 300.0
"""The idle time of a source's container, as in ``spark.kafka.consumer.cache.timeout``."""

SINK_MAX_IDLE_SECONDS: Final = 600.0
"""The idle time of a sink's container, as in ``spark.kafka.producer.cache.timeout``."""

EVICTION_INTERVAL_SECONDS: Final = 60.0
"""How often idle times are checked, as in
``spark.kafka.consumer.cache.evictorThreadRunInterval``."""

log = logging.getLogger("pyspark_kafka")


@final
@dataclass(frozen=True, slots=True)
class _Idle:
    options: Options
    container: ProcessLocal[AnyContainer]
    since_ms: int


@final
class ContainerPool:
    """Leases containers by options, each to one user at a time, in the process that created it.

    A thread closes containers that have been idle for too long. It runs while any is idle.
    ``logins`` are the refused logins of all containers.
    """

    def __init__(
        self,
        max_idle: int = MAX_IDLE,
        idle_seconds: float = MAX_IDLE_SECONDS,
        sink_idle_seconds: float = SINK_MAX_IDLE_SECONDS,
        eviction_interval_seconds: float = EVICTION_INTERVAL_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._idle: list[_Idle] = []
        self._max_idle = max_idle
        self._idle_seconds = idle_seconds
        self._sink_idle_seconds = sink_idle_seconds
        self._eviction_interval_seconds = eviction_interval_seconds
        self._clock = SystemClock() if clock is None else clock
        self.logins = RefusedLogins(self._clock)
        self._evictor: ProcessLocal[threading.Thread] = ProcessLocal()
        self._has_frozen_gc = False

    @overload
    def lease(self, options: SourceOptions) -> AbstractContextManager[Container]: ...

    @overload
    def lease(self, options: SinkOptions) -> AbstractContextManager[SinkContainer]: ...

    def lease(self, options: Options) -> AbstractContextManager[AnyContainer]:
        """Yield a container; close it if the block fails, and keep it for the next lease if not.

        :raises AuthenticationError: if the login of these options was refused a short time ago.
        """
        return self._lease(options)

    @contextmanager
    def _lease(self, options: Options) -> Iterator[AnyContainer]:
        with self.logins.remember(options):
            container = self._take(options) or _new_container(options)
            leased = _Idle(options, ProcessLocal(container), self._clock.now_ms())
            try:
                yield container
            except BaseException:
                _shut_down([leased])
                raise
        self._release(leased)

    def close(self) -> None:
        """Close all idle containers."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        _shut_down(idle)

    def hold_across_forks(self) -> None:
        """Let no process fork while the pool's lock is held: it would stay locked in the child."""
        lock = self._changed
        if sys.platform != "win32":
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )

    def _take(self, options: Options) -> AnyContainer | None:
        with self._changed:
            stale = self._take_stale()
            usable = (
                idle
                for idle in reversed(self._idle)
                if idle.options == options and idle.container.get() is not None
            )
            found = next(usable, None)
            if found is not None:
                self._idle.remove(found)
        _shut_down(stale)
        return None if found is None else found.container.get()

    def _release(self, leased: _Idle) -> None:
        with self._changed:
            is_first, self._has_frozen_gc = not self._has_frozen_gc, True
            self._idle.append(replace(leased, since_ms=self._clock.now_ms()))
            surplus = self._idle[: -self._max_idle]
            self._idle = self._idle[-self._max_idle :]
            self._start_evictor()
        _shut_down(surplus)
        if is_first:
            # By now all clients and kernels are loaded.
            freeze_gc()

    def _start_evictor(self) -> None:
        # A fork has no threads of its parent's.
        if self._evictor.get() is None:
            thread = threading.Thread(target=self._evict, name="pyspark-kafka-pool", daemon=True)
            self._evictor.set(thread).start()

    def _evict(self) -> None:
        try:
            self._close_stale()
        except Exception:
            log.exception("Idle clients stay open until the next one is idle")
            with self._changed:
                self._evictor.pop()

    def _close_stale(self) -> None:
        """Close stale containers at every interval, as long as any container is idle."""
        while True:
            with self._changed:
                if self._idle:
                    self._changed.wait(self._eviction_interval_seconds)
                if not self._idle:
                    self._evictor.pop()
                    return
                stale = self._take_stale()
            for each in stale:
                try:
                    _shut_down([each])
                except Exception:
                    log.exception("An idle client could not be closed")

    def _take_stale(self) -> list[_Idle]:
        stale = [idle for idle in self._idle if self._is_stale(idle)]
        self._idle = [idle for idle in self._idle if idle not in stale]
        return stale

    def _is_stale(self, idle: _Idle) -> bool:
        is_sink = isinstance(idle.options, SinkOptions)
        limit = self._sink_idle_seconds if is_sink else self._idle_seconds
        return self._clock.now_ms() - idle.since_ms > limit * 1_000


def freeze_gc() -> None:
    """Exempt everything that is alive from garbage collection. Call it once per process.

    Spark's Python worker collects garbage after every task (``pyspark/daemon.py``) and visits every
    live object: that takes as long as the rest of a small micro-batch. Frozen objects are never
    collected, even if they become garbage cycles.
    """
    gc.collect()
    gc.freeze()


def _new_container(options: Options) -> AnyContainer:
    if isinstance(options, SinkOptions):
        return sink_container_for(options)
    return container_for(options)


def _shut_down(idle: list[_Idle]) -> None:
    for each in idle:
        container = each.container.pop()
        if container is not None:
            shut_down(container)


def shut_down(container: AnyContainer) -> None:
    """Close the clients of a container."""
    container.shutdown_resources()


_OF_LOGINS: Final = ("bootstrap.servers", "security.", "sasl.", "ssl.")

_DIGEST_KEY: Final = secrets.token_bytes()


@final
class RefusedLogins:
    """Remembers refused logins for a time: Spark starts failed tasks again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals = Refusals()

    @contextmanager
    def remember(self, options: SourceOptions | SinkOptions) -> Iterator[None]:
        """Remember the login of these options if it is refused in the block.

        :raises AuthenticationError: if it was refused a short time ago.
        """
        login = _digest(options)
        if refused := self._refusals.at(self._clock.now_ms() / 1_000, login):
            raise refused
        try:
            yield
        except AuthenticationError as error:
            self._refusals.remember(error, self._clock.now_ms() / 1_000, login)
            raise


def _digest(options: SourceOptions | SinkOptions) -> bytes:
    """Return a digest of a login: its settings hold passwords, which are not kept."""
    settings = sorted(each for each in options.kafka if each[0].startswith(_OF_LOGINS))
    content = json.dumps([options.client, settings]).encode()
    return hashlib.blake2b(content, key=_DIGEST_KEY, digest_size=16).digest()


POOL: Final = ContainerPool()
"""The pool that all tasks of a process share."""

POOL.hold_across_forks()
