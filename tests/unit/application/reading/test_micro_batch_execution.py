import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.reading import micro_batch_execution
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end, write_batch_end
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..conftest import Kit, tp

Batch = tuple[OffsetRange, ...]


class CrashError(RuntimeError):
    """The crash of a driver."""


class Driver:
    """A driver's process: started again with the same logs, it knows nothing else."""

    def __init__(self, kit: Kit, options: dict[str, str] | None = None) -> None:
        self._kit = kit
        self._options = options or {}
        self.initial, self.offsets, self.commits = (MemoryMetadataLog() for _ in range(3))
        self.seen: list[tuple[int, list[tuple[int, int]]]] = []
        self.stored: dict[int, Batch] = {}
        self.fails = 0
        self.start()

    def start(self, retain: int = 100) -> None:
        container = self._kit.container({"startingOffsets": "latest", **self._options})
        container.metadata_log.override(self.initial)
        self.source = container.kafka_source(tuple)
        self.execution: MicroBatchExecution[Batch] = MicroBatchExecution(
            self.source, self.offsets, self.commits, self._process, retain
        )

    def _process(self, batch: Batch, number: int) -> None:
        self.seen.append((number, [(one.from_offset, one.until_offset) for one in batch]))
        self.stored[number] = batch
        if self.fails:
            self.fails -= 1
            raise CrashError

    def crash(self) -> None:
        self.fails = 1
        with pytest.raises(CrashError):
            self.execution.run_batch()

    def run_all(self) -> None:
        while self.execution.run_batch():
            pass

    def go_down(self, crash: str | None) -> None:
        """Run a batch up to a step, or to its end, and restart."""
        log = {"plan": self.offsets, "commit": self.commits}.get(crash or "")
        self.fails = 1 if crash == "process" else 0
        with pytest.MonkeyPatch.context() as patch, suppress(CrashError):
            if log is not None:
                patch.setattr(log, "add", _crash)
            self.execution.run_batch()
        self.fails = 0
        self.start()


@pytest.fixture
def driver(kit):
    """Return a driver that has run the first batch of an empty topic."""
    made = Driver(kit)
    assert made.execution.run_batch()
    return made


def test_the_first_batch_runs_even_if_it_is_empty(driver):
    assert driver.seen == [(0, [])]
    assert not driver.execution.run_batch()
    assert driver.offsets.batch_ids() == driver.commits.batch_ids() == [0]


def test_the_logs_are_those_of_spark(kit, driver):
    kit.produce(2)
    driver.crash()
    version, notes, end = (driver.offsets.get(1) or b"").decode().split("\n")
    assert (version, end) == ("v1", '{"t":{"0":2,"1":0}}')
    assert re.match(r'\{"batchWatermarkMs":0,"batchTimestampMs":1\d{12},', notes)
    assert driver.commits.latest() == (0, b'v1\n{"nextBatchWatermarkMs":0}')


def test_each_batch_goes_on_where_the_last_one_ended(kit, driver):
    for _ in range(2):
        kit.produce(3)
        assert driver.execution.run_batch()
    assert driver.seen[1:] == [(1, [(0, 3)]), (2, [(3, 6)])]


def test_batches_go_on_though_the_clock_is_set_back(kit, driver, monkeypatch):
    """The time in a log is a note: offsets alone decide what the next batch reads."""
    for now_ms in (3_600_000, 0):
        monkeypatch.setattr(micro_batch_execution, "epoch_ms", lambda now_ms=now_ms: now_ms)
        kit.produce(3)
        driver.go_down(None)
    assert driver.seen[1:] == [(1, [(0, 3)]), (2, [(3, 6)])]
    assert b'"batchTimestampMs":0,' in (driver.offsets.get(2) or b"")


def test_a_batch_that_fails_is_run_again_by_the_next_call(kit, driver):
    kit.produce(3)
    driver.crash()
    kit.produce(3)
    assert driver.execution.run_batch()
    assert driver.execution.run_batch()
    assert driver.seen[1:] == [(1, [(0, 3)]), (1, [(0, 3)]), (2, [(3, 6)])]


def test_a_planned_batch_is_run_again_after_a_restart(kit, driver):
    kit.produce(3)
    driver.crash()
    kit.produce(3)
    driver.start()
    driver.run_all()
    assert driver.seen[1:] == [(1, [(0, 3)]), (1, [(0, 3)]), (2, [(3, 6)])]


def test_the_first_batch_is_run_again_from_the_initial_offsets(kit):
    driver = Driver(kit, {"maxOffsetsPerTrigger": "2"})
    assert driver.source.initial_partition_offsets == {tp(0): 0, tp(1): 0}
    kit.produce(3)
    driver.crash()
    driver.start()
    driver.run_all()
    assert driver.seen == [(0, [(0, 2)]), (0, [(0, 2)]), (1, [(2, 3)])]


def test_a_commit_that_does_not_reach_the_log_repeats_the_batch(kit, driver):
    kit.produce(3)
    driver.go_down("commit")
    assert driver.execution.run_batch()
    assert driver.seen[1:] == [(1, [(0, 3)]), (1, [(0, 3)])]


def test_a_plan_that_does_not_reach_the_log_is_recreated(kit, driver, monkeypatch):
    kit.produce(3)
    with monkeypatch.context() as patch:
        patch.setattr(driver.offsets, "add", _crash)
        with pytest.raises(CrashError):
            driver.execution.run_batch()
    kit.produce(3)
    assert driver.execution.run_batch()
    assert driver.seen[1:] == [(1, [(0, 6)])]


