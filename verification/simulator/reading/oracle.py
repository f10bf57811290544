"""The promises of a reader, and how they are checked."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pyspark_kafka.adapters.call_deadline import MAX_ATTEMPT_S
from pyspark_kafka.adapters.kafka_python.record_reader import KafkaPythonRecordReader
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    PysparkKafkaError,
    UnknownTopicError,
)
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.outcome import ViolationError
from .logs import Partition, Truth
from .world import DEAD_HOST, World

ALL_VERSIONS: Final = 1 << 30
_US: Final = 1_000

_SLACK_MS: Final = 500
_FEW_CLOSED: Final = 3
"""How often a starting broker may close a connection before its first answer."""

LOSSES: Final = (OffsetOutOfRangeError, LogTruncatedError, TopicRecreatedError)


@dataclass(slots=True, eq=False)
class Stretch:
    """A part of a partition that a reader reads without a break."""

    name: TopicPartition
    start: int
    position: int = 0
    """The offset after what was handed out."""

    source: Partition | None = None
    """Whose records were handed out: a name may belong to several topics, one after another."""

    low: int = 0
    high: int = ALL_VERSIONS
    """The versions of the log that have all of them."""

    has_epochs: bool = False
    """Whether records were handed out by which a leader recognizes another log."""

    handed: int = 0
    resumes_at: tuple[int, ...] | None = None
    """Where to continue after a reported loss."""


@dataclass(slots=True)
class Oracle:
    """Compares what is handed out and reported with the logs."""

    world: World
    _known: dict[tuple[int, bytes], tuple[Partition, Truth]] = field(default_factory=dict)
    _indexed: dict[Partition, int] = field(default_factory=dict)

    # Records

    def check_records(self, stretch: Stretch, records: pa.RecordBatch | None, end: int) -> None:
        """Check what was handed out, and that everything before ``end`` was."""
        if records is not None:
            for offset, time, value in _rows(records):
                self._check_record(stretch, offset, time, value)
        self.check_passed(stretch, end)

    def check_passed(self, stretch: Stretch, end: int) -> None:
        """Check that no record was skipped up to an offset."""
        if end < stretch.position:
            raise ViolationError("goes back", f"{stretch.name}: {end} after {stretch.position}")
        self._require_complete(stretch, end)
        stretch.position = end

    def _check_record(self, stretch: Stretch, offset: int, time: int, value: bytes) -> None:
        name = stretch.name
        partition, truth = self._truth(name, offset, time, value)
        if offset < stretch.position:
            raise ViolationError(
                "handed out again", f"{name}: {offset}, when {stretch.position} is next"
            )
        committed = self.world.settings.is_committed
        if committed and truth.producer >= 0 and not truth.is_committed:
            raise ViolationError("a record that is not committed", f"{name}: {offset}")
        if stretch.source not in (None, partition):
            raise ViolationError("records of two topics of one name", f"{name}: {offset}")
        stretch.source = partition
        low, high = max(stretch.low, truth.born), min(stretch.high, truth.died)
        if low >= high:
            if stretch.has_epochs:
                raise ViolationError(
                    "a truncated log is not noticed", f"{name}: {offset} is of another log"
                )
            low, high = truth.born, truth.died
            stretch.start = stretch.position
        stretch.low, stretch.high = low, high
        self._require_complete(stretch, offset)
        stretch.has_epochs = not truth.batch.is_legacy
        stretch.position, stretch.handed = offset + 1, stretch.handed + 1

    def _require_complete(self, stretch: Stretch, end: int) -> None:
        start = stretch.position
        if start >= end:
            return
        skipped: list[int] = []
        for partition in self._sources(stretch):
            for version in self._versions(stretch, partition):
                committed = self.world.settings.is_committed
                truths = partition.visible(start, end, version, committed=committed)
                skipped = [each.offset for each in truths]
                if not skipped:
                    return
        if skipped:
            raise ViolationError(
                "records are skipped", f"{stretch.name}: {skipped[:3]} of [{start}, {end})"
            )

    def _sources(self, stretch: Stretch) -> Iterable[Partition]:
        if stretch.source is not None:
            return (stretch.source,)
        return self.world.cluster.incarnations.get(stretch.name, ())

    @staticmethod
    def _versions(stretch: Stretch, partition: Partition) -> Iterable[int]:
        """Return the versions of a log that may be read: records without epochs do not say."""
        end = partition.version + 1
        return range(stretch.low, min(stretch.high, end) if stretch.has_epochs else end)

    def _truth(
        self, name: TopicPartition, offset: int, time: int, value: bytes
    ) -> tuple[Partition, Truth]:
        found = self._known.get((time, value)) or self._indexed_truth(name, time, value)
        if found is None or found[1].offset != offset or found[0].name != name:
            raise ViolationError("no such record", f"{name}: {offset}, time {time}, {value[:20]!r}")
        return found

    def _indexed_truth(
        self, name: TopicPartition, time: int, value: bytes
    ) -> tuple[Partition, Truth] | None:
        for partition in self.world.cluster.incarnations.get(name, ()):
            begun = self._indexed.get(partition, 0)
            for truth in partition.truths[begun:]:
                self._known[truth.timestamp, truth.value] = partition, truth
            self._indexed[partition] = len(partition.truths)
        return self._known.get((time, value))

    def check_held(self, reader: KafkaPythonRecordReader) -> None:
        """Check that no more is held of ranges that are read later than a request may name."""
        settings = self.world.settings
        largest = max(settings.range_bytes, self.world.cluster.max_batch_bytes)
        held = [len(each.data.records) for each in reader._brokers.expected._held.values()]
        if len(held) > settings.together or max(held, default=0) > largest:
            raise ViolationError("memory is not bounded", f"{held} bytes of later ranges are held")

    # Errors

    def check_error(self, error: Exception, stretch: Stretch | None) -> None:
        """Check that what an error says is true."""
        if not isinstance(error, PysparkKafkaError):
            raise ViolationError("crash", repr(error)) from error
        if isinstance(error, LOSSES):
            self._check_loss(error, stretch)
        elif not self._is_true(error):
            raise ViolationError(f"untrue: {type(error).__name__}", str(error))
        elif self.world.is_peaceful and not self._has_cause(error):
            raise ViolationError("fails without a cause", f"{type(error).__name__}: {error}")
        elif self.world.is_overdue and not isinstance(error, CorruptBatchError | UnknownTopicError):
            text = f"{type(error).__name__} long after faults ended: {error}"
            raise ViolationError("stuck", text)

    @staticmethod
    def _has_cause(error: PysparkKafkaError) -> bool:
        """Return whether an error may be raised while all brokers answer."""
        is_of_dead_address = isinstance(error, BrokerUnreachableError) and DEAD_HOST in str(error)
        return is_of_dead_address or isinstance(error, CorruptBatchError)

    def _is_true(self, error: PysparkKafkaError) -> bool:
        world = self.world
        if isinstance(error, CorruptBatchError):
            return any(error.partition in each.damaged_of for each in world.brokers)
        if isinstance(error, UnknownTopicError):
            return any(len(each) > 1 for each in world.cluster.incarnations.values())
        client = world.network.client
        if isinstance(error, BrokerUnreachableError) and "may expect TLS" in str(error):
            return client.unanswered >= _FEW_CLOSED
        if isinstance(error, AuthenticationError):
            client.has_reported = True
            return client.was_refused
        return True

    def _check_loss(
        self,
        error: OffsetOutOfRangeError | LogTruncatedError | TopicRecreatedError,
        stretch: Stretch | None,
    ) -> None:
        if stretch is None:
            raise ViolationError("untrue: a loss", f"of a partition that is not read: {error}")
        self.check_passed(stretch, error.offset)
        if isinstance(error, OffsetOutOfRangeError):
            self._check_range(error, stretch)
        elif isinstance(error, LogTruncatedError):
            self._check_truncation(error, stretch)
        else:
            self._check_recreation(error, stretch)

    def _check_range(self, error: OffsetOutOfRangeError, stretch: Stretch) -> None:
        said = error.earliest, error.latest
        if said not in self.world.ends_told.get(error.partition, ()):
            raise ViolationError("untrue: the ends of a log", str(error))
        if error.earliest <= error.offset < error.latest:
            raise ViolationError("untrue: out of range", str(error))
        if error.offset < error.earliest:
            stretch.resumes_at = (error.earliest,)
        else:
            self._require_shorter(error)
            stretch.resumes_at = said

    def _require_shorter(self, error: OffsetOutOfRangeError) -> None:
        """Check that a log became shorter, or is another one."""
        names = self.world.cluster.incarnations[error.partition]
        if len(names) == 1 and not names[0].divergences:
            raise ViolationError("untrue: beyond the end", str(error))

    def _check_truncation(self, error: LogTruncatedError, stretch: Stretch) -> None:
        ends = {
            min(partition.divergences[version:later])
            for partition in self._sources(stretch)
            for version in self._versions(stretch, partition)
            for later in range(version + 1, partition.version + 1)
        }
        if error.diverges_at not in ends or error.diverges_at > error.offset:
            raise ViolationError("untrue: truncated", f"{error} It was truncated to {sorted(ends)}")
        stretch.resumes_at = (error.diverges_at,)

    def _check_recreation(self, error: TopicRecreatedError, stretch: Stretch) -> None:
        incarnations = self.world.cluster.incarnations[error.partition]
        if len(incarnations) == 1 or stretch.source is incarnations[-1]:
            raise ViolationError("untrue: created again", str(error))
        stretch.resumes_at = (error.earliest,)

    def check_resumed(self, stretch: Stretch, offset: int, least: int = 0) -> None:
        """Check that no more is skipped than was reported; reading continues at least there."""
        starts = [max(least, each) for each in stretch.resumes_at or ()]
        if stretch.resumes_at is not None and offset not in starts:
            raise ViolationError(
                "skips more than it reports",
                f"{stretch.name} at {offset}, not {stretch.resumes_at}",
            )

    # Time

    def check_duration(self, took_ms: int, timeout_s: float) -> None:
        """Check that the driver can hear from a task."""
        world = self.world
        world.longest_ms = max(world.longest_ms, took_ms)
        if took_ms > 1_000 * (timeout_s + MAX_ATTEMPT_S) + _SLACK_MS:
            raise ViolationError("a poll takes too long", f"{took_ms} ms")

    # The end

    def is_complete(self, name: TopicPartition, stretch: Stretch | None, progress: int) -> bool:
        """Return whether everything of a partition was read."""
        partition = self.world.cluster.partition(name)
        if partition is None:
            return True
        if stretch is None or stretch.source not in (None, partition):
            return False
        return progress == self.world.last(name)

    def require_no_sockets(self, when: str) -> None:
        if self.world.network.sockets:
            raise ViolationError("sockets stay open", f"{len(self.world.network.sockets)} {when}")
        self.world.network.begin_client()


def _rows(records: pa.RecordBatch) -> Iterable[tuple[int, int, bytes]]:
    times: list[Any] = records.column("timestamp").view(pa.int64()).to_pylist()
    offsets: list[Any] = records.column("offset").to_pylist()
    values: list[Any] = records.column("value").to_pylist()
    in_ms = [time // _US if time >= 0 else -1 for time in times]
    return zip(offsets, in_ms, values, strict=True)
