"""Committing micro-batches exactly once when drivers and tasks die."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, final
from unittest.mock import Mock

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.application.writing.kafka_sink import MAX_ENTRIES, KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.bootstrap.container import sink_container_for
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry, SinkPlan
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError
from pyspark_kafka.domain.options.option import INT64_MAX, QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options, sink_log_path
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.domain.writing.transaction import (
    LANES,
    SLOTS,
    SinkTaskId,
    Transaction,
    TransactionState,
    WriteResult,
    end_of,
    short_digest,
)
from pyspark_kafka.ports.clock import epoch_ms
from pyspark_kafka.ports.writing import Transactions
from pyspark_kafka.testing import await_until

from ..conftest import Kit
from ..passing import passing

OPTIONS = parse_sink_options(
    {
        "kafka.bootstrap.servers": "memory",
        "client": "memory",
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "metadataPath": "memory://unused",
    },
    QueryKind.STREAM,
)
IN_CHECKPOINT = replace(
    OPTIONS,
    metadata_path=sink_log_path(StoragePath("memory://c")),
    checkpoint=StoragePath("memory://c"),
)
PREFIX = OPTIONS.transactional_id_prefix

TASKS = 3
"""How many tasks a batch has, each with a row."""

STEPS = 6
"""A driver's external steps to commit a batch: two entries, three ends, and a purge."""

LOG_ID = short_digest("the log")
QUERY = f"{PREFIX}-q-{LOG_ID}-{short_digest('run')}"
"""The prefix of the ids of the query's first run."""

OTHER = "7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a1"
NO_CONNECTION = Mock(side_effect=MetadataLogError("offsets", "no connection"))


class DiedError(Exception):
    """A driver is gone in the middle of something."""


@final
@dataclass
class Life:
    """A driver's, in steps; it ends before or after one of them."""

    last: int | None = None
    after: bool = False
    lived: int = 0

    def step(self, do: Callable[[], object]) -> object:
        """Do a step, unless the driver dies of it."""
        number, self.lived = self.lived, self.lived + 1
        if number == self.last and not self.after:
            raise DiedError
        done = do()
        if number == self.last:
            raise DiedError
        return done


def mortal(inner: Any, life: Life, *steps: str) -> Any:
    """Return what passes calls to ``inner``, where those of these methods are steps of a life."""

    def in_a_step(name: str) -> Callable[..., object]:
        return lambda *given: life.step(lambda: getattr(inner, name)(*given))

    return passing(inner, **{name: in_a_step(name) for name in steps})


@dataclass
class Stage:
    """A query that writes to the topic ``t``: its log, its drivers and their tasks."""

    kit: Kit
    log: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    backups: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    log_id: str = LOG_ID

    @property
    def transactions(self) -> MemoryTransactions:
        return MemoryTransactions(self.kit.cluster)

    def driver(
        self,
        life: Life | None = None,
        offsets: Any = None,
        query_id: str | None = "q",
        log: Any = None,
        transactions: Any = None,
        now_ms: Callable[[], int] = epoch_ms,
    ) -> KafkaSink:
        life = life or Life()
        used = transactions or mortal(self.transactions, life, "begin", "commit", "abort")
        log = log or mortal(self.log, life, "add", "purge")
        options = OPTIONS if offsets is None else IN_CHECKPOINT
        checkpoint = checkpoint_of(offsets, query_id, self.backups, has_sink_log=bool(offsets))
        return KafkaSink(log, checkpoint, lambda: used, options, self.log_id, now_ms)

    def die(
        self, last: int, written: Sequence[WriteResult], batch: int = 0, query: str = "q"
    ) -> None:
        with pytest.raises(DiedError):
            self.driver(Life(last, after=False)).commit(batch, query, written)

    @property
    def open_ids(self) -> Sequence[str]:
        return list(self.transactions.find(PREFIX, TransactionState.ONGOING))

    @property
    def open_transactions(self) -> Sequence[Transaction]:
        found = self.transactions.find(PREFIX, TransactionState.ONGOING)
        return [Transaction(name, each.producer_id, each.epoch) for name, each in found.items()]

    def plant(self, transactional_id: str, state: BatchState = BatchState.PREPARED) -> None:
        """Log a batch with an open transaction, as another program could."""
        opened = self.transactions.begin(transactional_id)
        self.log.add(len(self.log.batch_ids()), SinkLogEntry(0, state, (opened,)).to_bytes())

    def run_tasks(
        self, batch: int, attempt: int = 0, query: str = "q", run: str = "run"
    ) -> list[WriteResult]:
        """Write a batch's rows, which name the batch and the task, and leave them uncommitted."""
        return [self.run_task(batch, task, attempt, query, run=run) for task in range(TASKS)]

    def run_task(
        self,
        batch: int,
        task: int,
        attempt: int = 0,
        query: str = "q",
        used_until_ms: int = -1,
        run: str = "run",
    ) -> WriteResult:
        container = sink_container_for(OPTIONS)
        container.memory_cluster.override(self.kit.cluster)
        rows = pa.RecordBatch.from_pydict({"value": [b"%d-%d" % (batch, task)]})
        named = SinkTaskId(query, run, batch, task, attempt).transactional_id(PREFIX, self.log_id)
        return container.sink_task().write([rows], named, used_until_ms)

    def write(self, transaction: Transaction, value: bytes) -> None:
        number = self.kit.cluster.number_of(transaction)
        self.kit.cluster.produce("t", value, transaction=number)

    def run_batch(self, batch: int, driver: KafkaSink, run: str = "run") -> None:
        """Do what Spark does with a batch that is not known to be committed."""
        plan = driver.recover()
        is_visible = batch <= plan.committed_through
        used_until_ms = plan.used_until_ms
        written = [WriteResult()] * TASKS
        if not is_visible:
            written = [
                self.run_task(batch, task, 0, "q", used_until_ms, run) for task in range(TASKS)
            ]
        driver.commit(batch, "q", written, plan)

    def visible(self) -> list[str]:
        options = {"kafka.isolation.level": "read_committed"}
        container = self.kit.container(options, QueryKind.BATCH)
        return sorted(
            row["value"].decode()
            for planned in container.batch().plan_input_partitions()
            for batch in container.range_read().read(planned, Projection(("value",)))
            for row in batch.to_pylist()
        )

    def entry(self) -> SinkLogEntry:
        latest = self.log.latest()
        assert latest is not None
        return SinkLogEntry.from_bytes(latest[1])

    def await_next_ms(self) -> None:
        """Wait until what begins has another time than what has begun."""
        now_ms = epoch_ms()
        await_until(lambda: epoch_ms() > now_ms)

    def time_out(self, written: WriteResult) -> None:
        """Abort a transaction as a broker does that has waited for ``transaction.timeout.ms``."""
        assert written.transaction is not None
        name = written.transaction.transactional_id
        self.kit.cluster._transactional_ids[name].started_ms = 0
        assert self.kit.cluster.abort_expired() == [name]


