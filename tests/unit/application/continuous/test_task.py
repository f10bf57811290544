"""A task of a continuous query, with a client and a driver that follow a script."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, final
from unittest.mock import Mock

import pyarrow as pa
import pytest
from dependency_injector import providers

from pyspark_kafka.application.continuous import task as continuous_task
from pyspark_kafka.application.continuous.errors import FunctionError
from pyspark_kafka.application.continuous.task import ContinuousTask
from pyspark_kafka.application.values.typed_records import TypedRecords
from pyspark_kafka.domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskCommand,
    TaskDrained,
    TaskFailed,
    TaskId,
    TaskLostData,
    TaskMessage,
    TaskReport,
    TaskStarted,
)
from pyspark_kafka.domain.errors import BrokerUnreachableError, DriverLostError, PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import data_loss
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    DataLossError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from pyspark_kafka.domain.reading.records import WITHOUT_HEADERS
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason, MalformedValueError
from pyspark_kafka.domain.writing.errors import RecordTooLargeError
from pyspark_kafka.ports.clock import still_waiting
from pyspark_kafka.ports.continuous import PolledRecords, RecordFunction, StreamClient, TaskChannel
from pyspark_kafka.ports.letters import DeadLetters
from pyspark_kafka.ports.record_schema import record_schema
from tests.line_values import VALUE_FORMAT

from ..conftest import Kit, tp

TASK = TaskId(2, 1, "a")
COMMON = {"kafka.bootstrap.servers": "memory", "client": "memory"}

Step = list[PolledRecords] | PysparkKafkaError


class ScriptedDriver(TaskChannel):
    """Sends one list of commands after the other, and keeps the messages of the task."""

    def __init__(self, *commands: Sequence[TaskCommand]) -> None:
        self.commands = deque(commands)
        self.messages: list[TaskMessage] = []

    def send(self, message: TaskMessage) -> None:
        self.messages.append(message)

    def receive(self) -> Sequence[TaskCommand]:
        return self.commands.popleft() if self.commands else ()

    def close(self) -> None:
        """Do nothing."""

    @property
    def losses(self) -> list[DataLoss]:
        return [sent.loss for sent in self.messages if isinstance(sent, TaskLostData)]

    @property
    def reports(self) -> list[TaskReport]:
        return [sent for sent in self.messages if isinstance(sent, TaskReport)]


class ScriptedClient(StreamClient):
    """Polls what the script says, and then lets the driver stop the task."""

    def __init__(self, driver: ScriptedDriver, *steps: Step) -> None:
        self._driver = driver
        self._steps = deque(steps)
        self.assigned: list[PartitionOffsets] = []
        self.revoked: list[set[TopicPartition]] = []
        self.written: list[tuple[PolledRecords, Sequence[pa.RecordBatch]]] = []
        self.took: list[bool] = []
        self.acknowledges = True
        self.settles = True
        self.acknowledges_late = False
        self.when_full: Callable[[], None] = self.acknowledge
        self._acknowledged: dict[TopicPartition, int] = {}
        self._is_stopping = False
        self.skipped: list[DataLoss] = []

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self.assigned.append(offsets)
        return offsets

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.revoked.append(set(partitions))

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        assert timeout_s >= 0
        self.took.append(takes_records)
        if not self.assigned or self._driver.commands or self._is_stopping:
            return ()
        if not takes_records:
            self.when_full()
            return ()
        if not self._steps:
            self._driver.commands.append([StopTask()])
            self._is_stopping = True
            return ()
        step = self._steps.popleft()
        if isinstance(step, PysparkKafkaError):
            # What was written before is acknowledged meanwhile.
            self.acknowledge()
            raise step
        return step

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.written.append((polled, outputs))
        if self.acknowledges:
            self.acknowledge()

    def take_skipped(self) -> Sequence[DataLoss]:
        taken, self.skipped = self.skipped, []
        return taken

    def acknowledge(self) -> None:
        self._acknowledged = {polled.partition: polled.next_offset for polled, _ in self.written}

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        acknowledged, self._acknowledged = self._acknowledged, {}
        return acknowledged

    def is_settled(self) -> bool:
        if self.acknowledges_late:
            self.acknowledge()
        return self.settles

    def close(self) -> None:
        """Do nothing."""


def keep(records: pa.RecordBatch) -> pa.RecordBatch:
    return records


def run(
    driver: ScriptedDriver,
    client: ScriptedClient,
    function: RecordFunction = keep,
    report_every_s: float = 60,
    options: Mapping[str, str] | None = None,
    typed: TypedRecords | None = None,
) -> None:
    given = {"subscribe": "t", "failOnDataLoss": "false", **COMMON, **(options or {})}
    sink = {"topic": "out", "checkpointLocation": "/c", **COMMON}
    ContinuousTask(
        TASK,
        client,
        driver,
        function,
        parse_source_options(given, QueryKind.STREAM),
        sink=parse_sink_options(sink, QueryKind.STREAM),
        report_every_s=report_every_s,
        typed=typed,
    ).run("host", 7)


def reading(*steps: Step, start: int = 0) -> tuple[ScriptedDriver, ScriptedClient]:
    """Return a driver that assigns the first partition, and a client for it."""
    driver = ScriptedDriver([AssignPartitions(PartitionOffsets({tp(0): start}))])
    return driver, ScriptedClient(driver, *steps)


def polled(start: int, end: int, partition: int = 0) -> PolledRecords:
    values = pa.array([b"v"] * (end - start), pa.binary())
    return PolledRecords(tp(partition), pa.RecordBatch.from_pydict({"value": values}), end)


def out_of_range(offset: int, earliest: int, latest: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(tp(0), offset, earliest=earliest, latest=latest)


def test_a_task_says_that_it_starts_what_it_wrote_and_that_it_has_stopped():
    """A stretch without visible records moves the offset on, and nothing is made of it."""
    driver, client = reading([polled(3, 5)], [PolledRecords(tp(0), None, 9)], start=3)
    run(driver, client)
    assert driver.messages[0] == TaskStarted(TASK, "host", 7)
    assert driver.messages[-1] == TaskDrained(TASK)
    *_, last = driver.reports
    assert last.offsets == {tp(0): 9}
    assert (last.progress.input_rows, last.progress.output_rows) == (2, 2)
    assert [outputs for _, outputs in client.written] == [[polled(3, 5).records], ()]
    assert client.revoked == [{tp(0)}]


def test_partitions_are_assigned_sixteen_at_a_time_with_a_report_after_each():
    """Fencing the writers of many partitions takes long, and the driver hears from the task."""
    offsets = PartitionOffsets({tp(number): number for number in range(40)})
    driver = ScriptedDriver([AssignPartitions(offsets)])
    client = ScriptedClient(driver)
    run(driver, client)
    assert [len(some) for some in client.assigned] == [16, 16, 8]
    assert [len(report.offsets) for report in driver.reports] == [16, 16, 8, 0, 0]
    merged = PartitionOffsets()
    for some in client.assigned:
        merged = merged.merge(some)
    assert merged == offsets


def test_a_task_reports_as_often_as_it_was_told_to():
    driver, client = reading([polled(0, 2)], [polled(2, 3)])
    run(driver, client, report_every_s=0)
    changed = [report.offsets for report in driver.reports if report.offsets]
    assert changed == [{tp(0): 0}, {tp(0): 2}, {tp(0): 3}]
    assert sum(report.progress.input_rows for report in driver.reports) == 3


def test_what_was_polled_of_a_revoked_partition_is_dropped():
    revoked = RevokePartitions(PartitionOffsets({tp(1): 0}))
    driver = ScriptedDriver([AssignPartitions(PartitionOffsets({tp(0): 0, tp(1): 0}))], [revoked])
    client = ScriptedClient(driver, [polled(0, 2, partition=1), polled(0, 1)])
    run(driver, client)
    assert [(each.partition, len(outputs)) for each, outputs in client.written] == [
        (tp(1), 0),
        (tp(0), 1),
    ]
    assert client.revoked == [{tp(1)}, {tp(0)}]
    assert driver.reports[-1].offsets == {tp(0): 1}
    assert driver.reports[-1].progress.input_rows == 1


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_task_takes_no_records_while_too_much_is_not_acknowledged(monkeypatch, is_revoked):
    monkeypatch.setattr(continuous_task, "MAX_UNACKNOWLEDGED", 2)
    driver, client = reading([polled(0, 1)], [polled(1, 2)], [polled(2, 3)])
    client.acknowledges = False
    if is_revoked:
        revoke = RevokePartitions(PartitionOffsets({tp(0): 0}))
        client.when_full = partial(driver.commands.append, [revoke])
    run(driver, client)
    assert [each.next_offset for each, _ in client.written] == [1, 2, 3]
    assert client.took[:3] == [True, True, False]
    assert client.took[-1]


def test_the_last_report_has_all_that_a_settled_client_has_written():
    """Acknowledgements may come between the last poll and the question whether all are there."""
    driver, client = reading([polled(0, 2)])
    client.acknowledges, client.acknowledges_late = False, True
    run(driver, client)
    *_, last, drained = driver.messages
    assert drained == TaskDrained(TASK)
    assert last == driver.reports[-1]
    assert last.offsets == {tp(0): 2}
    assert last.progress.input_rows == 2


def test_a_failed_task_reports_what_is_acknowledged_until_then():
    driver, client = reading([polled(0, 2)], CorruptBatchError(tp(0), 2, "torn"))
    client.acknowledges = False
    with pytest.raises(CorruptBatchError):
        run(driver, client)
    assert driver.reports[-1].offsets == {tp(0): 2}


def test_only_what_is_acknowledged_counts_as_work():
    driver, client = reading([polled(0, 2)])
    client.acknowledges = False
    run(driver, client)
    assert driver.reports[-1].progress.input_rows == 0


def test_a_driver_hears_from_a_task_that_waits_for_a_client(monkeypatch):
    """A client that waits for room in its buffers says so once a second."""
    driver, client = reading([polled(0, 2)])
    clock = count(0.0, 0.02)
    monkeypatch.setattr(continuous_task, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    write = client.write

    def write_slowly(*given: Any) -> None:
        before = len(driver.messages)
        for _ in range(1_000):
            still_waiting()
        assert 10 <= len(driver.messages) - before <= 20
        write(*given)

    monkeypatch.setattr(client, "write", write_slowly)
    run(driver, client, report_every_s=0.5)
    assert set(map(type, driver.messages[1:-1])) == {TaskReport}
    still_waiting()
    assert driver.messages[-1] == TaskDrained(TASK)


def test_a_task_does_not_wait_for_ever_for_acknowledgements(monkeypatch):
    monkeypatch.setattr(continuous_task, "DRAIN_S", 0.05)
    driver, client = reading()
    client.settles = False
    run(driver, client)
    assert TaskDrained(TASK) not in driver.messages


@pytest.mark.parametrize(("options", "group"), [({}, "none"), ({"kafka.group.id": "g"}, "g")])
def test_offsets_that_are_deleted_are_skipped(options, group):
    driver, client = reading(out_of_range(2, 5, 9), [polled(5, 6)], start=2)
    run(driver, client, options=options)
    assert driver.losses == [data_loss.offset_range_not_read(tp(0), 2, 5, 5, group)]
    assert client.assigned == [{tp(0): 2}, {tp(0): 5}]
    assert driver.reports[-1].offsets == {tp(0): 6}


def test_a_log_that_was_truncated_is_read_on_at_its_end():
    """Records that a task has read and the broker has lost are not read again."""
    driver, client = reading([polled(0, 5)], out_of_range(5, 0, 3))
    run(driver, client)
    assert driver.losses == [data_loss.partition_offset_changed(tp(0), 5, 3)]
    assert client.assigned[1:] == [{tp(0): 3}]


def test_a_log_that_ends_before_the_first_offset_is_read_from_its_beginning():
    """The topic was probably created again while no task read it: all its records are new."""
    driver, client = reading(out_of_range(5, 1, 3), start=5)
    run(driver, client)
    assert driver.losses == [data_loss.partition_offset_changed(tp(0), 5, 3)]
    assert client.assigned[1:] == [{tp(0): 1}]


def test_a_log_with_other_records_is_read_again_from_where_they_differ():
    driver, client = reading([polled(0, 5)], LogTruncatedError(tp(0), 5, 3), [polled(3, 4)])
    run(driver, client)
    assert driver.losses == [data_loss.log_truncated(tp(0), 5, 3, 3)]
    assert client.assigned[1:] == [{tp(0): 3}]
    assert driver.reports[-1].offsets == {tp(0): 4}


def test_a_topic_that_was_created_again_is_read_from_its_beginning():
    recreated = TopicRecreatedError(tp(0), 5, earliest=1)
    driver, client = reading([polled(0, 5)], recreated)
    run(driver, client)
    assert driver.losses == [data_loss.partition_offset_changed(tp(0), 5, 1)]
    assert client.assigned[1:] == [{tp(0): 1}]


@pytest.mark.parametrize("fails", [True, False])
def test_skipped_records_are_reported(fails):
    loss = data_loss.oversized_records_skipped(tp(0), [1], 1, "'maxRecordBytes' (9)")
    driver, client = reading(BrokerUnreachableError("b:1", 1) if fails else [polled(0, 3)])
    client.skipped = [loss]
    with pytest.raises(BrokerUnreachableError) if fails else nullcontext():
        run(driver, client)
    assert driver.losses == [loss]


def test_a_loss_fails_the_query_unless_the_options_say_otherwise():
    """A restart would meet the loss again, so the failure is permanent."""
    driver, client = reading(out_of_range(2, 5, 9), start=2)
    loss = data_loss.offset_range_not_read(tp(0), 2, 5, 5, "none").as_error()
    with pytest.raises(DataLossError) as raised:
        run(driver, client, options={"failOnDataLoss": "true"})
    assert str(raised.value) == str(loss)
    failed = TaskFailed(TASK, loss.condition, str(loss), is_permanent=True)
    assert driver.messages[-1] == failed
    assert isinstance(driver.messages[-2], TaskReport)
    assert driver.losses == []


def test_a_second_loss_at_the_same_offset_fails_the_query():
    driver, client = reading(out_of_range(2, 5, 9), out_of_range(5, 5, 9), start=2)
    with pytest.raises(DataLossError):
        run(driver, client)
    assert len(driver.losses) == 1


@pytest.mark.parametrize(
    "further", [[out_of_range(5, 8, 9)], [[polled(5, 7)], out_of_range(7, 0, 5)]]
)
def test_a_loss_elsewhere_or_after_progress_is_another_one(further):
    driver, client = reading(out_of_range(2, 5, 9), *further, start=2)
    run(driver, client)
    assert len(driver.losses) == 2


def test_a_loss_in_a_partition_that_was_revoked_is_ignored():
    """Another task reads the partition, and finds the loss itself."""
    driver, client = reading(out_of_range(2, 5, 9))
    driver.commands.append([RevokePartitions(PartitionOffsets({tp(0): 0}))])
    run(driver, client, options={"failOnDataLoss": "true"})
    assert driver.losses == []
    assert driver.messages[-1] == TaskDrained(TASK)


def test_a_restart_may_help_against_a_broker_that_is_away():
    error = BrokerUnreachableError("b:9092", 1)
    driver, client = reading(error)
    with pytest.raises(BrokerUnreachableError):
        run(driver, client)
    failed = TaskFailed(TASK, error.condition, str(error), is_permanent=False)
    assert driver.messages[-1] == failed


def test_a_refused_login_is_not_tried_again():
    """A restart would log in again, and brokers' operators lock accounts after a few attempts."""
    driver, client = reading(AuthenticationError("b:9092", "PLAIN", "ada", "wrong password"))
    with pytest.raises(AuthenticationError):
        run(driver, client)
    assert isinstance(driver.messages[-1], TaskFailed)
    assert driver.messages[-1].is_permanent


