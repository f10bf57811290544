"""Reading and changing the offsets at which a query resumes from its checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.offset_rewrite import Backup, ResumePoint, rewrite_to_undo, sign_of_life
from ...domain.errors import FactsError, Fault, MetadataLogError, NoCheckpointError, Recovery
from ...domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from ...domain.reading.errors import partition_set
from ...domain.reading.offset_limits import Specific
from .logs import parsing, purge, require_related

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.reading.offset_limits import StartingOffsets
    from ...ports.checkpoints import EditableLog, MetadataLog
    from ..reading.offsets import KafkaOffsetReader

MAX_BACKUPS: Final = 10

_ATTEMPTS: Final = 3

_CHECK: Final = (
    "Stop the query, and run the command again a minute later. If you know that it is stopped, add "
    "--query-is-stopped"
)
_STOP: Final = "Stop the query, and run the command again"


class UnusableOffsetsError(FactsError, ValueError):
    """A query cannot resume at the offsets that a command names."""

    condition = "KAFKA_UNUSABLE_OFFSETS"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = "The query cannot resume there: {reason}. {next_step}."
    reason: str
    next_step: str


class QueryIsRunningError(FactsError):
    """The query whose checkpoint a command changes may be running; ``sign`` is the evidence."""

    condition = "KAFKA_QUERY_IS_RUNNING"
    fault = Fault.USER
    recovery = Recovery.RETRIABLE
    text = "The query of this checkpoint may be running: {sign}. {next_step} ({path})"
    path: str
    sign: str
    next_step: str


@final
class OffsetCheckpoint:
    """The offset log of a query's checkpoint, and the backups of what was changed in it.

    Only ``read`` may be called while the query runs.
    """

    def __init__(
        self,
        offsets: EditableLog,
        commits: MetadataLog,
        backups: MetadataLog,
        now_ms: Callable[[], int],
    ) -> None:
        """Take the logs of the checkpoint's directories ``offsets``, ``commits`` and ``BACKUPS``.

        ``now_ms`` is in milliseconds since the epoch.
        """
        self._offsets = offsets
        self._commits = commits
        self._backups = backups
        self._now_ms = now_ms

    def read(self) -> ResumePoint:
        """Return where the query resumes.

        :raises MetadataLogError: if the storage fails, a file is malformed, or no batch is
            committed.
        """
        for _ in range(_ATTEMPTS):
            # List commits first: a batch that is committed in between counts as planned.
            done = max(self._commits.batch_ids(), default=None)
            last = max(self._offsets.batch_ids(), default=-1)
            if done is None:
                raise self._nothing_committed(last)
            require_related(self._offsets, last, done)
            committed = self._offsets.get(done)
            planned = self._offsets.get(last) if last > done else None
            if committed is not None:  # otherwise it was purged since the listing
                point = ResumePoint(done, committed, planned)
                with parsing(self._offsets):
                    point.check()
                return point
        raise MetadataLogError(
            f"{self._offsets}/{done}",
            "The file of the last committed batch is missing. Restore it from a backup",
        )

    def require_stopped(self, point: ResumePoint) -> None:
        """Look for signs that the query runs.

        :raises QueryIsRunningError: if there is one.
        """
        sign = sign_of_life(point, self._now_ms())
        if sign is not None:
            raise QueryIsRunningError(str(self._offsets), sign, _CHECK)

    def change(self, before: ResumePoint, after: ResumePoint) -> None:
        """Make the query resume at ``after`` and keep ``before`` as a backup.

        If this is killed, the query resumes at either point.

        :raises QueryIsRunningError: if the query has written to the log since ``before`` was read.
        :raises MetadataLogError: if the storage fails.
        """
        self._require_unchanged(before)
        self._add_backup(Backup(self._now_ms(), before, after))
        self._write(before, after)

    def backup(self) -> tuple[int, Backup] | None:
        """Return the last rewrite that is not undone, with its number.

        :raises MetadataLogError: if the storage fails, or a backup is malformed.
        """
        entries = {number: self._backup(number) for number in self._backups.batch_ids()}
        number = rewrite_to_undo(entries)
        return None if number is None else (number, entries[number])

    def point_of_undo(self, point: ResumePoint, backup: Backup) -> ResumePoint:
        """Return where the query resumes when a backup is restored.

        If the query has not run since, it resumes at the point before, byte for byte. Otherwise it
        resumes at the currently last committed batch, with the offsets of the backup.

        :raises ValueError: if a file is malformed.
        """
        if point.may_be(backup.before, backup.after):
            return backup.before
        return point.moved_to(backup.before.offsets)

    def undo(self, before: ResumePoint, number: int, backup: Backup) -> None:
        """Restore a backup; raises as ``change``. A second call does the same again."""
        after = self.point_of_undo(before, backup)
        if after == backup.before:
            self._require_unchanged(before)
            self._write(before, after)
        else:
            self.change(before, after)
        self._add_backup(Backup(self._now_ms(), before, after, undoes=number))

    def _write(self, before: ResumePoint, after: ResumePoint) -> None:
        committed, planned = before.batch_id, before.batch_id + 1
        is_moved = before.committed != after.committed
        if before.planned is not None:
            if is_moved:
                # Fails where files cannot be replaced, before anything is lost.
                self._offsets.replace(committed, before.committed)
            # Spark reads the last two files, and may keep no more.
            if committed > 0 and self._offsets.get(committed - 1) is None:
                self._offsets.add(committed - 1, before.committed)
            self._offsets.remove(planned)
        if is_moved:
            self._move(before, after)
        if after.planned is not None and not self._offsets.add(planned, after.planned):
            self._offsets.replace(committed, before.committed)
            raise self._changed(f"it has planned batch {planned}")
        if max(self._commits.batch_ids()) != committed:
            raise self._changed(f"it has committed batch {planned}")

    def _move(self, before: ResumePoint, after: ResumePoint) -> None:
        try:
            self._offsets.replace(before.batch_id, after.committed)
        except MetadataLogError:
            unchanged = self._offsets.get(before.batch_id) == before.committed
            if unchanged and before.planned is not None:
                self._offsets.add(before.batch_id + 1, before.planned)
            raise

    def _require_unchanged(self, before: ResumePoint) -> None:
        if self.read() != before:
            raise self._changed("it has planned or committed a batch")

    def _add_backup(self, backup: Backup) -> None:
        number = max(self._backups.batch_ids(), default=-1) + 1
        if not self._backups.add(number, backup.to_bytes()):
            raise MetadataLogError(
                f"{self._backups}/{number}",
                "Another command changes the same offsets. Wait until it has ended",
            )
        purge(number + 1 - MAX_BACKUPS, self._backups)

    def _backup(self, number: int) -> Backup:
        try:
            return Backup.from_bytes(self._backups.get(number) or b"")
        except ValueError as error:
            raise MetadataLogError(f"{self._backups}/{number}", f"Malformed: {error}") from error

    def _nothing_committed(self, last: int) -> NoCheckpointError:
        what = "No batch is committed" if last >= 0 else "There is no checkpoint of a query"
        return NoCheckpointError(
            str(self._offsets),
            f"{what}: the query starts at its option 'startingOffsets'. Check that the path is the "
            "query's checkpointLocation; to start elsewhere, change the option and delete the "
            "checkpoint",
        )

    def _changed(self, what: str) -> QueryIsRunningError:
        return QueryIsRunningError(str(self._offsets), f"{what} in the meantime", _STOP)


@final
class OffsetTargets:
    """Resolves offsets in Kafka, of the partitions that a reader has assigned."""

    def __init__(self, offset_reader: KafkaOffsetReader) -> None:
        self._offset_reader = offset_reader

    def resolve(self, limit: StartingOffsets) -> PartitionOffsets:
        """Return the offsets of a limit, without partitions that Kafka does not have.

        ``Specific`` may name some of the partitions only.

        :raises UnusableOffsetsError: if it names other partitions, or offsets that Kafka does not
            have.
        :raises NoCommittedOffsetError: if a partition has no committed offset.
        """
        named = self._named(limit) if isinstance(limit, Specific) else self._of_all(limit)
        found = self._offset_reader.resolve_open(named)
        self._check(found)
        return found

    def _of_all(self, limit: StartingOffsets) -> PartitionOffsets:
        return self._offset_reader.unresolved(limit, "start")

    def _named(self, specific: Specific) -> PartitionOffsets:
        known = self._offset_reader.partitions()
        topics = dict(specific.topics)
        unknown = specific.offsets.keys() - known
        missing = topics.keys() - {partition.topic for partition in known}
        if unknown or missing:
            names = partition_set(unknown) if unknown else ", ".join(sorted(missing))
            raise UnusableOffsetsError(
                f"the checkpoint or Kafka does not have {names}",
                "Name only partitions that 'pyspark-kafka offsets show' lists and Kafka has",
            )
        return specific.offsets.merge(
            {partition: topics[partition.topic] for partition in known if partition.topic in topics}
        )

    def _check(self, found: PartitionOffsets) -> None:
        earliest, latest = (
            self._offset_reader.resolve_open(PartitionOffsets(dict.fromkeys(found, end)))
            for end in (EARLIEST, LATEST)
        )
        for partition, offset in found.items():
            if not earliest[partition] <= offset <= latest[partition]:
                raise UnusableOffsetsError(
                    f"offset {offset} of {partition} is not in Kafka, which has offsets "
                    f"{earliest[partition]} to {latest[partition]}",
                    "Choose an offset in between, or 'earliest' or 'latest'",
                )
