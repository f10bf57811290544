"""Reading the files of a query's offset log, and the error if another query writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...domain.checkpoints.checkpoint_log import read_batch_end
from ...domain.errors import Fault, MetadataLogError

if TYPE_CHECKING:
    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints.metadata_log import MetadataLog


def end_of_batch(offset_log: MetadataLog, number: int) -> PartitionOffsets:
    """Return the end of a batch.

    :raises MetadataLogError: if its file is missing or malformed, or has several sources.
    """
    content = offset_log.get(number)
    if content is None:
        raise MetadataLogError(
            str(offset_log),
            f"Batch {number} is missing. Restore its file, or start with new logs",
        )
    try:
        return read_batch_end(content)
    except ValueError as error:
        raise MetadataLogError(str(offset_log), str(error)) from error


class ConcurrentUpdateError(MetadataLogError):
    """Another query writes to the same log."""

    condition = "CONCURRENT_STREAM_LOG_UPDATE"
    fault = Fault.USER

    def __init__(self, log: MetadataLog, number: int) -> None:
        # The words of CONCURRENT_STREAM_LOG_UPDATE in Spark's error-conditions.json.
        super().__init__(
            str(log),
            f"Concurrent update to the log. Multiple streaming jobs detected for {number}. Please "
            "make sure only one streaming job runs on a specific checkpoint location at a time",
        )


def unrelated_logs(offset_log: MetadataLog, number: int, committed: int) -> MetadataLogError:
    """Return the error for logs that are not of one query."""
    return MetadataLogError(
        str(offset_log),
        f"Batch {number} was planned last, but batch {committed} was committed last: the logs "
        "belong to different queries. Use both logs of one query",
    )