def checkpoint_of(
    offsets: Any, query_id: str | None = "q", backups: Any = None, *, has_sink_log: bool = False
) -> SinkCheckpoint:
    return SinkCheckpoint(offsets, backups, lambda: query_id, has_sink_log=has_sink_log)


@pytest.fixture
def stage(kit):
    return Stage(kit)


def rows(*batches: int) -> list[str]:
    return [f"{batch}-{task}" for batch in batches for task in range(TASKS)]


def test_batches_are_seen_as_a_whole_when_they_are_committed(stage):
    driver = stage.driver()
    assert driver.recover().committed_through == -1
    for batch in range(3):
        written = stage.run_tasks(batch)
        assert stage.visible() == rows(*range(batch))
        driver.commit(batch, "q", written)
    assert stage.visible() == rows(0, 1, 2)
    assert stage.driver().recover().committed_through == 2


def test_a_driver_takes_so_many_steps(stage):
    """A driver dies of each of them below; a new one would have to be among them."""
    life = Life()
    stage.run_batch(0, stage.driver(life))
    assert life.lived == STEPS


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("last", range(STEPS))
def test_wherever_a_driver_dies_rows_are_seen_once(stage, last, after):
    """Before an entry or behind it, between commits: the next driver ends what was decided."""
    stage.run_batch(0, stage.driver())
    with pytest.raises(DiedError):
        stage.run_batch(1, stage.driver(Life(last, after)))
    stage.run_batch(1, stage.driver())
    stage.run_batch(2, stage.driver())
    assert stage.visible() == rows(0, 1, 2)
    assert stage.driver().recover().committed_through == 2


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("last", range(STEPS))
def test_a_driver_may_die_of_recovering_too(stage, last, after):
    with pytest.raises(DiedError):
        stage.run_batch(0, stage.driver(Life(1, after=False)))
    life = Life(last, after)
    try:
        stage.run_batch(0, stage.driver(life))
    except DiedError:
        assert life.lived == last + 1
    stage.run_batch(0, stage.driver())
    assert stage.visible() == rows(0)


def test_a_batch_that_was_not_decided_is_written_again(stage):
    with pytest.raises(DiedError):
        stage.run_batch(0, stage.driver(Life(0, after=False)))
    driver = stage.driver()
    assert driver.recover().committed_through == -1
    assert stage.visible() == []
    stage.run_batch(0, driver)
    assert stage.visible() == rows(0)


@pytest.mark.parametrize("committed", range(TASKS + 1))
def test_a_batch_that_was_decided_is_seen_before_it_is_run_again(stage, committed):
    with pytest.raises(DiedError):
        stage.run_batch(0, stage.driver(Life(1 + committed, after=False)))
    driver = stage.driver()
    assert driver.recover().committed_through == 0
    assert stage.visible() == rows(0)
    assert stage.entry().state is BatchState.COMMITTED


def test_a_batch_that_is_run_again_is_not_written_twice(stage):
    """Where tasks have written a batch that can be seen already, what they wrote is aborted."""
    driver = stage.driver()
    stage.run_batch(0, driver)
    driver.commit(0, "q", stage.run_tasks(0))
    assert stage.visible() == rows(0)
    assert stage.open_ids == []


def test_a_driver_ends_what_it_left_itself(stage):
    """A commit that failed half way, for want of a broker, is ended by the same driver's next."""
    driver = stage.driver(Life(2, after=False))
    written = stage.run_tasks(0)
    with pytest.raises(DiedError):
        driver.commit(0, "q", written)
    driver.commit(1, "q", stage.run_tasks(1, attempt=1))
    assert stage.visible() == rows(0, 1)


def test_what_timed_out_before_it_was_committed_is_written_again(stage):
    """Where every transaction is gone, so is the batch, and the query starts it again."""
    written = stage.run_tasks(0)
    for one in written:
        stage.time_out(one)
    with pytest.raises(
        TransactionLostError, match=r"batch 0 was dropped .* was open for longer"
    ) as caught:
        stage.driver().commit(0, "q", written)
    assert "'kafka.transaction.timeout.ms'" in str(caught.value)
    assert stage.log.latest() is None
    driver = stage.driver()
    assert driver.recover().committed_through == -1
    stage.run_batch(0, driver)
    assert stage.visible() == rows(0)