def test_a_task_without_a_driver_ends_without_a_message():
    driver, client = reading(DriverLostError("it was silent"))
    with pytest.raises(DriverLostError):
        run(driver, client)
    assert not any(isinstance(message, TaskFailed) for message in driver.messages)


def test_an_error_of_the_function_names_the_partition_and_the_offsets():
    def fail(_: pa.RecordBatch) -> None:
        raise ValueError("no number.")

    driver, client = reading([polled(0, 2)])
    with pytest.raises(FunctionError, match=r"\[0, 2\): ValueError: no number\.") as raised:
        run(driver, client, fail)
    assert raised.value.partition == tp(0)
    assert ".." not in str(raised.value)
    assert isinstance(driver.messages[-1], TaskFailed)
    assert driver.messages[-1].is_permanent


@final
class PanicError(BaseException):
    """As PyO3 raises it."""


@pytest.mark.parametrize("error", [SystemExit(2), PanicError("index out of bounds")])
def test_a_function_that_raises_no_exception_has_failed_as_well(error):
    driver, client = reading([polled(0, 2)])
    with pytest.raises(FunctionError, match=type(error).__name__):
        run(driver, client, Mock(side_effect=error))
    assert isinstance(driver.messages[-1], TaskFailed)
    assert driver.messages[-1].is_permanent


