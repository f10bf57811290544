"""The calls of ports, each of which takes time and may fail."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError, PysparkKafkaError

from ..engine.scheduler import Killed
from .faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.decisions import Fired
    from .application import Application
    from .world import World

T = TypeVar("T")

REQUEST_TIMEOUT_MS: Final = 30_000

DELAYS: Final = (
    Fault.SLOW,
    Fault.STALL,
    Fault.WORKER_DIES,
    Fault.DRIVER_DIES,
    Fault.SUSPENDED_DRIVER,
)
READS: Final = (*DELAYS, Fault.LOST_REQUEST)
LOG_WRITES: Final = (*READS, Fault.LOST_ANSWER, Fault.LATE)
WRITES: Final = (*LOG_WRITES, Fault.TWICE)

_LOST: Final = (Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.LATE)


class StorageError(MetadataLogError):
    """The storage did not answer in time."""


def unreachable() -> PysparkKafkaError:
    return BrokerUnreachableError("memory", REQUEST_TIMEOUT_MS / 1000)


def no_answer() -> PysparkKafkaError:
    return StorageError("storage", "The storage did not answer")


class Calls:
    """Lets calls of an application's processes take effect, or not."""

    def __init__(
        self, world: World, application: Application, error: Callable[[], PysparkKafkaError]
    ) -> None:
        self.world = world
        self.application = application
        self._error = error

    def __call__(
        self,
        call: str,
        subject: object,
        effect: Callable[[str], T],
        kinds: Sequence[Fault] = READS,
    ) -> T:
        world, current = self.world, self.world.scheduler.current
        assert current is not None
        name = current.name
        fired = world.decisions.one_of(name, call, kinds)
        world.scheduler.sleep(world.decisions.between(name, 1, 20))
        if fired is not None:
            world.tell(name, call, subject, fired.kind.value)
            self._suffer(fired, name, call, subject, effect, is_read=kinds is READS)
        return self._effect(name, call, subject, effect)

    def _suffer(
        self,
        fired: Fired,
        name: str,
        call: str,
        subject: object,
        effect: Callable[[str], object],
        *,
        is_read: bool,
    ) -> None:
        """Let time pass, and raise if the call gets no answer."""
        scheduler = self.world.scheduler
        late = fired.between(100, REQUEST_TIMEOUT_MS)
        if fired.kind in (Fault.WORKER_DIES, Fault.DRIVER_DIES):
            self._die(fired)
            if scheduler.is_killed:
                outcome = 0 if is_read else late % 3
                if outcome:
                    self._later(late if outcome == 1 else 0, name, call, subject, effect)
                raise Killed
        elif fired.kind is Fault.SUSPENDED_DRIVER:
            self.application.suspend(fired)
            scheduler.sleep(1)
        elif fired.kind in (Fault.SLOW, Fault.STALL):
            longer = fired.between(1, 60) if fired.kind is Fault.STALL else 1
            scheduler.sleep(late * longer)
        elif fired.kind is not Fault.LOST_REQUEST:
            at_ms = 0 if fired.kind is Fault.LOST_ANSWER else late
            self._later(at_ms, name, call, subject, effect)
        if fired.kind in _LOST:
            scheduler.sleep(fired.between(0, late))
            raise self._error()

    def _die(self, fired: Fired) -> None:
        current = self.world.scheduler.current
        # A continuous query runs in its driver's process, and a micro-batch in one beside it.
        is_driver = current is not None and current.name == self.application.name
        if is_driver or fired.kind is Fault.DRIVER_DIES:
            self.application.die()
        else:
            self.world.scheduler.kill_current()

    def _later(
        self, delay_ms: int, name: str, call: str, subject: object, effect: Callable[[str], object]
    ) -> None:
        def take_effect() -> None:
            with suppress(PysparkKafkaError):
                self._effect(f"{name}{' (late)' if delay_ms else ''}", call, subject, effect)

        self.world.scheduler.at(delay_ms, take_effect)

    def _effect(self, name: str, call: str, subject: object, effect: Callable[[str], T]) -> T:
        try:
            result = effect(name)
        except PysparkKafkaError as error:
            self.world.tell(name, call, subject, type(error).__name__)
            raise
        self.world.tell(name, call, subject, result)
        return result
