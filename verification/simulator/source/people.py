"""People: they start the query again when it ends, and correct what its errors ask for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.reading.errors import DataLossError

from ..engine.outcome import ViolationError
from .checkpoint import Checkpoint
from .faults import Fault, Trigger
from .oracle import Oracle
from .plan import REFUSALS
from .query import EARLIEST, Bound
from .spark import Driver

if TYPE_CHECKING:
    from .world import World

_MAX_TRIGGERS: Final = 300
_MAX_RUNS: Final = 10


class _StuckError(Exception):
    """The query cannot continue, for a reason that is known."""


class People:
    """Runs a stream while topics change, and then until it has read everything."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._checkpoint = Checkpoint()
        self._drivers: list[Driver] = []
        world.oracle = Oracle(world, self._checkpoint)
        world.people = world.scheduler.spawn("people", self._run)

    def _run(self) -> None:
        with suppress(_StuckError):
            self._use()

    def _use(self) -> None:
        world = self._world
        topics = world.scheduler.spawn("topics", world.topics.run)
        for _ in range(world.settings.runs):
            self._run_query(world.decisions.between("people", 1, 4))
            world.scheduler.sleep(world.decisions.between("people", 1, 500))
        while not topics.is_done:
            world.scheduler.sleep(100)
        self._settle()
        self._finish()

    def _settle(self) -> None:
        world = self._world
        world.decisions.is_quiet = True
        for driver in self._drivers:
            world.scheduler.kill(driver.process)
        world.scheduler.sleep(1)
        world.topics.settle()
        world.tell("end of faults", "")

    def _finish(self) -> None:
        """Run the query until it has read everything."""
        world = self._world
        records = len(world.kafka.written)
        is_slow = world.settings.trigger is not Trigger.PROCESSING_TIME
        for _ in range(_MAX_RUNS + 2 * records * is_slow):
            driver = self._run_query(_MAX_TRIGGERS, is_quiet=True)
            if driver.error is None and driver.plan.is_done():
                world.oracle.finish()
                return
        raise ViolationError("no progress", f"the query ends with {driver.error!r}")

    def _run_query(self, triggers: int, *, is_quiet: bool = False) -> Driver:
        world = self._world
        number = len(self._drivers) + 1
        driver = Driver(world, number, world.query, self._checkpoint, triggers, until_done=is_quiet)
        self._drivers.append(driver)
        while not driver.is_over:
            world.scheduler.park()
        if driver.error is not None:
            self._check(driver.error, is_quiet=is_quiet)
            self._correct(driver.error)
        return driver

    def _check(self, error: BaseException, *, is_quiet: bool) -> None:
        name = type(error).__name__
        if name in REFUSALS and self._checkpoint.end(self._checkpoint.planned):
            if self._world.settings.trigger is Trigger.WRAPPED_AVAILABLE_NOW:
                # Spark asks for the end before it reports where the query continues.
                self._world.known["options that no longer match, with Spark's wrapper"] += 1
                raise _StuckError
            raise ViolationError(
                "options are refused although the first batch is logged", f"{name}: {error}"
            )
        has_two = Fault.TWO_DRIVERS in self._world.decisions.fired.values()
        if name == "ConcurrentUpdateError" and not has_two:
            raise ViolationError("an error without a cause", f"{name}: {error}")
        is_loss = self._world.query.fails_on_data_loss and self._lacks_partitions()
        if name == "UnknownTopicError" and is_loss:
            return
        if is_quiet and name not in (*REFUSALS, "DataLossError"):
            raise ViolationError("an error after all faults", f"{name}: {error}")

    def _lacks_partitions(self) -> bool:
        """Return whether partitions of a batch that is logged are gone, and losses are errors."""
        end = self._checkpoint.end(self._checkpoint.planned) or {}
        return any(self._world.kafka.topic_id(part) is None for part in end)

    def _correct(self, error: BaseException) -> None:
        """Do what an error asks for, if it is not transient."""
        world = self._world
        is_unknown = type(error).__name__ == "UnknownTopicError" and self._lacks_partitions()
        if isinstance(error, DataLossError) or is_unknown:
            world.tell("set failOnDataLoss to", "false")
            world.query = world.query.given(failOnDataLoss="false")
        elif type(error).__name__ in REFUSALS:
            world.tell("set startingOffsets to", "earliest")
            world.query = replace(world.query, start=Bound(is_time=False, every=EARLIEST))
