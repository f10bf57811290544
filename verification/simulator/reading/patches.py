"""Gives the code under test the clock, the sockets and the selectors of a schedule."""

import logging
import math
import random
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from threading import get_ident
from typing import Any, Final, TypeVar
from unittest.mock import patch

from pyspark_kafka.adapters import name_resolution
from pyspark_kafka.adapters.kafka_python import stream_client  # noqa: F401  # imports what is patched

from ..engine.outcome import ViolationError
from ..engine.scheduler import EPOCH_MS
from .network import Network, SimulatedSocket

_BEGIN_S: Final = 1_000.0
_TICK_S: Final = 1e-9
"""How long each look at the clock takes: no two of them are the same."""

_MAX_IDLE: Final = 2_000
"""How often a process may look at sockets while no time passes."""

_SELECTORS: Final = ("DefaultSelector", "PollSelector", "SelectSelector", "EpollSelector")
_current: list["Environment"] = []

T = TypeVar("T")


class Environment:
    """The clock and the network of a schedule, as the code under test sees them."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._scheduler = network.scheduler
        self.on_wait: Callable[[], None] = lambda: None
        self._ticks = self._lookups = 0
        self._idle_since_ms = 0
        self._idle = 0

    def monotonic(self) -> float:
        self._ticks += 1
        now_ms = self._scheduler.now_ms - EPOCH_MS
        return _BEGIN_S + now_ms / 1_000 + self._ticks * _TICK_S

    def epoch(self) -> float:
        return self._scheduler.now_ms / 1_000

    def epoch_ns(self) -> int:
        return self._scheduler.now_ms * 1_000_000

    def sleep(self, seconds: float) -> None:
        self.on_wait()
        self._scheduler.sleep(_whole_ms(seconds))

    def select(self, look: Callable[[], list[T]], timeout_s: float | None) -> list[T]:
        """Return what is ready once something is, or in time."""
        until_ms = self._scheduler.now_ms + _whole_ms(3_600 if timeout_s is None else timeout_s)
        self._count_idle()
        self.on_wait()
        while not (found := look()) and self._scheduler.now_ms < until_ms:
            self.network.wait(until_ms - self._scheduler.now_ms)
        return found

    def resolve(self, host: str, port: int | None, *_: object, **__: object) -> list[Any]:
        known = self.network.names.get(host)
        addresses = [host] if known is None else known
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        kind = socket.AF_INET, socket.SOCK_STREAM, 6, ""
        # Servers of names take turns with the addresses.
        self._lookups += 1
        first = self._lookups % len(addresses)
        return [(*kind, (each, port or 0)) for each in addresses[first:] + addresses[:first]]

    def socket(self, *_: object, **__: object) -> SimulatedSocket:
        return SimulatedSocket(self.network)

    def _count_idle(self) -> None:
        """Fail if a process does nothing but look, for which it would take a whole processor."""
        if self._scheduler.now_ms != self._idle_since_ms:
            self._idle_since_ms, self._idle = self._scheduler.now_ms, 0
        self._idle += 1
        if self._idle > _MAX_IDLE:
            raise ViolationError("spins", f"{_MAX_IDLE} looks at sockets while no time passes")


class SimulatedSelector(selectors._BaseSelectorImpl):
    """A selector of simulated sockets."""

    _fd_to_key: dict[int, SelectorKey]

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        environment = _current[-1]
        sockets = environment.network.sockets
        keys = self._fd_to_key

        def ready() -> list[tuple[SelectorKey, int]]:
            found = []
            for number, key in keys.items():
                each = sockets.get(number)
                if each is None:
                    continue
                events = EVENT_READ if key.events & EVENT_READ and each.is_readable else 0
                if key.events & EVENT_WRITE and each.is_writable:
                    events |= EVENT_WRITE
                if events:
                    found.append((key, events))
            return found

        return environment.select(ready, timeout)


class _NoThreads:
    """The module ``threading`` of a process that cannot start one more."""

    TIMEOUT_MAX = 1e9

    class Thread:
        def __init__(self, **_: object) -> None: ...

        def start(self) -> None:
            raise RuntimeError("can't start new thread")


@contextmanager
def simulated(environment: Environment, seed: int) -> Iterator[None]:
    """Run a block in a schedule's time, with its network."""
    state = random.getstate()
    disabled = logging.root.manager.disable
    with ExitStack() as stack:
        stack.callback(random.setstate, state)
        stack.callback(logging.disable, disabled)
        stack.callback(_current.pop)
        random.seed(seed)
        logging.disable()
        _current.append(environment)
        for target, name, value in _replacements(environment):
            stack.enter_context(patch.object(target, name, value))
        yield


def _replacements(environment: Environment) -> Iterator[tuple[Any, str, object]]:
    yield _in_this_thread(time, "monotonic", environment.monotonic)
    yield _in_this_thread(time, "time", environment.epoch)
    yield _in_this_thread(time, "time_ns", environment.epoch_ns)
    yield _in_this_thread(time, "sleep", environment.sleep)
    yield _in_this_thread(socket, "socket", environment.socket)
    yield _in_this_thread(socket, "getaddrinfo", environment.resolve)
    yield name_resolution, "threading", _NoThreads
    for module, name in _bound_selectors():
        yield _in_this_thread(module, name, SimulatedSelector)


def _in_this_thread(
    module: Any, name: str, simulated: Callable[..., object]
) -> tuple[Any, str, object]:
    """Leave other threads of the process alone: one of py4j's sleeps now and then."""
    real, me = getattr(module, name), get_ident()

    def chosen(*arguments: Any, **named: Any) -> object:
        return (simulated if get_ident() == me else real)(*arguments, **named)

    return module, name, chosen


@lru_cache(maxsize=1)
def _bound_selectors() -> tuple[tuple[Any, str], ...]:
    """Return the names of selectors, also those that were bound when modules were imported."""
    classes = [getattr(selectors, name) for name in _SELECTORS if hasattr(selectors, name)]
    found: list[tuple[Any, str]] = [
        (selectors, name) for name in _SELECTORS if hasattr(selectors, name)
    ]
    for module_name in sorted(sys.modules):
        if module_name.startswith("pyspark_kafka."):
            module = sys.modules[module_name]
            found += [
                (module, name)
                for name, value in vars(module).items()
                if isinstance(value, type) and value in classes
            ]
    return tuple(found)


def _whole_ms(seconds: float) -> int:
    return math.ceil(max(0.0, min(seconds, 1e6)) * 1_000)
