"""Rounds of kills under load, each with a check of every record."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Final

from pyspark_kafka.brokers import KafkaCluster
from tests.slowness import bound_s

from .driver import Driver, QueryPlan
from .kill_points import Point
from .ledger import REPLICATED, SOURCE, Ledger, LedgerRounds
from .numbers import SoakError
from .processes import Process, kill
from .rounds import Round, temporary_directory
from .trap import Trap

QUERIES: Final = (
    QueryPlan("kafka-python", "exactly-once"),
    QueryPlan("kafka-python", "at-least-once"),
    QueryPlan("confluent", "at-least-once"),
)
BROKERS: Final = 3
PARTITIONS: Final = 4
RATE: Final = 1_000

_AT_RANDOM: Final = None
_MOMENTS: Final = (*Point, _AT_RANDOM)
_LOAD_S: Final = 8.0
_SECOND_KILL: Final = 0.3
_EVENT_S: Final = bound_s(240)
_CHECK_S: Final = bound_s(300)
_HANGING_S: Final = 20.0
_POLL_S: Final = 0.02

_OF_SPARK: Final = (
    # Spark waits for 10 s, which a machine may need that others use as well.
    "Python worker failed to connect back",
    "waiting for the Python worker to connect back",  # its cause, in the end of a long trace
    # Queries of one session change a map that another one is just writing into its tasks.
    "java.lang.IllegalStateException: Illegal size",
)
"""Failures of a query that no sink or source can help; it is restarted as after a kill."""


class Soak(LedgerRounds):
    """Queries on a cluster of three brokers, and a killer of parts of both."""

    def __init__(
        self,
        cluster: KafkaCluster,
        queries: Sequence[QueryPlan] = QUERIES,
        seed: int = 0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(seed, say)
        self._cluster = cluster
        self._queries = queries
        self._moments = random.Random(seed).sample(_MOMENTS, len(_MOMENTS))  # noqa: S311
        self._may_fail = False
        self._is_over = threading.Event()
        self._runs_out = False

    def _open(self, closing: ExitStack) -> None:
        directory = temporary_directory(closing, "soak")
        ledger = Ledger(self._cluster, self._queries, PARTITIONS, RATE, config=REPLICATED)
        self._ledger = closing.enter_context(ledger)
        self._trap = Trap(directory)
        self._driver = Driver(directory, self._queries, SOURCE, lambda _: self._cluster.options)
        closing.callback(self._driver.kill)

    def run(self, numbers: Iterable[int], *, goes_on: bool = False) -> None:
        """Run some rounds, and to the end of what is there."""
        super().run(numbers, goes_on=goes_on)
        self._checked(-1, self._run_out, restarts=0, failures=0)

    def run_round(self, number: int) -> Round:
        """Kill a broker, workers and the driver under load, and look for each number."""
        return self._checked(number, self._kill_under_load, restarts=0, failures=0)

    # Killing

    def _kill_under_load(self) -> None:
        self._ledger.begin_round()
        chance = random.Random(f"{self._seed}/{self._round.number}")  # noqa: S311
        kills = (
            self._planned_broker_kill(chance),
            self._planned_worker_kill(chance),
            self._planned_driver_kill(chance),
        )
        self._is_over.clear()
        with self._ledger.producer.writing(), ThreadPoolExecutor(len(kills)) as threads:
            if self._driver.has_ended():
                self._start_driver()
            self._await(self._driver.is_running, "running query", self._keep_driver)
            running = {threads.submit(one) for one in kills}
            try:
                while running:
                    done, running = wait(running, timeout=_POLL_S)
                    self._keep_driver()
                    for one in done:
                        one.result()
            finally:
                self._is_over.set()
                self._trap.disarm()
        self._check()

    def _planned_broker_kill(self, chance: random.Random) -> Callable[[], None]:
        broker = chance.randrange(BROKERS)
        moment, pause = chance.uniform(0, _LOAD_S), chance.uniform(0, _LOAD_S)

        def run() -> None:
            self._is_over.wait(moment)
            self._note(f"broker {broker}")
            self._cluster.kill_broker(broker)
            self._is_over.wait(pause)
            self._cluster.start_broker(broker)
            self._note(f"broker {broker} is back")

        return run

    def _planned_worker_kill(self, chance: random.Random) -> Callable[[], None]:
        moments = [chance.uniform(0, _LOAD_S / 2) for _ in range(2)]
        places = [chance.random() for _ in moments]

        def run() -> None:
            self._is_over.wait(moments[0])
            # Spark runs a task again.
            self._kill_worker(places[0], lambda worker: worker.is_for_tasks)
            self._is_over.wait(moments[1])
            # A worker that plans or commits is not run again: the query fails.
            self._kill_worker(places[1], lambda _: True)

        return run

    def _kill_worker(self, place: float, is_wanted: Callable[[Process], bool]) -> None:
        self._await(self._driver.is_running, "running query")
        workers = [worker for worker in self._driver.workers() if is_wanted(worker)]
        if workers:
            victim = workers[int(place * len(workers))]
            self._may_fail = True
            self._note(f"worker of {victim.command.split()[-1]}")
            kill(victim.pid)

    def _planned_driver_kill(self, chance: random.Random) -> Callable[[], None]:
        points = [self._moments[self._round.number % len(self._moments)]]
        if chance.random() < _SECOND_KILL:
            points.append(chance.choice(_MOMENTS))
        moment = chance.uniform(0, _LOAD_S)

        def run() -> None:
            self._is_over.wait(moment)
            # A second one is there at once: a driver may be killed while it recovers.
            for point in points:
                self._kill_driver(point)

        return run

    def _kill_driver(self, point: Point | None) -> None:
        if point is _AT_RANDOM or not self._has_points():
            self._await(self._driver.is_running, "running query")
            self._note("driver at random")
            self._may_fail = True
            self._driver.kill()
        else:
            self._may_fail = True
            self._trap.arm(point)
            self._await(lambda: not self._trap.is_armed, f"driver {point.value}")
            self._await(lambda: not self._driver.is_running(), "end of the driver")
            self._note(f"driver {point.value}")

    def _has_points(self) -> bool:
        return any(query.is_exactly_once for query in self._queries)

    def _keep_driver(self) -> None:
        """Restart the driver if it has ended; raise if nothing of it was killed."""
        if self._runs_out or not self._driver.has_ended():
            return
        self._round.facts["restarts"] += 1
        if self._driver.wait(0) != -signal.SIGKILL:
            self._round.facts["failures"] += 1
            if not self._may_fail and not self._is_failure_of_spark():
                raise SoakError("the driver has failed by itself")
        self._start_driver()

    def _is_failure_of_spark(self) -> bool:
        return any(words in self._driver.last_words() for words in _OF_SPARK)

    def _start_driver(self) -> None:
        self._may_fail = False
        self._driver.start()

    def _await(
        self, condition: Callable[[], bool], what: str, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        deadline = time.monotonic() + _EVENT_S
        while not condition():
            meanwhile()
            if self._is_over.wait(_POLL_S) or time.monotonic() > deadline:
                raise SoakError(f"no {what} within {_EVENT_S:.0f} s")

    # Checking

    def _run_out(self) -> None:
        self._runs_out = True
        self._driver.kill()
        self._note("driver at the end")
        self._ledger.begin_round()
        self._ledger.producer.write_backlog(RATE)
        deadline = time.monotonic() + _CHECK_S
        self._driver.start(to_its_end=True)
        while status := self._driver.wait(deadline - time.monotonic()):
            self._round.facts["failures"] += 1
            if not self._is_failure_of_spark():
                raise SoakError(f"the last run ended with {status}")
            self._driver.start(to_its_end=True)
        if status is None:
            raise SoakError(f"the last run did not end within {_CHECK_S:.0f} s")
        self._check()

    def _check(self) -> None:
        # A worker that was killed late ends its query late.
        self._ledger.check(time.monotonic() + _CHECK_S, self._keep_driver, _HANGING_S)
