"""One task of a continuous query: it polls, calls the function, and writes until it is stopped."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskDrained,
    TaskFailed,
    TaskLostData,
    TaskReport,
    TaskStarted,
)
from ...domain.continuous.progress import TaskProgress
from ...domain.errors import DriverLostError, PysparkKafkaError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from ...ports.clock import WAIT_S, Deadline, while_waiting
from ...ports.continuous import PolledRecords
from ..writing.sink_task import FunctionOutput
from .errors import FunctionError
from .progress import WorkMeter, timestamps_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ...domain.continuous.messages import TaskCommand, TaskId
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import RecordFunction, StreamClient, TaskChannel
    from ..values.typed_records import TypedRecords

COMMANDS_EVERY_S: Final = 0.02
"""How often a task looks for commands; records do not wait for that."""

MAX_UNACKNOWLEDGED: Final = 256
"""How many polls may wait for their acknowledgement: a batch of one record holds the memory of
buffers for thousands."""

ASSIGNED_AT_ONCE: Final = 16

DRAIN_S: Final = 30.0
"""How long a task that stops waits for acknowledgements."""


@final
@dataclass(frozen=True, slots=True)
class _Unacknowledged:
    """Records whose output is under way; timestamps in milliseconds since the epoch."""

    next_offset: int
    input_rows: int
    output_rows: int
    timestamps: NDArray[np.int64] | None


@final
@dataclass(slots=True)
class _Reading:
    """A partition that the task reads."""

    position: int
    is_fresh: bool = True
    """Whether nothing was read yet."""

    pending: deque[_Unacknowledged] = field(default_factory=deque)
    reset_to: int | None = None
    """Where reading began again after a loss of data."""


@final
class ContinuousTask:
    """Runs in one thread, and ends when its driver stops it or is gone."""

    def __init__(  # noqa: PLR0913  # what a task is made of
        self,
        task: TaskId,
        client: StreamClient,
        channel: TaskChannel,
        function: RecordFunction,
        options: SourceOptions,
        *,
        sink: SinkOptions | None,
        report_every_s: float,
        typed: TypedRecords | None = None,
        encode: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> None:
        """Take a client and a channel, which the caller closes, and what decodes and encodes."""
        self._task = task
        self._client = client
        self._channel = channel
        self._function = function
        self._options = options
        self._output = FunctionOutput(sink)
        self._encode = encode
        self._report_every_s = report_every_s
        self._typed = typed
        self._readings: dict[TopicPartition, _Reading] = {}
        self._unacknowledged = 0
        self._work = WorkMeter()
        self._changed: dict[TopicPartition, int] = {}
        self._next_commands = self._next_report = 0.0
        self._drain_deadline: Deadline | None = None
        self._commands: deque[TaskCommand] = deque()

    def run(self, host: str, process: int) -> None:
        """Run until the driver stops the task; report an error to the driver before raising it.

        :raises PysparkKafkaError: if the task fails, or loses its driver.
        """
        self._channel.send(TaskStarted(self._task, host, process))
        try:
            with while_waiting(self._show_life):
                while not self._is_drained:
                    self._step()
            # Before the report: it has all that was written then.
            is_settled = self._client.is_settled()
            self._report()
            if is_settled:
                self._channel.send(TaskDrained(self._task))
        except DriverLostError:
            raise
        except PysparkKafkaError as error:
            self._report()
            self._channel.send(
                TaskFailed(
                    self._task, error.condition, str(error), is_permanent=not error.is_retriable
                )
            )
            raise

    def _show_life(self) -> None:
        """Let the driver hear from a task that waits: for buffers, letters or acknowledgements."""
        now = time.monotonic()
        if now >= self._next_report + WAIT_S:
            self._next_report = now
            # The next look for commands raises it.
            with suppress(DriverLostError):
                self._channel.send(TaskReport(self._task, PartitionOffsets(), TaskProgress()))

    @property
    def _is_drained(self) -> bool:
        if self._drain_deadline is None:
            return False
        return self._client.is_settled() or self._drain_deadline.has_passed

    def _step(self) -> None:
        now = time.monotonic()
        self._hear(now)
        while self._commands:
            self._obey(self._commands.popleft())
        if now >= self._next_report:
            self._next_report = now + self._report_every_s
            self._report()
        try:
            polls = self._poll()
        finally:
            for loss in self._client.take_skipped():
                self._channel.send(TaskLostData(self._task, loss))
        for polled in polls:
            self._process(polled)
        self._take_acknowledged()

    def _hear(self, now: float) -> None:
        """Take the driver's commands now and then.

        :raises DriverLostError: if the driver is gone, or has ended the query.
        """
        if now >= self._next_commands:
            self._next_commands = now + COMMANDS_EVERY_S
            # The end of the channel follows the last commands.
            while received := self._channel.receive():
                self._commands += received

    def _obey(self, command: TaskCommand) -> None:
        match command:
            case AssignPartitions(offsets):
                self._assign(offsets)
            case RevokePartitions(partitions):
                self._client.revoke(partitions)
                for partition in partitions:
                    self._forget(partition)
            case StopTask():
                self._client.revoke(self._readings)
                self._drain_deadline = Deadline.after(DRAIN_S)

    def _assign(self, offsets: PartitionOffsets) -> None:
        # A few at a time: fencing the last transactions takes some milliseconds each, and the
        # driver must hear from the task meanwhile.
        for some in _in_chunks(offsets, ASSIGNED_AT_ONCE):
            for partition, offset in self._client.assign(some).items():
                self._forget(partition)
                self._readings[partition] = _Reading(offset)
                self._changed[partition] = offset
            self._report()

    def _forget(self, partition: TopicPartition) -> None:
        reading = self._readings.pop(partition, None)
        self._changed.pop(partition, None)
        if reading is not None:
            self._unacknowledged -= len(reading.pending)

    def _poll(self) -> Sequence[PolledRecords]:
        timeout = min(self._next_commands, self._next_report) - time.monotonic()
        try:
            return self._client.poll(
                max(0.0, timeout), takes_records=self._unacknowledged < MAX_UNACKNOWLEDGED
            )
        except OffsetOutOfRangeError as error:
            self._skip(error.partition, self._loss(error), self._nearest(error))
        except (LogTruncatedError, TopicRecreatedError) as error:
            self._skip(error.partition, *data_loss.log_replaced(error))
        return ()

    def _loss(self, error: OffsetOutOfRangeError) -> DataLoss:
        if error.offset > error.latest:
            return data_loss.partition_offset_changed(error.partition, error.offset, error.latest)
        until = error.earliest
        group = self._options.group_id or "none"
        return data_loss.offset_range_not_read(error.partition, error.offset, until, until, group)

    def _nearest(self, error: OffsetOutOfRangeError) -> int:
        """Return the offset to continue from.

        A log that ends before the first offset to read was probably created again while no task
        read it: all of its records are new. One that ends there later was truncated.
        """
        reading = self._readings.get(error.partition)
        is_truncated = error.offset > error.latest and reading is not None and not reading.is_fresh
        return error.latest if is_truncated else error.earliest

    def _skip(self, partition: TopicPartition, loss: DataLoss, offset: int) -> None:
        """Continue where the broker has records, unless data loss fails the query."""
        reading = self._readings.get(partition)
        if reading is None:
            return
        # A second loss at the same place would be followed by a third.
        if self._options.fail_on_data_loss or reading.reset_to == offset == reading.position:
            raise loss.as_error()
        self._channel.send(TaskLostData(self._task, loss))
        self._assign(PartitionOffsets({partition: offset}))
        self._readings[partition].reset_to = offset

    def _process(self, polled: PolledRecords) -> None:
        reading = self._readings.get(polled.partition)
        if reading is None:
            self._client.write(polled, ())
            return
        outputs: Sequence[pa.RecordBatch] = ()
        if polled.records is not None:
            outputs = [
                output
                for records in self._decoded(polled.partition, polled.records)
                for output in self._call(polled, records, reading.position)
            ]
            if self._encode is not None:
                outputs = [self._encode(batch) for batch in outputs]
            # A function may take so long that the query has ended meanwhile.
            self._hear(time.monotonic())
        self._client.write(polled, outputs)
        reading.position, reading.is_fresh = polled.next_offset, False
        reading.pending.append(_unacknowledged(polled, outputs))
        self._unacknowledged += 1

    def _decoded(
        self, partition: TopicPartition, records: pa.RecordBatch
    ) -> Sequence[pa.RecordBatch]:
        """Return records with typed values; letters are acknowledged before any output is sent."""
        if self._typed is None:
            return [records]
        decoded = [*self._typed.decode(partition, records)]
        self._typed.flush()
        return decoded

    def _call(
        self, polled: PolledRecords, records: pa.RecordBatch, start: int
    ) -> Sequence[pa.RecordBatch]:
        try:
            returned = self._function(records)
            return self._output.batches(returned)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # SystemExit, and panics of extensions in Rust
            reason = f"{type(error).__name__}: {error}".rstrip(".")
            raise FunctionError(polled.partition, start, polled.next_offset, reason) from error

    def _take_acknowledged(self) -> None:
        for partition, offset in self._client.acknowledged().items():
            self._acknowledge(partition, offset)

    def _acknowledge(self, partition: TopicPartition, offset: int) -> None:
        reading = self._readings.get(partition)
        if reading is None:
            return
        self._changed[partition] = offset
        while reading.pending and reading.pending[0].next_offset <= offset:
            done = reading.pending.popleft()
            self._unacknowledged -= 1
            self._work.acknowledged(done.input_rows, done.output_rows, done.timestamps)

    def _report(self) -> None:
        self._take_acknowledged()
        if self._typed is not None:
            self._work.failed(self._typed.report_failures())
        # An empty report shows that the task lives.
        offsets, self._changed = PartitionOffsets(self._changed), {}
        self._channel.send(TaskReport(self._task, offsets, self._work.take()))


def _in_chunks(offsets: PartitionOffsets, size: int) -> Iterator[PartitionOffsets]:
    items = iter(offsets.items())
    while chunk := PartitionOffsets(islice(items, size)):
        yield chunk


def _unacknowledged(polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> _Unacknowledged:
    records = polled.records
    if records is None:
        return _Unacknowledged(polled.next_offset, 0, 0, None)
    output_rows = sum(batch.num_rows for batch in outputs)
    return _Unacknowledged(
        polled.next_offset, records.num_rows, output_rows, timestamps_of(records)
    )
