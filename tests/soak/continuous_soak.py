"""Rounds of faults under continuous queries, and a look for each record after each."""

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from pyspark_kafka.brokers import KafkaCluster

from .base import JsonLine, Opened
from .continuous_driver import DriverSetup
from .driver import QueryPlan
from .faults import FAULTS, Fault
from .ledger import Counts
from .numbers import SoakError
from .stage import Stage

CONTINUOUS_QUERIES: Final = tuple(
    QueryPlan(client, guarantee)
    for client in ("kafka-python", "confluent")
    for guarantee in ("exactly-once", "at-least-once")
)

_CHECK_S: Final = 180.0
_HANGING_S: Final = 20.0


@final
@dataclass(slots=True)
class ContinuousRound(JsonLine):
    """What was done in a round; counts are of all rounds until then."""

    seed: int
    number: int
    fault: str
    tasks_in: str = ""
    steps: list[str] = field(default_factory=list)
    numbers: int = 0
    counts: dict[str, Counts] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


@final
class ContinuousSoak(Opened):
    """Continuous queries on a cluster of three brokers, and one fault after another.

    A seed and a round's number say what happens; what it meets is up to the machine.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        queries: Sequence[QueryPlan] = CONTINUOUS_QUERIES,
        seed: int = 0,
        say: Callable[[str], None] = lambda _: None,
        faults: Sequence[Fault] = FAULTS,
    ) -> None:
        super().__init__()
        self._seed = seed
        self._say = say
        self._faults = random.Random(seed).sample(faults, len(faults))  # noqa: S311
        self._round = ContinuousRound(seed, -1, "")
        self._began = 0.0
        directory = Path(tempfile.mkdtemp(prefix="soak-"))
        self._stage = Stage(cluster, queries, directory, self._note)

    def _open(self, closing: ExitStack) -> None:
        closing.enter_context(self._stage)

    def run(self, rounds: int) -> None:
        """Run some rounds; raise as ``run_round`` does."""
        for number in range(rounds):
            self.run_round(number)

    def run_round(self, number: int) -> ContinuousRound:
        """Let one fault happen under load, and look for each number.

        :raises SoakError: if one is lost, doubled, out of order, or does not come, or if a
            transaction hangs, or a task does not end.
        """
        fault = self._faults[number % len(self._faults)]
        self._round = ContinuousRound(self._seed, number, fault.name)
        self._began = time.monotonic()
        failure: Exception | None = None
        try:
            self._run(fault, random.Random(f"{self._seed}/{number}"))  # noqa: S311
        except Exception as error:  # noqa: BLE001  # it is told with what was done
            failure, self._round.error = error, str(error)
        self._round.counts = self._stage.ledger.counts()
        self._round.numbers = self._stage.producer.count
        self._round.seconds = round(time.monotonic() - self._began, 1)
        self._say(self._round.to_json())
        if failure is not None:
            where = f"logs and checkpoints: {self._stage.directory}"
            told = f"{self._round.to_json()}\n{self._stage.driver.last_words()}\n{where}"
            raise SoakError(told) from failure
        return self._round

    def _run(self, fault: Fault, chance: random.Random) -> None:
        self._prepare(fault, chance)
        before = self._stage.ledger.counts()
        fault.run(self._stage, chance)
        self._await_all()
        self._check(fault, before)

    def _prepare(self, fault: Fault, chance: random.Random) -> None:
        """Have a driver that the fault can happen to."""
        stage = self._stage
        setup, stage.tasks_in = stage.setup, fault.tasks_in
        is_fit = setup.tasks_in in fault.tasks_in and setup.settings == fault.settings
        if not stage.has_driver() or not is_fit:
            stage.kill_driver()
            stage.start_driver(DriverSetup(chance.choice(fault.tasks_in), settings=fault.settings))
            with stage.load():
                stage.await_flow()
            # What the driver before has not logged is repeated.
            self._await_all()
        self._round.tasks_in = stage.setup.tasks_in

    def _await_all(self) -> None:
        stage, deadline = self._stage, time.monotonic() + _CHECK_S
        for reader in stage.readers.values():
            reader.await_all(stage.producer.count, deadline, stage.keep)
        stage.await_tasks()
        for reader in stage.readers.values():
            reader.await_end(min(deadline, time.monotonic() + _HANGING_S))

    def _check(self, fault: Fault, before: Mapping[str, Counts]) -> None:
        counts = self._stage.ledger.counts()
        for query in self._stage.queries:
            found, known = counts[query.name], before[query.name]
            repeated = found.duplicates - known.duplicates
            out_of_order = found.out_of_order - known.out_of_order
            if repeated and (query.is_exactly_once or not fault.may_repeat):
                raise SoakError(f"{query.name}: {repeated} numbers twice")
            if out_of_order and (query.is_exactly_once or not fault.may_reorder):
                raise SoakError(f"{query.name}: {out_of_order} numbers out of order")

    def _note(self, what: str) -> None:
        self._round.steps.append(f"{time.monotonic() - self._began:.2f} s: {what}")
