"""The ports of continuous queries: tasks, a channel between these and the driver, a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import pyarrow as pa

    from ..domain.continuous.messages import TaskCommand, TaskId, TaskMessage
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.reading.data_loss import DataLoss
    from ..domain.topic_partition import TopicPartition

DRIVER_TIMEOUT_S: Final = 15.0
"""How long a task that hears nothing from its driver continues."""


@final
@dataclass(frozen=True, slots=True)
class ChannelAddress:
    """Where and how tasks connect; pickled to executors. ``key`` authenticates both sides."""

    kind: str
    location: str
    key: bytes = field(repr=False)
    options: str = field(default="{}", repr=False)


class EpochChannel(ABC):
    """The driver's end, for all tasks of a query. Used by one thread."""

    @property
    @abstractmethod
    def address(self) -> ChannelAddress:
        """The address that tasks connect to."""

    @abstractmethod
    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        """Return messages in the order of each task as soon as there are any, or none in time.

        Each message is returned once. What is malformed, or not authenticated, is dropped.
        """

    @abstractmethod
    def send(self, task: TaskId, command: TaskCommand) -> None:
        """Send a command to a task that has sent a message; lost if the task is gone.

        Commands reach a task in the order in which they are sent, each once.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect all tasks, which then end. A second call does nothing."""


class TaskChannel(ABC):
    """A task's end. Used by one thread. Both methods return at once.

    :raises DriverLostError: if the driver has closed its end, or nothing was heard from it for
        ``DRIVER_TIMEOUT_S``. It is not raised while the driver's process lives and can be reached.
    """

    @abstractmethod
    def send(self, message: TaskMessage) -> None:
        """Send a message to the driver."""

    @abstractmethod
    def receive(self) -> Sequence[TaskCommand]:
        """Return the commands that have come since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Send what was not sent yet, for a second at most, and disconnect."""


RecordFunction: TypeAlias = (
    "Callable[[pa.RecordBatch], pa.RecordBatch | Sequence[pa.RecordBatch] | None]"
)
"""Takes records of one partition in order, and returns the rows to write, if any."""

FunctionFactory: TypeAlias = Callable[[], AbstractContextManager[RecordFunction]]
"""Returns a context that a task enters before its first record and leaves at its end."""


@final
@dataclass(frozen=True, slots=True)
class PolledRecords:
    """Records of one partition, and the offset after everything that the poll passed.

    ``records`` is ``None`` where only offsets without visible records were passed. Otherwise it has
    the schema ``record_schema(projection)`` and at least one row, and belongs to the caller.
    """

    partition: TopicPartition
    records: pa.RecordBatch | None
    next_offset: int


class StreamClient(ABC):
    """Reads and writes for one task of a continuous query, in the thread that calls.

    Every ``PolledRecords`` is passed to ``write`` once, in the order in which it was polled,
    before the next ``poll``. Latency comes first: records are requested before they exist, and what
    is written is sent at once.

    With ``deliveryGuarantee=exactly-once``, the offsets of the input are committed to the group
    ``group_id`` in the transaction of the output, each partition under its own transactional id.
    Every method but ``close`` may raise:

    :raises BrokerUnreachableError: if no broker answers in time, or a partition's leader does not.
    :raises AuthenticationError: if a login is refused; the login is not retried.
    :raises TlsError: if a TLS handshake fails.
    :raises AuthorizationError: if the user may not read, write or commit.
    :raises KafkaRequestError: if a broker refuses a request for another reason, and retries do not
        help.
    :raises ProducerFencedError: if another task took over a partition's transactional id.
    :raises QueryReplacedError: if another query has sealed the group.
    :raises TransactionLostError: if brokers forgot a transactional id that was unused for long.
    """

    @abstractmethod
    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Read further partitions, and return the offsets at which they are read.

        The offsets of partitions that were assigned already are changed: their records that were
        polled and not written yet are forgotten, and ``acknowledged`` leaves out what was written,
        which is acknowledged or committed first. New partitions do not wait for the outputs of
        others. Without transactions these are ``offsets``. With them, earlier writers are fenced,
        and then the group is read: a seal is an error, and the offset is the committed one where
        that is greater. For partitions that were assigned already it is the given one, which is
        committed: the group's may be of a deleted topic of the same name.

        :raises RecordDeliveryError: if a record that was written cannot be delivered.
        """

    @abstractmethod
    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading partitions; unknown ones are ignored.

        What was written of them is still delivered, and ``acknowledged`` still returns them.
        """

    @abstractmethod
    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        """Return as soon as there are records or something was acknowledged, or in time.

        Without ``takes_records`` it returns none, and what was fetched waits: for callers that have
        too much that is not acknowledged.

        Meanwhile sends, receives, retries and follows leaders. A partition that does not exist, or
        has no leader, returns nothing: another one may come.

        :raises OffsetOutOfRangeError: if the broker does not hold the next offset of a partition,
            and it is not the end of its log.
        :raises LogTruncatedError: if the log has other records than were polled.
        :raises TopicRecreatedError: if the topic was deleted and created again.
        :raises CorruptBatchError: if a record batch is corrupt.
        :raises MalformedTimestampError: if ``timestamp`` is projected and overflows.
        :raises OversizedRecordError: if a record exceeds a limit of the options, and
            ``skipOversizedRecords`` is false.
        :raises RecordDeliveryError: if a record that was written cannot be delivered.
        """

    def take_skipped(self) -> Iterable[DataLoss]:
        """Return reports of the records that were skipped since the last call."""
        return ()

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write the output of polled records, which may be empty, to the sink's topic.

        The columns are the same as in ``RecordWriter.write``. Waits while buffers are full.

        :raises NullTopicError: if a record has no topic.
        :raises InvalidRecordError: if a row cannot become a record.
        :raises UnknownTopicError: if a record's topic does not exist.
        :raises RecordDeliveryError: if a record cannot be delivered.
        """

    @abstractmethod
    def acknowledged(self) -> Mapping[TopicPartition, int]:
        """Return the offsets below which all outputs are acknowledged, or else committed.

        Only partitions whose offset has changed since the last call are included.
        """

    @abstractmethod
    def is_settled(self) -> bool:
        """Return whether all that was written is acknowledged, or else committed.

        So are, with transactions, the offsets of partitions that were assigned again. What was not
        acknowledged before the call is included in the next ``acknowledged``.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads; a second call does nothing.

        Afterwards ``poll`` returns nothing. What is not acknowledged may arrive or not; an open
        transaction is aborted, by the next ``assign`` of its partition at the latest.
        """


class TaskRunner(ABC):
    """Runs one job at a time, whose tasks run at once, until they are stopped."""

    @abstractmethod
    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        """Start a job: ``run(slot, attempt)`` for each slot below ``tasks``, as a task each.

        Returns at once. ``run`` may be pickled to another process. An attempt is a text that is
        unique within its slot; a task may be run again under another.

        :raises RuntimeError: if the last job is running.
        """

    def available_slots(self) -> int | None:
        """Return how many tasks can run at once, or ``None`` if that is not known."""
        return None

    def runs_failed_tasks_again(self) -> bool:
        """Return whether a task that fails may be run again within the job."""
        return False

    @abstractmethod
    def is_running(self) -> bool:
        """Return whether the job has not ended; true until all of its tasks have."""

    @abstractmethod
    def failure(self) -> str | None:
        """Return why the last job failed, on one line; ``None`` if it did not.

        What happens after ``cancel`` is no failure.
        """

    @abstractmethod
    def cancel(self, timeout_s: float) -> None:
        """End the job, and wait for that; what its tasks did not finish is lost.

        The job is running after that if it did not end in time.
        """