def test_what_timed_out_while_no_driver_was_there_is_written_again(stage):
    """A batch that was decided, but not committed in any part, is dropped."""
    stage.run_batch(0, stage.driver())
    written = stage.run_tasks(1)
    stage.die(1, written, batch=1)
    for one in written:
        stage.time_out(one)
    driver = stage.driver()
    assert driver.recover().committed_through == 0
    stage.run_batch(1, driver)
    assert stage.visible() == rows(0, 1)


def test_a_batch_whose_first_transaction_timed_out_is_dropped_as_a_whole(stage):
    """Nothing of it was committed yet, as the first one is committed first: all is aborted."""
    written = stage.run_tasks(0)
    stage.time_out(written[0])
    with pytest.raises(TransactionLostError, match=r"batch 0 was dropped before a part"):
        stage.driver().commit(0, "q", written)
    assert stage.visible() == []
    assert stage.open_ids == []
    stage.run_batch(0, stage.driver())
    assert stage.visible() == rows(0)


@pytest.mark.parametrize("lost", [[1], [2], [1, 2]])
def test_a_part_that_is_lost_is_named(stage, lost):
    """Where other parts can be seen already, every driver reports it and none continues."""
    written = stage.run_tasks(0)
    with pytest.raises(DiedError):
        stage.driver(Life(1, after=True)).commit(0, "q", written)
    for number in lost:
        stage.time_out(written[number])
    for _ in range(2):
        with pytest.raises(TransactionLostError, match=r"of batch 0 were committed") as caught:
            stage.driver().recover()
        assert caught.value.transactional_ids == tuple(f"{QUERY}-{task}-0-0" for task in lost)
        assert "replace 'prepared' by 'committed' in 'a metadata log in memory/0'" in str(
            caught.value
        )
    with pytest.raises(TransactionLostError, match=r"of batch 0 were committed"):
        stage.driver().commit(1, "q", stage.run_tasks(1, attempt=1))


def test_a_batch_of_which_nobody_knows_waits_for_its_user(stage):
    stage.plant(f"{PREFIX}-q-0-0")
    stage.kit.cluster.forget_transactional_id(f"{PREFIX}-q-0-0")
    with pytest.raises(TransactionLostError, match=r"whether batch 0 was committed") as caught:
        stage.driver().recover()
    assert "'prepared' by 'committed' in 'a metadata log in memory/0'" in str(caught.value)
    planned = stage.log.get(0)
    assert planned is not None
    for state, last in ((b"committed", 0), (b"dropped", -1)):
        stage.log.purge(1)
        stage.log.add(0, planned.replace(b"prepared", state))
        assert stage.driver().recover().committed_through == last


def test_of_two_drivers_at_once_the_second_is_reported(stage):
    late = stage.run_tasks(0)
    other = stage.driver()

    def overtaken() -> Transactions:
        # While the first one commits, the other starts and ends what it finds.
        if stage.log.latest() is not None:
            assert other.recover().committed_through == 0
        return stage.transactions

    first = KafkaSink(stage.log, checkpoint_of(None), overtaken, OPTIONS, LOG_ID)
    with pytest.raises(MetadataLogError, match=r"Another driver has written entry 1 .*in memory"):
        first.commit(0, "q", late)
    assert stage.visible() == rows(0)


def test_a_second_driver_does_not_fence_the_first(stage):
    first, written = stage.driver(), stage.run_tasks(0)
    again = stage.run_tasks(0)
    first.commit(0, "q", written)
    stage.driver().commit(0, "q", again)
    assert stage.visible() == rows(0)
    assert stage.open_ids == []


def test_an_attempt_that_lost_is_not_seen(stage):
    speculative = stage.run_task(0, 1, attempt=1)
    written = stage.run_tasks(0)
    stage.driver().commit(0, "q", [written[0], speculative, written[2]])
    assert stage.visible() == rows(0)
    assert stage.open_ids == []


def test_abandoned_attempts_are_aborted_with_the_next_commit(stage):
    """Transactions of a killed task no longer hold up readers; other queries' are left alone."""
    stage.run_task(0, 0, attempt=7)
    stage.run_task(0, 0, query="q2")
    stage.driver().commit(0, "q", stage.run_tasks(0))
    assert stage.open_ids == [f"{QUERY.replace('-q-', '-q2-')}-0-0-0"]


def test_abandoned_attempts_are_aborted_with_the_batch_after_one_that_is_seen_already(stage):
    """A driver that dies before it has tidied up leaves that to the next one."""
    stage.run_task(0, 0, attempt=7)
    with pytest.raises(DiedError):
        stage.run_batch(0, stage.driver(Life(STEPS, after=False)))
    for batch in range(2):
        stage.run_batch(batch, stage.driver())
    assert stage.open_ids == []


@pytest.mark.parametrize("name", [f"{PREFIX}-q-0-1-0", f"{PREFIX}-q-0-1"])
def test_abandoned_attempts_of_an_earlier_version_are_aborted(stage, name):
    opened = stage.transactions.begin(name)
    stage.write(opened, b"abandoned")
    stage.run_batch(0, stage.driver())
    assert stage.open_ids == []
    assert stage.visible() == rows(0)


