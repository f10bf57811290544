"""Gives the code under test the clock, the sockets and the polls of a schedule."""

import logging
import math
import random
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

_current: list["Environment"] = []

T = TypeVar("T")


class Environment:
    """The clock and the network of a schedule, as the code under test sees them."""

    def __init__(self, network: Network, *, rotates_names: bool) -> None:
        self.network = network
        self._scheduler = network.scheduler
        self.on_wait: Callable[[], None] = lambda: None
        self._rotates_names = rotates_names
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

    def select(self, look: Callable[[], list[T]], timeout_s: float) -> list[T]:
        """Return what is ready once something is, or in time."""
        until_ms = self._scheduler.now_ms + _whole_ms(timeout_s)
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
        self._lookups += self._rotates_names
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


class SimulatedPoll:
    """A poll object of simulated sockets."""

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def register(self, number: int, mask: int) -> None:
        self._masks[number] = mask

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        environment = _current[-1]
        sockets, masks = environment.network.sockets, self._masks

        def ready() -> list[tuple[int, int]]:
            return [
                (number, mask)
                for number, mask in masks.items()
                if (each := sockets.get(number)) is not None
                and (each.is_readable if mask & select.POLLIN else each.is_writable)
            ]

        return environment.select(ready, timeout_ms / 1_000)


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
    yield _in_this_thread(select, "poll", SimulatedPoll)
    yield name_resolution, "threading", _NoThreads


def _in_this_thread(
    module: Any, name: str, simulated: Callable[..., object]
) -> tuple[Any, str, object]:
    """Leave other threads of the process alone: one of py4j's sleeps now and then."""
    real, me = getattr(module, name), get_ident()

    def chosen(*arguments: Any, **named: Any) -> object:
        return (simulated if get_ident() == me else real)(*arguments, **named)

    return module, name, chosen


def _whole_ms(seconds: float) -> int:
    return math.ceil(max(0.0, min(seconds, 1e6)) * 1_000)
