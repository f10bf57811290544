"""Rounds in which executors are lost while a micro-batch is written, and a look for each record."""

import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.clock import Deadline

from . import kill_points
from .base import JsonLine, Opened
from .driver import TRANSACTION_TIMEOUT_MS
from .driver_process import DriverProcess
from .kill_points import Point
from .numbers import NumberProducer, NumberReader, SoakError
from .stage_faults import StageFaults, count_twins
from .stage_stories import SHORT_TIMEOUT_MS, Story
from .trap import Reaction, Trap

PROGRAM: Final = Path(__file__).parent / "programs" / "run_write_stage.py"

BROKER_CONFIG: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
"""Transactions that time out are aborted soon after that."""

_PARTITIONS: Final = 6
"""Of the input: more than executors, so that each of them has rows of the shuffle."""

_TASKS: Final = 4
_OUTPUTS: Final = 2
_NUMBERS: Final = 3_000
_BATCH: Final = 1_200
_PADDING: Final = 10_000
"""Bytes that each number gets: the sink sends rows when it has 1 MiB of them."""

_RATE: Final = 5_000
_MAX_RESTARTS: Final = 4
_RUN_S: Final = 300.0
_CHECK_S: Final = 30.0
_HANGING_S: Final = 20.0
_FAILED_READ_S: Final = 3.0
_BROKER_DOWN_S: Final = 3.0
_POLL_S: Final = 0.05

_NAMED_ERROR: Final = r"^(?!.*STREAM_FAILED).*(?:Error|Exception|stage failure): .+"

_HOSTS: Final = ("127.0.0.2", "127.0.0.3")

_SPARK: Final = {
    "spark.executor.memory": "600m",
    # All executors are there before the first task, and get tasks at once.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.locality.wait": "0s",
    "spark.shuffle.io.retryWait": "200ms",
    # Rows reach the sink while the task before it waits.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "25",
    "spark.sql.execution.pandas.udf.buffer.size": "1024",
    "spark.buffer.size": "1024",
}
_REACTIONS: Final = {
    "broker killed": Reaction.HOLD,
    "failure": Reaction.FAIL,
    "driver killed": Reaction.KILL,
}
"""What a trap between two ends of transactions does."""

_SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
}


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
        self._is_armed = False
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
        """Arm the trap once the batch has begun whose executors are lost."""
        if self._story.at_commit and not self._is_armed and any(self._marks.iterdir()):
            self._is_armed = True
            self._trap.arm(Point.BETWEEN_ENDS, _REACTIONS[self._story.at_commit])

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
            self._arm()
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
        named = re.findall(_NAMED_ERROR, self._driver.log(), re.MULTILINE)
        return str(named[-1]).strip()[:300] if named else f"status {self._driver.wait(0)}"

    def _meet_trap(self) -> None:
        """Kill a broker while the driver is held in its commit; start it again later."""
        kills = self._story.at_commit == "broker killed" and self._is_armed
        if kills and not self._trap.is_armed and self._broker_is_back_at is None:
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
            timeout_ms = SHORT_TIMEOUT_MS if is_late else TRANSACTION_TIMEOUT_MS
            write["kafka.transaction.timeout.ms"] = str(timeout_ms)
        if story.has_metadata_path:
            write["metadataPath"] = str(self._directory / "metadata")
        return {
            "master": f"local-cluster[{3 - len(hosts)},1,700]",
            "hosts": hosts,
            "settings": {**settings, **(_SPECULATION if story.speculates else {})},
            "tasks": _TASKS,
            "padding": _PADDING,
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