def test_a_batch_that_an_earlier_version_prepared_is_committed(stage):
    opened = stage.transactions.begin(f"{PREFIX}-q-0-1-0")
    stage.write(opened, b"0-0")
    stage.log.add(0, SinkLogEntry(0, BatchState.PREPARED, (opened,)).to_bytes())
    assert stage.driver().recover().committed_through == 0
    assert stage.visible() == ["0-0"]


def test_a_batch_that_fails_is_aborted(stage):
    driver = stage.driver()
    driver.abort(0, [stage.run_task(0, 0), None, WriteResult()])
    assert stage.open_ids == []
    stage.run_batch(0, driver)
    assert stage.visible() == rows(0)


def test_a_batch_without_rows_is_committed(stage):
    driver = stage.driver()
    driver.commit(0, None, [WriteResult(), WriteResult()])
    assert driver.recover().committed_through == 0


def test_the_log_does_not_grow_without_end(stage):
    driver = stage.driver()
    for batch in range(MAX_ENTRIES):
        driver.commit(batch, "q", [])
    numbers = stage.log.batch_ids()
    assert list(numbers) == list(range(MAX_ENTRIES, 2 * MAX_ENTRIES))
    assert stage.driver().recover().committed_through == MAX_ENTRIES - 1


def test_entries_that_cannot_be_deleted_fail_no_batch(stage, caplog):
    """The batch is committed and logged by then."""
    failing = passing(stage.log, purge=NO_CONNECTION)
    stage.run_batch(0, stage.driver(log=failing))
    assert stage.visible() == rows(0)
    assert "no connection" in caplog.text


def test_a_checkpoint_that_is_not_found_is_an_error(stage):
    """A log that is looked for at another place than the checkpoint is would remember nothing."""
    offsets = MemoryMetadataLog()
    with pytest.raises(MetadataLogError, match=r"not find the checkpoint's offset log") as caught:
        stage.driver(offsets=offsets).recover()
    assert "'metadataPath'" in str(caught.value)
    offsets.add(0, b"v1")
    assert stage.driver(offsets=offsets).recover().committed_through == -1


FOREIGN = [
    "payments-app-7",
    f"{PREFIX}-{OTHER}-0-0",
    f"{PREFIX}-q-0-0-0-1",
    f"{PREFIX}-q-0",
    f"{PREFIX}-q-0-x",
    f"{PREFIX}-q-00-0",
    f"x{PREFIX}-q-0-0",
    f"{PREFIX}-q-0-0\n",
]


@pytest.mark.parametrize("transactional_id", FOREIGN)
def test_transactions_of_others_are_not_ended(stage, transactional_id):
    stage.plant(transactional_id)
    driver = stage.driver()
    for use in (driver.recover, lambda: driver.commit(1, "q", [])):
        with pytest.raises(MetadataLogError, match=r"No transaction was committed") as caught:
            use()
    assert repr(transactional_id)[1:-1] in str(caught.value)
    assert f"named '{PREFIX}-q-<log>-<run>-<task>-<lane>-<slot>'" in str(caught.value)
    assert "(a metadata log in memory/0)" in str(caught.value)
    [planted] = stage.entry().transactions
    [described] = stage.transactions.describe([transactional_id]).values()
    assert end_of(planted, described) is None
    assert stage.log.batch_ids() == [0]


@pytest.mark.parametrize("transactional_id", [*FOREIGN[:1], *FOREIGN[2:]])
def test_without_the_checkpoint_ids_have_the_form_of_a_querys(stage, transactional_id):
    stage.plant(transactional_id.replace("-q-", f"-{OTHER}-"))
    with pytest.raises(MetadataLogError, match=r"-<query id>-<log>-<run>-<task>-<lane>-<slot>'"):
        stage.driver(query_id=None).recover()


def test_without_the_checkpoint_a_batch_is_ended_when_spark_runs_it_again(stage):
    """Its tasks write nothing, and report the id of the query."""
    query = "7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a2"
    stage.die(1, stage.run_tasks(0, query=query), query=query)
    driver = stage.driver(query_id=None)
    assert driver.recover().committed_through == 0
    assert stage.visible() == []
    with pytest.raises(MetadataLogError, match=r"Nothing was written, committed or aborted"):
        driver.commit(0, OTHER, [])
    driver.commit(0, query, [WriteResult()] * TASKS)
    assert stage.visible() == rows(0)
    assert driver.recover().committed_through == 0


def test_without_the_checkpoint_a_batch_that_timed_out_is_written_again(stage):
    written = stage.run_tasks(0, query=OTHER)
    stage.die(1, written, query=OTHER)
    for one in written:
        stage.time_out(one)
    driver = stage.driver(query_id=None)
    assert driver.recover().committed_through == 0
    with pytest.raises(TransactionLostError, match=r"batch 0 was dropped before a part"):
        driver.commit(0, OTHER, [WriteResult()] * TASKS)
    assert driver.recover().committed_through == -1
    driver.commit(0, OTHER, stage.run_tasks(0, query=OTHER))
    assert stage.visible() == rows(0)


def test_a_log_of_another_query_hides_no_batch(stage):
    stage.plant(f"former-{OTHER}-0-0", BatchState.COMMITTED)
    with pytest.raises(
        MetadataLogError, match=r"named '<prefix>-q-<log>-<run>-<task>-<lane>-<slot>'"
    ):
        stage.driver(query_id=None).commit(0, "q", stage.run_tasks(0))
    assert stage.visible() == []


