"""Cases of data loss, with the texts of the JVM connector.

Each case has two texts: the reason in the error that fails the query, from Spark's
``kafka-error-conditions.json``, and the warning that is logged instead if ``failOnDataLoss`` is
false, from ``KafkaMicroBatchStream`` and ``KafkaOffsetReaderAdmin``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .errors import DataLossError, TopicRecreatedError, partition_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..topic_partition import TopicPartition
    from .errors import LogTruncatedError

WARNING_TAIL: Final = """
Some data may have been lost because they are not available in Kafka any more; either the
 data was aged out by Kafka or the topic may have been deleted before all the data in the
 topic was processed. If you want your streaming query to fail on such cases, set the source
 option "failOnDataLoss" to "true".
    """
"""``INSTRUCTION_FOR_FAIL_ON_DATA_LOSS_FALSE`` of Spark's ``KafkaSourceProvider``."""

SKIPPING_ADVICE: Final = (
    "To read such records, raise the limit. To fail instead, set the source option "
    "'skipOversizedRecords' to 'false'."
)

_GROUP_ID_WARNING: Final = (
    "Kafka option 'kafka.group.id' has been set on this query, it is\n"
    "not recommended to set this option. This option is unsafe to use since multiple concurrent\n"
    "queries or sources using the same group id will interfere with each other as they are part\n"
    "of the same consumer group. Restarted queries may also suffer interference from the\n"
    "previous run having the same group id. The user should have only one query per group id,\n"
    "and/or set the option 'kafka.session.timeout.ms' to be very small so that the Kafka\n"
    "consumers from the previous query are marked dead by the Kafka group coordinator before the\n"
    "restarted query starts running."
)


@final
@dataclass(frozen=True, slots=True)
class DataLoss:
    """One case: its sub-condition of ``KAFKA_DATA_LOSS``, the error's reason, the warning.

    ``advice`` ends the warning.
    """

    condition: str
    reason: str
    warning: str
    advice: str = WARNING_TAIL

    def as_error(self) -> DataLossError:
        """Return the error that fails the query if ``failOnDataLoss`` is true."""
        return DataLossError(self.condition, self.reason)

    def as_warning(self) -> str:
        """Return the warning to log if the query continues."""
        return f"{self.warning}. {self.advice}"


def earliest_offsets_not_found(partitions: Iterable[TopicPartition]) -> DataLoss:
    """Return the loss of new partitions whose earliest offset is unknown."""
    names = partition_set(partitions)
    return DataLoss(
        "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
        f"Cannot find initial offsets for partitions {names}. They may have been deleted.",
        f"Cannot find earliest offsets of {names}. Some data may have been missed",
    )


def added_partition_starts_late(partition: TopicPartition, offset: int) -> DataLoss:
    """Return the loss of a new partition whose first records are gone."""
    text = f"Added partition {partition} starts from {offset} instead of 0."
    return DataLoss(
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        text,
        f"{text} Some data may have been missed",
    )


def partitions_deleted(
    partitions: Iterable[TopicPartition], *, group_id_is_set: bool = False
) -> DataLoss:
    """Return the loss of partitions that the last batch had and that no longer exist."""
    names = partition_set(partitions)
    if group_id_is_set:
        return DataLoss(
            "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT",
            f"Partitions {names} have been deleted.\n{_GROUP_ID_WARNING}",
            f"{names} are gone. {_GROUP_ID_WARNING.replace(chr(10), chr(10) + ' ')}",
        )
    return DataLoss(
        "PARTITIONS_DELETED",
        f"Partitions {names} have been deleted.",
        f"{names} are gone. Some data may have been missed.",
    )


def partition_offset_changed(
    partition: TopicPartition, previous: int, now: int, consequence: str = ". "
) -> DataLoss:
    """Return the loss of a partition that ends before the offset to read next."""
    causes = (
        "This could be either 1) a user error that the start offset is set beyond available "
        "offset when starting query, or 2) the kafka topic-partition is deleted and re-created."
    )
    return DataLoss(
        "PARTITION_OFFSET_CHANGED",
        f"Partition {partition} offset was changed from {previous} to {now}.\n{causes}",
        f"Partition {partition}'s offset was changed from {previous} to {now}{consequence}{causes}",
    )


def legacy_partition_offset_changed(partition: TopicPartition, previous: int, now: int) -> DataLoss:
    """Return the same for the legacy source, whose warning differs."""
    return partition_offset_changed(partition, previous, now, ", some data may have been missed. ")


