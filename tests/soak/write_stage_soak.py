"""Rounds in which executors are lost while a micro-batch is written, and a look for each record."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pyspark_kafka.ports.deadline import Deadline

from . import kill_points
from .base import JsonLine, Opened
from .driver import TRANSACTION_TIMEOUT_MS, QueryPlan
from .driver_process import DriverProcess
from .kill_points import Point
from .numbers import NumberProducer, NumberReader, SoakError
from .stage_faults import KILL, KILLED, StageFaults, Step, count_twins, mark
from .trap import Reaction, Trap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack

    from pyspark_kafka.brokers import KafkaCluster

    from .stage_faults import Action

Script: TypeAlias = "dict[str, Sequence[Action]]"

PROGRAM: Final = Path(__file__).parent / "programs" / "run_write_stage.py"

BROKER_CONFIG: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
"""Transactions that time out are aborted soon after that."""

QUERIES: Final = (
    *(QueryPlan("kafka-python", "exactly-once"),) * 5,
    QueryPlan("kafka-python", "at-least-once"),
    QueryPlan("confluent", "at-least-once"),
)
"""Each as often as it is chosen."""

_PARTITIONS: Final = 6
"""Of the input: more than executors, so that each of them has rows of the shuffle."""

_TASKS: Final = 4
_OUTPUTS: Final = 2
_NUMBERS: Final = 6_000
_BATCH: Final = 2_400
_RATE: Final = 5_000
_MAX_RESTARTS: Final = 4
_RUN_S: Final = 150.0
_CHECK_S: Final = 30.0
_HANGING_S: Final = 20.0
_FAILED_READ_S: Final = 3.0
_BROKER_DOWN_S: Final = 3.0
_POLL_S: Final = 0.05

_SHORT_TIMEOUT_MS: Final = 6_000
_TOO_LONG_S: Final = 12.0

_HOSTS: Final = ("127.0.0.2", "127.0.0.3")

_SPARK: Final = {
    "spark.executor.memory": "600m",
    # All executors are there before the first task, and get tasks at once.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.locality.wait": "0s",
    "spark.shuffle.io.retryWait": "200ms",
    # Rows reach the sink while the task before it waits.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.sql.execution.pandas.udf.buffer.size": "1024",
    "spark.buffer.size": "1024",
}
_SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
}


def _await(partition: int, start: int, step: Step | str) -> Action:
    return ("await", mark(partition, start, step))


_SECOND_S: Final = ("sleep", 1.0)
_BEGUN: Final = _await(2, 0, Step.FIRST)


def _one_executor(step: Step, _: Step) -> Script:
    return {mark(1, 0, step): [_BEGUN, KILL]}


def _two_executors(step: Step, second: Step) -> Script:
    return {**_one_executor(step, second), mark(2, 0, second): [_await(1, 0, KILLED), KILL]}


def _twins(first: Step, awaited: Action, twin: Step, *does: Action, end: Action) -> Script:
    """Return what two tasks of partition 2 do; partition 1 keeps the stage running until then."""
    return {
        mark(2, 0, first): [awaited],
        mark(2, 1, twin): does,
        mark(1, 1, Step.FIRST): [end, _SECOND_S],
    }


def _twin_of_finished(step: Step, second: Step) -> Script:
    first_ends = (_await(2, 0, Step.LAST), _SECOND_S)
    end = _await(2, 1, Step.LAST)
    begun = _await(2, 1, Step.FIRST)
    return {
        **_one_executor(step, second),
        **_twins(second, begun, Step.FIRST, *first_ends, end=end),
    }


def _twin_between_rows(step: Step, second: Step) -> Script:
    first_ends = (_await(2, 0, Step.LAST), _SECOND_S)
    end = _await(2, 1, Step.LAST)
    open_ = _await(2, 1, Step.BETWEEN)
    twins = _twins(Step.BETWEEN, open_, Step.BETWEEN, *first_ends, end=end)
    return {**_one_executor(step, second), **twins}


def _twin_that_wins(step: Step, second: Step) -> Script:
    ended = _await(2, 1, Step.LAST)
    script = _twins(second, ended, Step.FIRST, end=_await(2, 0, Step.LAST))
    script[mark(2, 0, second)] = [ended, _SECOND_S]
    return {**_one_executor(step, second), **script}


def _twin_killed(step: Step, second: Step) -> Script:
    killed = _await(2, 1, KILLED)
    return {
        **_one_executor(step, second),
        **_twins(Step.BETWEEN, killed, second, KILL, end=killed),
    }


def _killed_beside_its_twin(step: Step, second: Step) -> Script:
    killed = _await(2, 0, KILLED)
    script = _twins(second, KILL, Step.BETWEEN, killed, _SECOND_S, end=killed)
    script[mark(2, 0, second)] = [_await(2, 1, Step.BETWEEN), KILL]
    return {**_one_executor(step, second), **script}


KINDS: Final[dict[str, Callable[[Step, Step], Script]]] = {
    "no executor": lambda _, __: {},
    "one executor": _one_executor,
    "two executors": _two_executors,
    "twin of a finished task": _twin_of_finished,
    "twin between rows": _twin_between_rows,
    "twin that ends first": _twin_that_wins,
    "twin killed": _twin_killed,
    "killed beside its twin": _killed_beside_its_twin,
}
"""Which executors are lost, by the steps of two tasks."""

_AT_COMMIT: Final = ("", "", "broker killed", "broker killed", "failure", "driver killed")


@final
@dataclass(frozen=True, slots=True)
class Story:
    """What is to happen in a round."""

    kind: str
    step: str = Step.BETWEEN.name
    second_step: str = Step.BETWEEN.name
    client: str = "kafka-python"
    guarantee: str = "exactly-once"
    batch_id: int = 0
    speculates: bool = False
    max_failures: int = 4
    at_commit: str = ""
    broker: int = 0
    late_partition: int | None = None
    """One that takes longer than its transactions may."""
    has_metadata_path: bool = False

    @classmethod
    def of(cls, seed: int, number: int) -> Story:
        """Return the story of a round."""
        chance = random.Random(f"{seed}/{number}")  # noqa: S311
        kinds = random.Random(seed).sample(list(KINDS), len(KINDS))  # noqa: S311
        kind = kinds[number % len(kinds)]
        query = chance.choice(QUERIES)
        is_late = query.is_exactly_once and chance.random() < (0.6 if "no " in kind else 0.15)
        # A short timeout would end the transactions that a driver cannot commit in time.
        at_commit = chance.choice(_AT_COMMIT) if query.is_exactly_once and not is_late else ""
        return cls(
            kind,
            chance.choice(list(Step)).name,
            chance.choice(list(Step)).name,
            query.client,
            query.guarantee,
            batch_id=chance.randrange(2),
            speculates=chance.random() < 0.3,
            max_failures=chance.choice((1, 4, 4, 4)),
            at_commit=at_commit,
            broker=chance.randrange(3),
            late_partition=chance.choice((0, 3)) if is_late else None,
            has_metadata_path=chance.random() < 0.4,
        )

    @property
    def is_exactly_once(self) -> bool:
        """Whether each number is to be there once."""
        return self.guarantee == "exactly-once"

    @property
    def has_twins(self) -> bool:
        """Whether a partition is written by several attempts of the stage, whatever else is."""
        return "twin" in self.kind and self.max_failures > 1 and not self.speculates

    def script(self) -> Script:
        """Return what tasks do at their steps."""
        script = KINDS[self.kind](Step[self.step], Step[self.second_step])
        if self.late_partition is not None:
            script[mark(self.late_partition, 0, Step.FIRST)] = [("sleep", _TOO_LONG_S)]
        return script


@final
@dataclass(slots=True)
class WriteStageRound(JsonLine):
    """What was done in a round, and what came of it."""

    seed: int
    number: int
    story: Story
    twins: int = 0
    kills: list[str] = field(default_factory=list)
    restarts: int = 0
    records: int = 0
    duplicates: int = 0
    missing: int = 0
    seconds: float = 0.0
    error: str | None = None


@final
class WriteStageSoak(Opened):
    """Queries on a cluster, one after another, all from one topic of numbers."""

    def __init__(
        self, cluster: KafkaCluster, seed: int, say: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__()
        self._cluster = cluster
        self._seed = seed
        self._say = say

    def _open(self, closing: ExitStack) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="write-stage-"))
        closing.callback(shutil.rmtree, self._root, ignore_errors=True)
        self._source = self._root.name
        self._cluster.create_topic(self._source, _PARTITIONS)
        producer = NumberProducer(self._cluster.bootstrap_servers, self._source, _PARTITIONS, _RATE)
        with producer.writing():
            Deadline.after(_CHECK_S).poll(lambda: producer.count >= _NUMBERS, _POLL_S)
        self._count = producer.count

    def run(self, numbers: Sequence[int], *, goes_on: bool = False) -> list[int]:
        """Run some rounds; return those that have failed, or raise as ``run_round`` does."""
        failed = []
        for number in numbers:
            try:
                self.run_round(number)
            except SoakError as error:
                if not goes_on:
                    raise
                self._say(str(error))
                failed.append(number)
        return failed

    def run_round(self, number: int, story: Story | None = None) -> WriteStageRound:
        """Write all numbers while executors are lost, and look for each.

        :raises SoakError: if one is lost or doubled, if the query cannot be restarted, or if a
            transaction hangs.
        """
        story = story or Story.of(self._seed, number)
        one_round = _Run(
            self._cluster,
            self._root / str(number),
            WriteStageRound(self._seed, number, story),
            self._source,
            self._count,
        )
        with one_round:
            failure = one_round.run()
            self._say(one_round.result.to_json())
            if failure is not None:
                told = f"{one_round.result.to_json()}\n{one_round.last_words()}"
                raise SoakError(told) from failure
        return one_round.result


@final
class _Run(Opened):
    """One round: a query of its own, from its first driver to its last one."""

    def __init__(
        self,
        cluster: KafkaCluster,
        directory: Path,
        result: WriteStageRound,
        source: str,
        count: int,
    ) -> None:
        super().__init__()
        self._cluster = cluster
        self._directory = directory
        self._marks = directory / "marks"
        self.result = result
        self._story = result.story
        self._source = source
        self._topic = f"{source}-{result.number}"
        self._count = count
        self._began = time.monotonic()
        self._broker_is_back_at: float | None = None

    def _open(self, closing: ExitStack) -> None:
        self._marks.mkdir(parents=True)
        closing.callback(shutil.rmtree, self._directory, ignore_errors=True)
        kill_points.install(self._directory / "site")
        environment = {
            "PYTHONPATH": str(self._directory / "site"),
            "PYSPARK_PYTHON": sys.executable,
            kill_points.DIRECTORY: str(self._directory),
        }
        self._trap = Trap(self._directory)
        config, log = self._directory / "config.json", self._directory / "driver.log"
        self._driver = DriverProcess(PROGRAM, config, log, environment)
        closing.callback(self._driver.kill)
        self._cluster.create_topic(self._topic, _OUTPUTS)
        servers = self._cluster.bootstrap_servers
        self._reader = NumberReader(servers, self._topic, _OUTPUTS, committed=True)
        closing.callback(self._reader.close)
        closing.callback(self._start_broker)

    def run(self) -> Exception | None:
        """Run the query to its end, and return what is wrong."""
        failure: Exception | None = None
        try:
            self._arm()
            self._run_to_the_end()
            self._check()
        except Exception as error:  # noqa: BLE001  # it is told with what was done
            failure, self.result.error = error, str(error)
            self._reader.read(_FAILED_READ_S)
        self.result.twins = count_twins(self._marks)
        self.result.records = self._reader.records
        self.result.duplicates = self._reader.duplicates
        self.result.missing = self._reader.missing(self._count)
        self.result.seconds = round(time.monotonic() - self._began, 1)
        return failure

    def last_words(self) -> str:
        """Return the end of the driver's log."""
        return self._driver.last_words()

    def _arm(self) -> None:
        reactions = {
            "broker killed": Reaction.HOLD,
            "failure": Reaction.FAIL,
            "driver killed": Reaction.KILL,
        }
        if self._story.at_commit:
            self._trap.arm(Point.BETWEEN_ENDS, reactions[self._story.at_commit])

    def _run_to_the_end(self) -> None:
        while not self._run_driver(is_armed=not self.result.restarts):
            if self.result.restarts == _MAX_RESTARTS:
                raise SoakError(f"the query has failed after {_MAX_RESTARTS} restarts")
            self.result.restarts += 1
        self._start_broker()

    def _run_driver(self, *, is_armed: bool) -> bool:
        """Start the query, and return whether it comes to the end of its input."""
        outcome = self._directory / "outcome"
        outcome.unlink(missing_ok=True)
        config = self._config(self._story.batch_id if is_armed else -1)
        (self._directory / "config.json").write_text(json.dumps(config))
        self._driver.launch()
        deadline = Deadline.after(_RUN_S)
        while not (outcome.exists() or self._driver.has_ended()):
            self._meet_trap()
            if deadline.has_passed:
                self._driver.kill()
                raise SoakError(f"the query does not end within {_RUN_S:.0f} s")
            time.sleep(_POLL_S)
        has_ended = outcome.exists() and outcome.read_text() == "ended"
        self._note("the query ends" if has_ended else f"the query fails: {self._failure()}")
        self._driver.kill()
        return has_ended

    def _failure(self) -> str:
        """Return what the log names last as an error."""
        named = re.findall(
            r"^.*(?:Error|Exception|stage failure): .+", self._driver.log(), re.MULTILINE
        )
        return str(named[-1]).strip()[:300] if named else f"status {self._driver.wait(0)}"

    def _meet_trap(self) -> None:
        """Kill a broker while the driver is held in its commit; start it again later."""
        is_to_kill = self._story.at_commit == "broker killed" and not self._trap.is_armed
        if is_to_kill and self._broker_is_back_at is None:
            self._note(f"broker {self._story.broker} is killed")
            self._cluster.kill_broker(self._story.broker)
            self._broker_is_back_at = time.monotonic() + _BROKER_DOWN_S
            self._trap.release()
        elif self._broker_is_back_at is not None and time.monotonic() > self._broker_is_back_at:
            self._start_broker()

    def _start_broker(self) -> None:
        if self._broker_is_back_at not in {None, float("inf")}:
            self._broker_is_back_at = float("inf")
            self._cluster.start_broker(self._story.broker)
            self._note(f"broker {self._story.broker} is back")

    def _config(self, batch_id: int) -> dict[str, Any]:
        story = self._story
        hosts = _HOSTS if story.speculates else ()
        settings = {**_SPARK, "spark.task.maxFailures": str(story.max_failures)}
        shared = {**self._cluster.options, "client": story.client}
        write = {
            **shared,
            "topic": self._topic,
            "deliveryGuarantee": story.guarantee,
            "checkpointLocation": str(self._directory / "checkpoint"),
        }
        if story.is_exactly_once:
            is_late = story.late_partition is not None
            timeout_ms = _SHORT_TIMEOUT_MS if is_late else TRANSACTION_TIMEOUT_MS
            write["kafka.transaction.timeout.ms"] = str(timeout_ms)
        if story.has_metadata_path:
            write["metadataPath"] = str(self._directory / "metadata")
        return {
            "master": f"local-cluster[{3 - len(hosts)},1,700]",
            "hosts": hosts,
            "settings": {**settings, **(_SPECULATION if story.speculates else {})},
            "tasks": _TASKS,
            "faults": asdict(StageFaults(str(self._marks), batch_id, story.script())),
            "read": {
                **shared,
                "subscribe": self._source,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(_BATCH),
            },
            "write": write,
        }

    def _check(self) -> None:
        self._reader.await_all(self._count, time.monotonic() + _CHECK_S, lambda: None)
        self._reader.await_end(time.monotonic() + _HANGING_S)
        if self._story.is_exactly_once and self._reader.duplicates:
            raise SoakError(f"{self._reader.duplicates} duplicates")
        if self._story.has_twins and not count_twins(self._marks):
            raise SoakError("no partition was written by two attempts of the stage")

    def _note(self, what: str) -> None:
        self.result.kills.append(f"{time.monotonic() - self._began:.2f} s: {what}")