def test_a_batch_that_the_checkpoint_does_not_have_is_an_error(stage):
    """Otherwise all batches before it would be skipped."""
    offsets = MemoryMetadataLog()
    offsets.add(3, b"v1")
    stage.log.add(0, SinkLogEntry(3, BatchState.COMMITTED).to_bytes())
    assert stage.driver(offsets=offsets).recover().committed_through == 3
    stage.log.add(1, SinkLogEntry(4, BatchState.COMMITTED).to_bytes())
    driver = stage.driver(offsets=offsets)
    for use in (driver.recover, lambda: driver.commit(3, "q", [])):
        with pytest.raises(MetadataLogError, match=r"is of batch 4, .* last batch is 3"):
            use()


def test_a_prefix_can_change_between_batches(stage):
    """Batches that are committed or dropped have no transaction to end."""
    for state in (BatchState.COMMITTED, BatchState.DROPPED):
        stage.plant("former-q-0-0", state)
    stage.driver().recover()
    stage.run_batch(1, stage.driver())
    assert stage.visible() == rows(1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"v3\n{}", "maximum supported log version is v2, but encountered v3"),
        (b"v2\n{}", "it is not an entry of a sink log"),
        (b"", "failed to read correct log version"),
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error(stage, content, problem):
    """A later version's log is not taken for an empty one, by neither step."""
    stage.log.add(0, content)
    for use in (stage.driver().recover, lambda: stage.driver().commit(0, "q", [])):
        with pytest.raises(MetadataLogError, match=problem):
            use()
    assert stage.log.batch_ids() == [0]


def test_ids_go_on_with_the_next_batch(stage):
    for batch in range(3):
        stage.run_batch(batch, stage.driver())
    assert len(stage.kit.cluster._transactional_ids) == TASKS


@pytest.mark.parametrize("is_finished", [False, True])
def test_no_other_attempt_of_a_batch_takes_an_id(stage, *, is_finished):
    written = stage.run_tasks(0)
    if is_finished:
        with pytest.raises(DiedError):
            stage.driver(Life(2, after=False)).commit(0, "q", written)
    twin = stage.run_task(0, 0, attempt=LANES)
    assert twin.transaction != written[0].transaction
    stage.driver().commit(0, "q", written)
    assert stage.visible() == rows(0)


def test_ids_are_bounded_when_no_batch_is_committed(stage):
    begun = [stage.run_task(0, 0).transaction for _ in range(SLOTS + 3)]
    names = [each.transactional_id for each in begun if each]
    assert names == [f"{QUERY}-0-0-{slot % SLOTS}" for slot in range(SLOTS + 3)]


@pytest.mark.parametrize("query_id", [OTHER, None])
def test_a_commit_that_failed_is_not_undone(stage, query_id):
    """Spark calls ``abort`` after it: what is decided is committed."""
    written = stage.run_tasks(0, query=OTHER)
    stage.die(2, written, query=OTHER)
    driver = stage.driver(query_id=query_id)
    driver.recover()
    driver.abort(0, written, OTHER)
    assert stage.visible() == rows(0)
    assert driver.recover().committed_through == 0


def test_an_abort_is_not_begun_while_the_log_cannot_be_read(stage):
    """The log may say that the batch is decided."""
    stage.log.add(0, b"v2\n{}")
    with pytest.raises(MetadataLogError, match="not an entry"):
        stage.driver().abort(0, stage.run_tasks(0))
    assert len(stage.open_ids) == TASKS


def test_a_batch_that_is_nearly_too_late_is_dropped(stage):
    """Its transactions could time out between the commits of two."""
    written = stage.run_tasks(0)
    now_ms = epoch_ms() + OPTIONS.producer.transaction_timeout_ms - 20_000
    with pytest.raises(TransactionLostError, match=r"took nearly as long as") as caught:
        stage.driver(now_ms=lambda: now_ms).commit(0, "q", written)
    assert "none is lost" in str(caught.value)
    assert stage.log.latest() is None
    stage.run_batch(0, stage.driver())
    assert stage.visible() == rows(0)


def test_a_clock_that_is_wrong_drops_no_batch(stage):
    """The batch was planned a second ago by the same clock, which is a year ahead."""
    written = stage.run_tasks(0)
    planned_ms = epoch_ms() + 365 * 24 * 3_600_000
    driver = stage.driver(now_ms=lambda: planned_ms + 1_000)
    driver.commit(0, "q", written, SinkPlan(planned_ms=planned_ms))
    assert stage.visible() == rows(0)


def test_what_an_operator_has_fenced_is_written_again(stage):
    """Nothing was decided, and the error says how the transaction was lost."""
    written = stage.run_tasks(0)
    stage.transactions.begin(f"{QUERY}-1-0-0")
    with pytest.raises(TransactionLostError, match=rf"'{QUERY}-1-0-0' was aborted when"):
        stage.driver().commit(0, "q", written)
    stage.run_batch(0, stage.driver())
    assert stage.visible() == rows(0)


CALLS = ("begin", "describe", "find", "commit", "abort", "add", "latest", "purge")


@dataclass
class Suspended:
    """A driver that stands still before one of its calls, while ``meanwhile`` happens."""

    stage: Stage
    last: int
    meanwhile: Callable[[], None]
    calls: int = 0

    def driver(self) -> KafkaSink:
        log, transactions = (
            passing(inner, **{name: self._call(inner, name) for name in CALLS})
            for inner in (self.stage.log, self.stage.transactions)
        )
        return self.stage.driver(log=log, transactions=transactions)

    def _call(self, inner: Any, name: str) -> Callable[..., object]:
        def call(*given: object) -> object:
            number, self.calls = self.calls, self.calls + 1
            if number == self.last:
                self.meanwhile()
            return getattr(inner, name)(*given)

        return call