def start_offset_reset(partition: TopicPartition, given: int, reset_to: int) -> DataLoss:
    """Return the loss of an offset of ``startingOffsets`` that the broker does not hold."""
    return DataLoss(
        "START_OFFSET_RESET",
        f"Starting offset for {partition} was {given} but consumer reset to {reset_to}.",
        f"startingOffsets for {partition} was {given} but consumer reset to {reset_to}",
    )


def first_batch_start_unknown(
    partitions: Iterable[TopicPartition], group_id: str | None = None
) -> DataLoss:
    """Return the loss of a first batch that runs again and whose start cannot be found again.

    It started at the offsets of a consumer group, or without ``group_id`` at a timestamp. The JVM
    connector always stores the start, and has no such condition.
    """
    names = partition_set(partitions)
    start, cause = "starting timestamp", "records before its end were deleted"
    if group_id is not None:
        start = "offsets of the group"
        cause = (
            f"consumer group '{group_id}' has moved past its end or has no committed offset anymore"
        )
    text = (
        f"The first batch has to run again, but where it started in {names} is unknown: {cause}, "
        "and there was no 'metadataPath' to store the start."
    )
    return DataLoss(
        "FIRST_BATCH_START_UNKNOWN",
        f"{text} Start the query with a new checkpoint, to begin at the {start}, or once with "
        "'failOnDataLoss' set to 'false', to continue at the end of the first batch.",
        f"{text} Records before the end of the first batch are skipped",
        "To keep the starting offsets of new queries, set the option 'metadataPath'.",
    )


def offset_range_not_read(
    partition: TopicPartition, start: int, until: int, skipped_to: int, group_id: str
) -> DataLoss:
    """Return the loss of offsets from ``start`` on that were deleted before they were read.

    The error names the range to read, up to ``until``; the warning what is skipped, up to
    ``skipped_to``.
    """
    return DataLoss(
        "COULD_NOT_READ_OFFSET_RANGE",
        f"Could not read records in offset [{start}, {until}) for topic partition {partition}\n"
        f"with consumer group {group_id}.",
        f"Skip missing records in [{start}, {skipped_to}) of {partition}",
    )


def planned_offsets_not_read(partition: TopicPartition, start: int, skipped_to: int) -> DataLoss:
    """Return the loss of offsets of a split partition that are gone when their task begins.

    It is never an error: they may have been gone before the action.
    """
    text = f"Skip missing records in [{start}, {skipped_to}) of {partition}"
    return DataLoss(
        "COULD_NOT_READ_OFFSET_RANGE",
        text,
        text,
        "They were planned for this task of a batch query, and were deleted before this action or "
        "while it ran. To plan the query again, load() the data frame again.",
    )


def oversized_records_skipped(
    partition: TopicPartition, offsets: Sequence[int], count: int, limit: str
) -> DataLoss:
    """Return the loss of records beyond a limit; ``offsets`` are the first of them.

    It is never an error: ``skipOversizedRecords`` asks for it.
    """
    names = ", ".join(map(str, offsets)) + (", ..." if count > len(offsets) else "")
    plural = "s" if count > 1 else ""
    text = f"Skipped {count} record{plural} of {partition} beyond the limit {limit}, at {names}"
    return DataLoss("OVERSIZED_RECORDS_SKIPPED", text, text, SKIPPING_ADVICE)


def log_truncated(
    partition: TopicPartition, offset: int, diverges_at: int, resumed_at: int
) -> DataLoss:
    """Return the loss of records that were read up to ``offset`` and replaced by others.

    The JVM connector has no such condition; the wording follows its other conditions.
    """
    causes = (
        "This could be either 1) an unclean leader election, or 2) a leader that lost records with "
        "its disk"
    )
    text = (
        f"Partition {partition} was truncated to offset {diverges_at} after it was read up to "
        f"offset {offset}."
    )
    return DataLoss(
        "LOG_TRUNCATED",
        f"{text}\n{causes}.",
        f"{text} The records read at offsets [{diverges_at}, {offset}) are no longer in Kafka; "
        f"others are read from offset {resumed_at} on. {causes}",
    )


def log_replaced(
    error: LogTruncatedError | TopicRecreatedError, start: int = 0
) -> tuple[DataLoss, int]:
    """Return the loss of a log with other records, and where to resume: at ``start`` or later."""
    if isinstance(error, TopicRecreatedError):
        resumed_at = max(start, error.earliest)
        return partition_offset_changed(error.partition, error.offset, error.earliest), resumed_at
    resumed_at = max(start, error.diverges_at)
    return log_truncated(error.partition, error.offset, error.diverges_at, resumed_at), resumed_at
