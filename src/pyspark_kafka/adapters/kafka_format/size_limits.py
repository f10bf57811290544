"""Errors for records that are too large, in the words of Kafka's Java client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...domain.errors import RecordTooLargeError

if TYPE_CHECKING:
    from ..kernels.arrays import Int32Array, Int64Array
    from .producer_columns import ProducerColumns

MAX_REQUEST_SIZE: Final = "max.request.size"


def require_sizes(
    topic: str,
    columns: ProducerColumns,
    rows: Int64Array,
    partitions: Int32Array,
    *,
    max_size: int,
    buffer_memory: int | None = None,
    setting: str = MAX_REQUEST_SIZE,
) -> None:
    """Check rows as ``KafkaProducer.ensureValidRecordSize`` does; ``setting`` sets ``max_size``.

    :raises RecordTooLargeError: for the first row that is too large.
    """
    limit = max_size if buffer_memory is None else min(max_size, buffer_memory)
    oversized = columns.first_oversized(rows, limit)
    if oversized is None:
        return
    place, size = oversized
    if size > max_size:
        larger_than = f"{max_size}, which is the value of the {setting}"
    else:
        larger_than = "the total memory buffer you have configured with the buffer.memory"
    partition = int(partitions[place])
    raise RecordTooLargeError(
        topic,
        partition if partition >= 0 else None,
        columns.payload_bytes(rows[place : place + 1]),
        f"The message is {size} bytes when serialized which is larger than {larger_than} "
        "configuration.",
    )
