"""Drivers of an exactly-once sink that disturb each other: late ones, copies, and backups."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pytest
from dependency_injector import providers

from pyspark_kafka.bootstrap.container import (
    SinkContainer,
    closing_clients,
    container_for,
    sink_container_for,
)
from pyspark_kafka.domain.checkpoints.entries import SinkPlan
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.writing.transaction import (
    LANES,
    SinkTaskId,
    TransactionState,
    WriteResult,
    query_id_prefix,
)
from pyspark_kafka.ports.writing import Transactions
from pyspark_kafka.testing.world import unique_name

TASKS = 2


@final
class Driver:
    """A run of the query ``query_id`` whose log is in a directory."""

    def __init__(self, kafka: Any, query_id: str, topic: str, directory: Path, run: str) -> None:
        given = {
            **kafka.options,
            "topic": topic,
            "deliveryGuarantee": "exactly-once",
            "metadataPath": str(directory),
        }
        self.container: SinkContainer = sink_container_for(
            parse_sink_options(given, QueryKind.STREAM)
        )
        self._query_id = query_id
        self._run = run
        self._plan = SinkPlan()
        self._written: Sequence[WriteResult] = ()
        self._attempt = 0

    def run(self, batch: int) -> None:
        self.write(batch)
        self.commit(batch)

    def wait_before(self, call: str, meanwhile: Callable[[], None]) -> None:
        waiting = Waiting(self.container.transactions(), call, meanwhile)
        self.container.transactions.override(providers.Object(waiting))

    def skip_attempts(self) -> None:
        """Let the next attempts have the ids of the last ones."""
        self._attempt += TASKS

    def open_ids(self) -> list[str]:
        prefix = query_id_prefix("pyspark-kafka", self._query_id)
        return list(self.container.transactions().find(prefix, TransactionState.ONGOING))

    def write(self, batch: int) -> None:
        self._plan = self.container.kafka_sink().recover()
        self._written = [self._write(batch, task) for task in range(TASKS)]

    def _write(self, batch: int, task: int) -> WriteResult:
        self._attempt += 1
        attempt = SinkTaskId(self._query_id, self._run, batch, task, self._attempt)
        name = attempt.transactional_id("pyspark-kafka", self._plan.log_id)
        rows = pa.RecordBatch.from_pydict({"value": [b"%d-%d" % (batch, task)]})
        return self.container.sink_task().write([rows], name, self._plan.used_until_ms)

    def commit(self, batch: int) -> None:
        sink = self.container.kafka_sink()
        sink.commit(batch, self._query_id, self._written, self._plan)

    def abort(self, batch: int) -> None:
        self.container.kafka_sink().abort(batch, self._written, self._query_id)


class Waiting:
    """Transactions that do something before the first call of one kind."""

    def __init__(self, inner: Transactions, name: str, before: Any) -> None:
        self._inner = inner
        self._name = name
        self._before = before

    def __getattr__(self, name: str) -> Any:
        if name == self._name and self._before is not None:
            before, self._before = self._before, None
            before()
        return getattr(self._inner, name)


@pytest.fixture
def topic(kafka, fresh_name):
    name = fresh_name()
    kafka.create_topic(name)
    return name


@pytest.fixture
def drivers(kafka, topic, tmp_path):
    """Return a factory of drivers of one query."""
    made = []
    query_id = unique_name()

    def make(run: str, to: str = topic, directory: Path = tmp_path) -> Driver:
        driver = Driver(kafka, query_id, to, directory, run)
        made.append(driver)
        return driver

    yield make
    for driver in made:
        driver.container.transactions.reset_override()
        driver.container.shutdown_resources()


def visible(kafka: Any, topic: str) -> list[bytes]:
    given = {
        **kafka.options,
        "subscribe": topic,
        "kafka.isolation.level": "read_committed",
        "startingOffsets": "earliest",
    }
    with closing_clients(container_for(parse_source_options(given, QueryKind.BATCH))) as container:
        return sorted(
            row["value"]
            for part in container.batch().plan_input_partitions()
            for batch in container.range_read().read(part, Projection(("value",)))
            for row in batch.to_pylist()
        )


def rows(*batches: int) -> list[bytes]:
    return sorted(b"%d-%d" % (batch, task) for batch in batches for task in range(TASKS))


def test_a_late_commit_leaves_the_next_batch_of_the_live_driver_alone(kafka, topic, drivers):
    late, live = drivers("late"), drivers("live")
    for driver in (late, live):
        driver.write(0)
    live.commit(0)
    live.write(1)
    late.commit(0)
    live.commit(1)
    assert visible(kafka, topic) == rows(0, 1)
    assert late.open_ids() == []


def test_a_driver_that_is_overtaken_leaves_the_next_batch_alone(kafka, topic, drivers):
    """It stands still between its look at the log and its look at open transactions."""
    late, live = drivers("late"), drivers("live")
    for driver in (late, live):
        driver.write(0)

    def meanwhile() -> None:
        live.commit(0)
        live.write(1)

    late.wait_before("find", meanwhile)
    with pytest.raises(MetadataLogError, match="Another driver has written entry"):
        late.commit(0)
    late.abort(0)
    live.commit(1)
    assert visible(kafka, topic) == rows(0, 1)
    assert late.open_ids() == []


def test_a_driver_that_cleans_up_late_leaves_ids_alone_that_are_used_again(kafka, topic, drivers):
    """The other one has an id now whose transaction the late driver has found open."""
    late, live = drivers("late"), drivers("live")
    live.write(0)
    late.write(0)

    def meanwhile() -> None:
        live.commit(0)
        for _ in range(LANES // TASKS - 1):
            live.skip_attempts()
        live.write(1)

    late.wait_before("abort", meanwhile)
    late.commit(0)
    live.commit(1)
    assert visible(kafka, topic) == rows(0, 1)
    assert late.open_ids() == []


def test_a_copy_of_a_checkpoint_runs_beside_the_original(
    kafka, topic, fresh_name, drivers, tmp_path
):
    other = fresh_name()
    kafka.create_topic(other)
    original = drivers("original")
    copy = drivers("copy", other, tmp_path / "copy")
    for batch in range(2):
        for driver in (original, copy):
            driver.write(batch)
        copy.commit(batch)
        original.commit(batch)
    assert visible(kafka, topic) == visible(kafka, other) == rows(0, 1)


def test_an_older_backup_is_refused_and_its_batches_are_not_doubled(
    kafka, topic, drivers, tmp_path
):
    first = drivers("first", directory=tmp_path / "log")
    for batch in range(3):
        first.write(batch)
        first.commit(batch)
        if batch == 0:
            shutil.copytree(tmp_path / "log", tmp_path / "backup")
    shutil.rmtree(tmp_path / "log")
    shutil.move(tmp_path / "backup", tmp_path / "log")
    restored = drivers("restored", directory=tmp_path / "log")
    restored.write(1)
    with pytest.raises(MetadataLogError, match="restored from an older backup"):
        restored.commit(1)
    restored.abort(1)
    assert visible(kafka, topic) == rows(0, 1, 2)
    shutil.rmtree(tmp_path / "log")
    for batch in (1, 2):
        restored.write(batch)
        restored.commit(batch)
    drivers("next", directory=tmp_path / "log").run(3)
    assert visible(kafka, topic) == sorted(rows(0, 1, 2, 3) + rows(1, 2))