def test_an_interrupt_is_no_failure_of_the_function():
    driver, client = reading([polled(0, 2)])
    with pytest.raises(KeyboardInterrupt):
        run(driver, client, Mock(side_effect=KeyboardInterrupt))
    assert not any(isinstance(message, TaskFailed) for message in driver.messages)


def typed_records(kit: Kit, letters: DeadLetters | None = None, **options: str) -> TypedRecords:
    """Return what decodes lines with a number and a text."""
    given = {"valueFormat": "line", "valueSchema": "id bigint, user string", **options}
    container = kit.container(given)
    container.value_format.override(providers.Callable(lambda _name: VALUE_FORMAT))
    container.dead_letters.override(providers.Callable(lambda _topic: letters))
    return container.typed_records(container.value_schemas().resolve())


def lines(*values: bytes) -> PolledRecords:
    offsets = pa.array([*range(len(values))], pa.int64())
    given: dict[str, pa.Array[Any]] = {"value": pa.array(values, pa.binary()), "offset": offsets}
    schema = record_schema(WITHOUT_HEADERS)
    columns = [given.get(field.name, pa.nulls(len(values), field.type)) for field in schema]
    return PolledRecords(tp(0), pa.RecordBatch.from_arrays(columns, schema=schema), len(values))


def test_a_function_gets_typed_values(kit):
    driver, client = reading([lines(b"1,ada", b"x,eve", b"2,bob")], [lines(b"x,eve")])
    seen: list[object] = []

    def function(records: pa.RecordBatch) -> None:
        seen.append(records.column("value").to_pylist())

    run(driver, client, function, typed=typed_records(kit, mode="DROPMALFORMED"))
    assert seen == [[{"id": 1, "user": "ada"}, {"id": 2, "user": "bob"}]]
    assert [outputs for _, outputs in client.written] == [[], []]
    *_, last = driver.reports
    assert last.progress.bad_records == BadRecordStats({FailureReason.TYPE_MISMATCH: 2})
    assert last.progress.input_rows == 4


