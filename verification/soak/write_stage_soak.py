"""Rounds in which executors are lost while a micro-batch is written, and a look for each record."""

import re
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from . import kill_points
from .driver_process import DriverProcess
from .kill_points import Point
from .ledger import Counts
from .numbers import NumberProducer, NumberReader, SoakError
from .rounds import Opened, Round, Rounds, temporary_directory
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
_RUN_S: Final = bound_s(300)
_CHECK_S: Final = bound_s(30)
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
"""The effect of a trap between two ends of transactions."""

_SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
}


class WriteStageSoak(Rounds):
    """Queries on a cluster, one after another, all from one topic of numbers."""

    def __init__(
        self, cluster: KafkaCluster, seed: int, say: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(seed, say)
        self._cluster = cluster
        self._query: _Query | None = None

    def _open(self, closing: ExitStack) -> None:
        self._root = temporary_directory(closing, "write-stage")
        self._source = self._root.name
        self._cluster.create_topic(self._source, _PARTITIONS)
        producer = NumberProducer(self._cluster.bootstrap_servers, self._source, _PARTITIONS, _RATE)
        with producer.writing():
            Deadline.after(_CHECK_S).poll(lambda: producer.count >= _NUMBERS, _POLL_S)
        self._count = producer.count

    def run_round(self, number: int, story: Story | None = None) -> Round:
        """Write all numbers while executors are lost, and look for each."""
        story = story or Story.of(self._seed, number)
        topic, directory = f"{self._source}-{number}", self._root / str(number)
        query = _Query(
            self._cluster, directory, story, self._source, topic, self._count, self._note
        )
        with query:
            self._query = query
            return self._checked(number, query.run, story=story)

    def _come_to(self) -> dict[str, Any]:
        return self._query.come_to() if self._query else {}

    def _last_words(self) -> str:
        return self._query.driver.last_words() if self._query else ""


class _Query(Opened):
    """The query of a round, from its first driver to its last one."""

    def __init__(
        self,
        cluster: KafkaCluster,
        directory: Path,
        story: Story,
        source: str,
        topic: str,
        count: int,
        note: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._cluster = cluster
        self._directory = directory
        self._marks = directory / "marks"
        self._story = story
        self._source = source
        self._topic = topic
        self._count = count
        self._note = note
        self._restarts = 0
        self._is_armed = False
        self._broker_is_back_at: float | None = None

    def _open(self, closing: ExitStack) -> None:
        self._marks.mkdir(parents=True)
        closing.callback(shutil.rmtree, self._directory, ignore_errors=True)
        self._trap = Trap(self._directory)
        self.driver = DriverProcess(PROGRAM, self._directory, kill_points.install(self._directory))
        closing.callback(self.driver.kill)
        self._cluster.create_topic(self._topic, _OUTPUTS)
        servers = self._cluster.bootstrap_servers
        self._reader = NumberReader(servers, self._topic, _OUTPUTS, committed=True)
        closing.callback(self._reader.close)
        closing.callback(self._start_broker)

    def run(self) -> None:
        while not self._run_driver(is_armed=not self._restarts):
            if self._restarts == _MAX_RESTARTS:
                raise SoakError(f"the query has failed after {_MAX_RESTARTS} restarts")
            self._restarts += 1
        self._start_broker()
        self._check()

    def come_to(self) -> dict[str, Any]:
        """Return what has come of it; what a failed query has written is read once more."""
        self._reader.read(_FAILED_READ_S if self._reader.missing(self._count) else 0.0)
        return {
            "twins": count_twins(self._marks),
            "restarts": self._restarts,
            "counts": Counts.of(self._reader, self._count),
        }

    def _arm(self) -> None:
        """Arm the trap once the batch has begun whose executors are lost."""
        if self._story.at_commit and not self._is_armed and any(self._marks.iterdir()):
            self._is_armed = True
            self._trap.arm(Point.BETWEEN_ENDS, _REACTIONS[self._story.at_commit])

    def _run_driver(self, *, is_armed: bool) -> bool:
        """Start the query, and return whether it comes to the end of its input."""
        outcome = self._directory / "outcome"
        outcome.unlink(missing_ok=True)
        self.driver.launch(self._config(self._story.batch_id if is_armed else -1))
        deadline = Deadline.after(_RUN_S)
        while not (outcome.exists() or self.driver.has_ended()):
            self._arm()
            self._meet_trap()
            if deadline.has_passed:
                self.driver.kill()
                raise SoakError(f"the query does not end within {_RUN_S:.0f} s")
            time.sleep(_POLL_S)
        has_ended = outcome.exists() and outcome.read_text() == "ended"
        self._note("the query ends" if has_ended else f"the query fails: {self._failure()}")
        self.driver.kill()
        return has_ended

    def _failure(self) -> str:
        named = re.findall(_NAMED_ERROR, self.driver.log(), re.MULTILINE)
        return str(named[-1]).strip()[:300] if named else f"status {self.driver.wait(0)}"

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
        write = story.plan.sink(self._cluster.options, self._topic)
        write["checkpointLocation"] = str(self._directory / "checkpoint")
        if story.late_partition is not None:
            write["kafka.transaction.timeout.ms"] = str(SHORT_TIMEOUT_MS)
        if story.has_metadata_path:
            write["metadataPath"] = str(self._directory / "metadata")
        return {
            "master": f"local-cluster[{3 - len(hosts)},1,700]",
            "hosts": hosts,
            "settings": {**settings, **(_SPECULATION if story.speculates else {})},
            "tasks": _TASKS,
            "padding": _PADDING,
            "faults": asdict(StageFaults(str(self._marks), batch_id, story.script())),
            "read": story.plan.source(self._cluster.options, self._source)
            | {"maxOffsetsPerTrigger": str(_BATCH)},
            "write": write,
        }

    def _check(self) -> None:
        self._reader.await_all(self._count, time.monotonic() + _CHECK_S, lambda: None)
        self._reader.await_end(time.monotonic() + _HANGING_S)
        if self._story.plan.is_exactly_once and self._reader.duplicates:
            raise SoakError(f"{self._reader.duplicates} duplicates")
        if self._story.has_twins and not count_twins(self._marks):
            raise SoakError("no partition was written by two attempts of the stage")