@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("done", [1, 2])
@pytest.mark.parametrize("last", range(24))
def test_a_driver_that_wakes_up_late_changes_nothing(stage, last, done, *, times_out):
    """Another driver has committed batches meanwhile, and is in the next one."""
    for run in ("older", "late", "live"):
        stage.run_task(0, 0, attempt=1, run=run)
    plan = stage.driver().recover()
    written = stage.run_tasks(0, run="late")
    later: list[WriteResult] = []
    others: list[WriteResult] = []

    def meanwhile() -> None:
        if times_out and stage.log.latest() is None:
            for one in written:
                stage.time_out(one)
        for batch in range(done):
            stage.run_batch(batch, stage.driver(), run="live")
        until_ms = stage.driver().recover().used_until_ms
        tasks = [stage.run_task(done, task, 0, "q", until_ms, "live") for task in range(TASKS)]
        later.extend(tasks)
        # Its id may be one that the late driver has found open.
        others.append(stage.run_task(done, 0, 1, "q", until_ms, "live"))

    late = Suspended(stage, last, meanwhile)
    try:
        late.driver().commit(0, "q", written, plan)
    except (MetadataLogError, TransactionLostError):
        late.driver().abort(0, written, "q")
    if not later:
        assert late.calls <= last
        return
    assert {each.transaction for each in others} <= set(stage.open_transactions)
    stage.driver().commit(done, "q", later)
    assert stage.visible() == rows(*range(done + 1))
    assert stage.open_ids == []


@pytest.mark.parametrize("has_failed_task", [False, True])
def test_a_driver_that_aborts_late_lets_the_next_one_commit(stage, *, has_failed_task):
    """It wakes up between the look of the other driver at the log and its entry."""
    written: list[WriteResult | None] = [*stage.run_tasks(0, run="late")]
    if has_failed_task:
        written.append(None)
    else:
        for one in written:
            assert one is not None
            stage.time_out(one)

    def add(*entry: Any) -> bool:
        stage.driver().abort(0, written, "q")
        return bool(stage.log.add(*entry))

    stage.run_batch(0, stage.driver(log=passing(stage.log, add=add)), run="live")
    assert stage.visible() == rows(0)


def test_a_copy_of_a_checkpoint_leaves_the_transactions_of_the_original_alone(stage):
    copy = Stage(stage.kit, log_id=short_digest("the copy's log"))
    written = stage.run_tasks(0)
    others = copy.run_tasks(0, attempt=1, run="copy")
    abandoned = copy.run_task(0, 0, attempt=2, run="copy").transaction
    assert abandoned is not None
    stage.driver().commit(0, "q", written)
    assert set(stage.open_ids) > {abandoned.transactional_id}
    copy.driver().commit(0, "q", others)
    assert stage.open_ids == []
    assert stage.visible() == sorted(rows(0) * 2)


def test_a_checkpoint_that_was_moved_commits_what_is_prepared(stage):
    """Its log has another place, and the transactions have ids of the former one."""
    written = stage.run_tasks(0)
    stage.die(1, written)
    stage.log_id = short_digest("the new place")
    stage.run_batch(0, stage.driver(), run="moved")
    stage.run_batch(1, stage.driver(), run="moved")
    assert stage.visible() == rows(0, 1)


def test_batches_that_are_not_in_an_older_backup_are_not_written_again(stage):
    """The log is restored with the checkpoint, and knows nothing of them."""
    stage.run_batch(0, stage.driver())
    entries = {number: stage.log.get(number) for number in stage.log.batch_ids()}
    for batch in (1, 2):
        stage.await_next_ms()
        stage.run_batch(batch, stage.driver())
    stage.log = MemoryMetadataLog()
    for number, content in entries.items():
        stage.log.add(number, content)
    driver = stage.driver()
    plan = driver.recover()
    written = stage.run_tasks(1, run="restored")
    with pytest.raises(MetadataLogError, match="restored from an older backup") as caught:
        driver.commit(1, "q", written, plan)
    assert "delete the sink's log" in str(caught.value)
    driver.abort(1, written, "q")
    assert stage.visible() == rows(0, 1, 2)
    assert stage.open_ids == []


@pytest.mark.parametrize("silent", [TransactionState.COMPLETE_COMMIT, TransactionState.ONGOING])
def test_brokers_that_do_not_answer_let_no_check_pass(stage, silent):
    """A batch is not decided without the check; abandoned transactions end by themselves."""
    stage.run_batch(0, stage.driver())

    def find(prefix: str, state: TransactionState) -> object:
        if state is silent:
            raise BrokerUnreachableError("memory", 1)
        return stage.transactions.find(prefix, state)

    driver = stage.driver(transactions=passing(stage.transactions, find=find))
    written = stage.run_tasks(1, run="restarted")
    if silent is TransactionState.COMPLETE_COMMIT:
        with pytest.raises(BrokerUnreachableError):
            driver.commit(1, "q", written)
        assert stage.visible() == rows(0)
        driver = stage.driver()
    driver.commit(1, "q", written)
    assert stage.visible() == rows(0, 1)