def test_letters_are_acknowledged_before_the_output_is_sent(kit, monkeypatch):
    """An offset is acknowledged, or committed with the output, when its letters are in Kafka."""
    driver, client = reading([lines(b"1,ada", b"x,eve")], [lines(b"2,bob")], [lines(b"x,joe")])
    calls = Mock(**{"letters.flush.return_value": 1, "output.side_effect": client.write})
    typed = typed_records(kit, letters=calls.letters, deadLetterTopic="bad")
    monkeypatch.setattr(client, "write", calls.output)
    run(driver, client, lambda _: None, typed=typed)
    letter = ["letters.write", "letters.flush", "output"]
    assert [name for name, _, _ in calls.mock_calls] == [*letter, "output", *letter]
    written = [call.args[0].records["offset"] for call in calls.letters.write.call_args_list]
    assert [offsets.to_pylist() for offsets in written] == [[1], [0]]
    *_, last = driver.reports
    expected = BadRecordStats({FailureReason.TYPE_MISMATCH: 2}, dead_letters=2)
    assert last.progress.bad_records == expected
    assert kit.events.named("records_failed") == ((expected, tp(0), 1),)


def test_a_letter_that_is_not_delivered_fails_the_task(kit):
    refused = Mock()
    refused.flush.side_effect = RecordTooLargeError("bad", 0, 9, "it is too large")
    driver, client = reading([lines(b"1,ada", b"x,eve")])
    typed = typed_records(kit, letters=refused, deadLetterTopic="bad")
    with pytest.raises(RecordTooLargeError):
        run(driver, client, lambda _: None, typed=typed)
    assert client.written == []
    assert all(offset == 0 for report in driver.reports for offset in report.offsets.values())


def test_a_bad_record_ends_a_task_for_good(kit):
    """The function is not called with the records of its poll: another attempt would be, too."""
    driver, client = reading([lines(b"1,ada", b"x,eve")])
    seen: list[object] = []
    with pytest.raises(MalformedValueError, match="offset 1 of t-0"):
        run(driver, client, seen.append, typed=typed_records(kit))
    assert seen == []
    failed = driver.messages[-1]
    assert isinstance(failed, TaskFailed)
    assert (failed.condition, failed.is_permanent) == ("KAFKA_MALFORMED_VALUE", True)