@pytest.mark.parametrize("name", ["offsets", "commits"])
def test_a_write_that_fails_and_was_done_all_the_same(kit, driver, monkeypatch, name):
    """A storage whose answer is lost is asked what it has, and is not taken for another driver."""
    kit.produce(3)
    log: MemoryMetadataLog = getattr(driver, name)
    add = log.add

    def add_and_fail(number: int, content: bytes) -> bool:
        add(number, content)
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(log, "add", add_and_fail)
        with pytest.raises(CrashError):
            driver.execution.run_batch()
    kit.produce(3)
    driver.run_all()
    assert driver.seen[1:] == [(1, [(0, 3)]), (2, [(3, 6)])]


def test_a_restart_after_a_commit_goes_on(kit, driver):
    kit.produce(3)
    assert driver.execution.run_batch()
    driver.start()
    assert not driver.execution.run_batch()
    kit.produce(3)
    assert driver.execution.run_batch()
    assert driver.seen[1:] == [(1, [(0, 3)]), (2, [(3, 6)])]


def test_limits_are_kept_after_a_restart(kit):
    driver = Driver(kit, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "4"})
    kit.produce(10)
    for _ in range(3):
        assert driver.execution.run_batch()
        driver.start()
    assert driver.seen == [(0, [(0, 4)]), (1, [(4, 8)]), (2, [(8, 10)])]


def test_a_query_over_what_is_available_comes_to_its_end(kit):
    driver = Driver(kit, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"})
    kit.produce(15)
    driver.source.prepare_for_trigger_available_now()
    while driver.execution.run_batch():
        kit.produce(5)
    assert driver.seen == [(0, [(0, 5)]), (1, [(5, 10)]), (2, [(10, 15)])]


def test_old_batches_are_forgotten(kit, driver):
    driver.start(retain=1)
    for _ in range(3):
        kit.produce(1)
        assert driver.execution.run_batch()
    assert driver.offsets.batch_ids() == driver.commits.batch_ids() == [3]
    kit.produce(1)
    driver.crash()
    driver.start(retain=1)
    assert driver.execution.run_batch()
    assert driver.seen[-2:] == [(4, [(3, 4)])] * 2
    with pytest.raises(ValueError, match="batches_to_retain must be at least 1, got 0"):
        driver.start(retain=0)


@pytest.mark.parametrize("name", ["offsets", "commits"])
def test_two_drivers_do_not_share_logs(kit, driver, name):
    kit.produce(3)
    log: MemoryMetadataLog = getattr(driver, name)
    log.add(1, b"another driver's")
    for _ in range(2):
        problem = rf"Multiple streaming jobs detected for 1\..*\({log}\)"
        with pytest.raises(MetadataLogError, match=problem):
            driver.execution.run_batch()


@pytest.mark.parametrize(
    ("number", "content", "problem"),
    [
        (1, b"v3\n{}\n{}", "maximum supported log version is v2"),
        (1, b"v1\n{}\n{}\n{}", "expected a query with one source, got v1 with 2"),
        (1, b"v1\n{}\n-", "Expected e.g."),
        (1, b"\xff", "it is not an offset log"),
        (3, b"v1\n{}\n{}", "Batch 3 was planned last, but batch 0 was committed last"),
    ],
)
def test_logs_that_do_not_fit_are_refused(driver, number, content, problem):
    driver.offsets.add(number, content)
    driver.start()
    with pytest.raises(MetadataLogError, match=problem) as caught:
        driver.execution.run_batch()
    assert str(driver.offsets) in str(caught.value)


def test_a_batch_whose_start_is_gone_is_refused(driver):
    driver.offsets.add(1, write_batch_end(PartitionOffsets({tp(0): 1, tp(1): 0}), 0))
    driver.offsets.purge(1)
    driver.start()
    with pytest.raises(MetadataLogError, match=rf"Batch 0 is missing.*\({driver.offsets}\)"):
        driver.execution.run_batch()


def test_a_query_without_partitions_waits(kit):
    driver = Driver(kit, {"subscribePattern": "^later$", "startingOffsets": "earliest"})
    assert not driver.execution.run_batch()
    kit.cluster.create_topic("later")
    kit.produce(2, topic="later")
    assert driver.execution.run_batch()
    end = read_batch_end(driver.offsets.get(0) or b"")
    assert end == {tp(0, "later"): 2}


CRASHES = st.sampled_from(["plan", "process", "commit", None])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), CRASHES)))
def test_wherever_a_driver_goes_down_each_offset_is_done_once(events):
    kit = Kit()
    kit.cluster.create_topic("t", 2)
    driver = Driver(kit, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "3"})
    for count, number, crash in events:
        kit.produce(count, number)
        driver.go_down(crash)
    driver.run_all()
    stored = [one for _, batch in sorted(driver.stored.items()) for one in batch]
    for partition in (tp(0), tp(1)):
        ranges = [one for one in stored if one.partition == partition]
        done = [offset for one in ranges for offset in range(one.from_offset, one.until_offset)]
        produced = sum(count for count, number, _ in events if number == partition.partition)
        assert done == list(range(produced))


def _crash(_number: int, _content: bytes) -> bool:
    raise CrashError
