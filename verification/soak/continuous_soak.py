"""Rounds of faults under continuous queries, and a look for each record after each."""

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark_kafka.brokers import KafkaCluster

from .continuous_driver import DriverSetup
from .driver import QueryPlan
from .faults import FAULTS, Fault
from .ledger import Counts
from .numbers import RecordShape, SoakError
from .rounds import Round, Rounds
from .stage import Stage

CONTINUOUS_QUERIES: Final = (
    QueryPlan("kafka-python", "exactly-once"),
    QueryPlan("kafka-python", "at-least-once"),
    QueryPlan("confluent", "at-least-once"),
)

_HANGING_S: Final = 20.0


class ContinuousSoak(Rounds):
    """Continuous queries on a cluster of three brokers, and one fault after another.

    Every second one strikes while slow functions work off a backlog.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        queries: Sequence[QueryPlan] = CONTINUOUS_QUERIES,
        seed: int = 0,
        say: Callable[[str], None] = lambda _: None,
        faults: Sequence[Fault] = FAULTS,
    ) -> None:
        super().__init__(seed, say)
        shuffled = random.Random(seed).sample(faults, len(faults))  # noqa: S311
        kinds = [[each for each in shuffled if each.has_backlog is kind] for kind in (False, True)]
        self._kinds = [kind for kind in kinds if kind]
        directory = Path(tempfile.mkdtemp(prefix="soak-"))
        self._stage = Stage(cluster, queries, directory, self._note)

    def _open(self, closing: ExitStack) -> None:
        closing.enter_context(self._stage)

    def run_round(self, number: int) -> Round:
        """Let one fault happen under load, and look for each number."""
        turn, kind = divmod(number, len(self._kinds))
        fault = self._kinds[kind][turn % len(self._kinds[kind])]
        chance = random.Random(f"{self._seed}/{number}")  # noqa: S311
        return self._checked(number, partial(self._run, fault, chance), fault=fault.name)

    def _come_to(self) -> dict[str, Any]:
        return self._stage.ledger.facts()

    def _last_words(self) -> str:
        where = f"logs and checkpoints: {self._stage.directory}"
        return f"{self._stage.driver.last_words()}\n{where}"

    def _run(self, fault: Fault, chance: random.Random) -> None:
        ledger = self._stage.ledger
        ledger.begin_round()
        self._stage.producer.use(RecordShape.chosen(chance))
        self._prepare(fault, chance)
        before = ledger.counts()
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
            stage.flow()
            # What the driver before has not logged is repeated.
            self._await_all()
        self._round.facts["tasks_in"] = stage.setup.tasks_in

    def _await_all(self) -> None:
        stage = self._stage
        stage.await_all()
        stage.await_tasks()
        for reader in stage.readers.values():
            reader.await_end(time.monotonic() + _HANGING_S)

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
