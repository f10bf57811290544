"""Calls of a driver and its tasks: each takes time and may fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    MetadataLogError,
    PysparkKafkaError,
)

from ..engine.decisions import Fired
from ..engine.scheduler import Killed
from .faults import Fault

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")

TIMEOUT_MS: Final = 30_000
READS: Final = (Fault.SLOW, Fault.DRIVER_DIES, Fault.LOST_REQUEST)
KAFKA: Final = (*READS, Fault.REFUSED)
WRITES: Final = (*READS, Fault.LOST_ANSWER)


class StorageError(MetadataLogError):
    """The storage did not answer in time."""


class Calls:
    """Lets the calls of one driver and of its tasks take effect, or not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.die: Callable[[Fired], None] = lambda _: world.scheduler.kill_current()
        self.injected = 0
        """How many calls failed."""

    def __call__(
        self,
        call: str,
        subject: object,
        effect: Callable[[], T],
        kinds: Sequence[Fault] = READS,
        error: Callable[[], Exception] = lambda: BrokerUnreachableError("memory", 30.0),
    ) -> T:
        world = self.world
        scheduler, current = world.scheduler, world.scheduler.current
        assert current is not None
        fired = world.decisions.one_of(current.name, call, kinds)
        scheduler.sleep(world.decisions.between(current.name, 1, 20))
        if fired is None:
            return self._effect(call, subject, effect)
        world.tell(call, subject, fired.kind.value)
        late_ms = fired.between(10, TIMEOUT_MS)
        if fired.kind is Fault.DRIVER_DIES:
            if fired.between(0, 1) and kinds is WRITES:
                self._effect(call, subject, effect)
            self.die(fired)
            if scheduler.is_killed:
                raise Killed
        elif fired.kind is Fault.REFUSED:
            self.injected += 1
            raise KafkaRequestError("a request", "the broker is busy")
        elif fired.kind in (Fault.SLOW, Fault.LOST_REQUEST, Fault.LOST_ANSWER):
            if fired.kind is Fault.LOST_ANSWER:
                self._effect(call, subject, effect)
            scheduler.sleep(fired.between(1, 1_000) if late_ms % 2 else late_ms)
            if fired.kind is not Fault.SLOW:
                self.injected += 1
                raise error()
        return self._effect(call, subject, effect)

    def _effect(self, call: str, subject: object, effect: Callable[[], T]) -> T:
        try:
            result = effect()
        except PysparkKafkaError as error:
            self.world.tell(call, subject, type(error).__name__)
            raise
        self.world.tell(call, subject, _in_order(result))
        return result


def _in_order(result: object) -> object:
    """Return an answer in an order that is the same in each process: that of a set is not."""
    if isinstance(result, frozenset):
        return sorted(result)
    return dict(sorted(result.items())) if type(result) is dict else result