@pytest.mark.parametrize("lost", ["aborted", "timed out", "dropped", "log deleted", "unknown"])
def test_no_backup_is_reported_that_was_not_restored(stage, lost):
    stage.run_batch(0, stage.driver())
    stage.await_next_ms()
    written = stage.run_tasks(1)
    if lost == "aborted":
        stage.driver().abort(1, written, "q")
    elif lost == "timed out":
        stage.time_out(written[0])
        with pytest.raises(TransactionLostError):
            stage.driver().commit(1, "q", written)
    elif lost == "dropped":
        stage.die(1, written, batch=1)
        stage.time_out(written[0])
    elif lost == "log deleted":
        stage.driver().commit(1, "q", written)
        stage.log = MemoryMetadataLog()
    else:
        stage.die(1, written, batch=1)
    for batch in (1, 2):
        stage.run_batch(batch, stage.driver(), run=f"run {batch}")
    assert stage.visible() == sorted(rows(0, 1, 2) + (rows(1) if lost == "log deleted" else []))


def test_an_empty_entry_of_another_query_hides_no_batch(stage):
    """Such an entry names no transaction that could be described."""
    stage.driver(query_id=OTHER).commit(0, OTHER, [])
    for use in (stage.driver().recover, lambda: stage.driver().commit(0, "q", [])):
        with pytest.raises(MetadataLogError, match=rf"is of the query '{OTHER}', .* 'q'"):
            use()
    assert stage.driver(query_id=None).recover().query_id == OTHER


@pytest.mark.parametrize("dies", [True, False])
def test_a_batch_that_was_planned_again_is_an_error(stage, *, dies):
    """Its end may be another: the checkpoint was restored, one batch older."""
    offsets = MemoryMetadataLog()
    offsets.add(0, b"up to 3")
    life = Life(1 if dies else None, after=False)
    with suppress(DiedError):
        stage.driver(life, offsets).commit(0, "q", stage.run_tasks(0))
    offsets.purge(1)
    offsets.add(0, b"up to 5")
    with pytest.raises(MetadataLogError, match=r"Batch 0 was written with other offsets"):
        stage.driver(offsets=offsets).recover()


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("is_decided", [True, False])
def test_a_batch_whose_offsets_change_while_its_tasks_run_is_not_committed(
    stage, is_decided, records
):
    """The checkpoint was restored, and the live driver has planned the batch with another end."""
    offsets = MemoryMetadataLog()
    offsets.add(0, b"up to 3")
    late = stage.driver(offsets=offsets)
    plan = late.recover()
    written = stage.run_tasks(0) if records else []
    offsets.replace(0, b"up to 5")
    if is_decided:
        stage.run_batch(0, stage.driver(offsets=offsets), run="live")
    with pytest.raises(MetadataLogError, match="offsets of batch 0 have changed"):
        late.commit(0, "q", written, plan)
    late.abort(0, written, "q")
    assert stage.visible() == (rows(0) if is_decided else [])


def test_the_checkpoint_may_be_out_of_reach(stage):
    """Where the log is at another place, its batches are not compared with the checkpoint."""
    unreachable = passing(MemoryMetadataLog(), latest=NO_CONNECTION)
    transactions, unknown = stage.transactions, Mock(side_effect=AssertionError("not asked for"))
    checkpoint = SinkCheckpoint(unreachable, None, unknown, has_sink_log=False)
    driver = KafkaSink(stage.log, checkpoint, lambda: transactions, OPTIONS, LOG_ID)
    assert driver.recover().committed_through == -1
    driver.commit(0, "q", stage.run_tasks(0))
    assert (stage.visible(), stage.entry().query_id) == (rows(0), "q")


def test_a_log_that_was_deleted_meanwhile_is_an_error(stage):
    """A batch whose transactions are committed is not written again in silence."""
    written = stage.run_tasks(0)
    stage.driver().commit(0, "q", written)
    stage.log = MemoryMetadataLog()
    with pytest.raises(MetadataLogError, match="the log does not say so"):
        stage.driver().commit(0, "q", written)


def test_an_entry_that_lands_after_the_abort_has_lost_its_place(stage):
    """A storage may write it when its client has given up and Spark has called ``abort``."""
    late = Mock(side_effect=MetadataLogError("the log", "the storage did not answer"))
    for batch in range(2):
        written = stage.run_tasks(batch)
        with pytest.raises(MetadataLogError, match="did not answer"):
            stage.driver(log=passing(stage.log, add=late)).commit(batch, "q", written)
        stage.driver().abort(batch, written, "q")
        assert not stage.log.add(*late.call_args.args)
        assert stage.driver().recover().committed_through == batch - 1
        stage.run_batch(batch, stage.driver())
    assert stage.visible() == rows(0, 1)


def test_a_driver_that_lags_judges_no_batch_that_another_has_completed(stage):
    """Its ids were used since, and no longer show anything about it."""
    stage.die(2, stage.run_tasks(0))
    answers = [stage.log.latest()]
    lagging = passing(stage.log, latest=lambda: answers.pop() if answers else stage.log.latest())
    for batch in range(2):
        stage.run_batch(batch, stage.driver())
    for task in range(TASKS):
        stage.run_task(2, task, used_until_ms=INT64_MAX)
        stage.run_task(3, task, used_until_ms=INT64_MAX)
        stage.transactions.begin(f"{QUERY}-{task}-0-0")
    with pytest.raises(MetadataLogError, match="Another driver has written entry"):
        stage.driver(log=lagging).recover()


def test_a_batch_is_not_dropped_if_an_id_was_taken_after_its_end(stage):
    """The batch may have been committed before, or aborted by a driver that died."""
    written = stage.run_tasks(0)
    stage.die(1, written)
    assert written[0].transaction is not None
    stage.transactions.abort(written[0].transaction)
    stage.transactions.begin(f"{QUERY}-0-0-0")
    stage.time_out(written[1])
    with pytest.raises(
        TransactionLostError, match="unknown whether batch 0 was committed"
    ) as caught:
        stage.driver().recover()
    assert caught.value.may_be_committed
    assert caught.value.transactional_ids == (f"{QUERY}-0-0-0",)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_committed_batch_is_not_dropped_if_its_ids_were_taken(stage, *, is_aborted):
    """An epoch that was raised twice may be one of a transaction that was committed."""
    written = stage.run_tasks(0)
    stage.die(4, written)
    for task in range(TASKS):
        later = stage.run_task(1, task, used_until_ms=INT64_MAX)
        if is_aborted:
            stage.time_out(later)
        else:
            stage.transactions.begin(f"{QUERY}-{task}-0-0")
    with pytest.raises(TransactionLostError, match="unknown whether batch 0 was committed"):
        stage.driver().recover()
    assert stage.visible() == rows(0)


def test_offsets_that_cannot_be_read_stop_the_driver(stage):
    """Where the log is in the checkpoint: otherwise the batch could not be compared later."""
    offsets = MemoryMetadataLog()
    offsets.add(0, b"up to 3")
    unreadable = passing(offsets, get=NO_CONNECTION)
    with pytest.raises(MetadataLogError, match="no connection"):
        stage.driver(offsets=unreadable).commit(0, "q", stage.run_tasks(0))
    assert stage.log.latest() is None
    stage.driver(offsets=offsets).commit(0, "q", stage.run_tasks(0))
    with pytest.raises(MetadataLogError, match="no connection"):
        stage.driver(offsets=unreadable).recover()


def test_offsets_that_were_read_before_stop_the_driver_once_they_cannot_be_read(stage):
    """With a log elsewhere too: a batch without a digest would hide another one of its number."""
    offsets = MemoryMetadataLog()
    offsets.add(0, b"up to 3")
    transactions, unsteady = stage.transactions, passing(offsets)
    checkpoint = checkpoint_of(unsteady)
    driver = KafkaSink(stage.log, checkpoint, lambda: transactions, OPTIONS, LOG_ID)
    plan = driver.recover()
    unsteady.inner = passing(offsets, get=NO_CONNECTION)
    with pytest.raises(MetadataLogError, match="no connection"):
        driver.commit(0, "q", stage.run_tasks(0), plan)
    assert stage.log.latest() is None
    unsteady.inner = offsets
    driver.commit(0, "q", stage.run_tasks(0), plan)
    for call in ("latest", "get"):
        unsteady.inner = passing(offsets, **{call: NO_CONNECTION})
        with pytest.raises(MetadataLogError, match="no connection"):
            driver.recover()


def test_a_driver_that_lags_does_not_say_that_a_commit_was_lost(stage):
    """Another one has committed the transaction, and a later batch uses its id."""
    written, transactions = stage.run_tasks(0), stage.transactions

    def commit(transaction: Transaction) -> None:
        if stage.entry().state is BatchState.PREPARED:
            assert stage.driver().recover().committed_through == 0
            stage.run_task(1, 0, used_until_ms=INT64_MAX)
        transactions.commit(transaction)

    driver = stage.driver(transactions=passing(transactions, commit=commit))
    with pytest.raises(MetadataLogError, match="Another driver has written entry 1"):
        driver.commit(0, "q", written)
    assert stage.visible() == rows(0)


def test_a_driver_that_lags_does_not_say_that_a_dropped_batch_is_unknown(stage):
    """Another one has dropped it, and writes it again with the same ids."""
    written = stage.run_tasks(0)
    stage.die(1, written)
    stage.time_out(written[0])
    transactions = stage.transactions

    def abort(transaction: Transaction) -> None:
        if stage.entry().state is BatchState.PREPARED:
            assert stage.driver().recover().committed_through == -1
            for task in range(TASKS):
                stage.run_task(0, task, used_until_ms=INT64_MAX)
        transactions.abort(transaction)

    driver = stage.driver(transactions=passing(transactions, abort=abort))
    with pytest.raises(MetadataLogError, match="Another driver has written entry 1"):
        driver.recover()


def test_a_batch_that_its_tasks_skipped_is_not_committed_without_its_records(stage):
    """The log said that it was decided, and another driver has dropped it since."""
    written = stage.run_tasks(0, query=OTHER)
    stage.die(1, written, query=OTHER)
    driver = stage.driver(query_id=None)
    plan = driver.recover()
    assert plan.committed_through == 0
    for one in written:
        stage.time_out(one)
    assert stage.driver(query_id=OTHER).recover().committed_through == -1
    with pytest.raises(MetadataLogError, match="its tasks wrote nothing"):
        driver.commit(0, OTHER, [WriteResult()] * TASKS, plan)
    assert stage.driver(query_id=OTHER).recover().committed_through == -1


def test_a_number_that_was_purged_is_not_used_again(stage):
    """A driver stands still while another one commits more batches than the log keeps."""
    written = stage.run_tasks(0)
    now_ms = epoch_ms()

    def add(*entry: Any) -> bool:
        nonlocal now_ms
        now_ms += 60_000
        for batch in range(MAX_ENTRIES):
            stage.driver().commit(batch, "q", [])
        return bool(stage.log.add(*entry))

    driver = stage.driver(log=passing(stage.log, add=add), now_ms=lambda: now_ms)
    with pytest.raises(MetadataLogError, match=r"Another driver has written entry 1\d\d"):
        driver.commit(0, "q", written)
    assert stage.visible() == []
