"""Errors for records that are too large, in the words of Kafka's Java client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...domain.writing.errors import RecordTooLargeError

if TYPE_CHECKING:
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int32Array
    from .topic_rows import RowTopics

MAX_REQUEST_SIZE: Final = "max.request.size"


def require_sizes(
    columns: ProducerColumns,
    topics: RowTopics,
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
    oversized = columns.first_oversized(limit)
    if oversized is None:
        return
    row, size = oversized
    if size > max_size:
        larger_than = f"{max_size}, which is the value of the {setting}"
    else:
        larger_than = "the total memory buffer you have configured with the buffer.memory"
    partition = int(partitions[row])
    raise RecordTooLargeError(
        topics.names[topics.codes[row]],
        partition if partition >= 0 else None,
        columns.payload_bytes(np.array([row])),
        f"The message is {size} bytes when serialized which is larger than {larger_than} "
        "configuration.",
    )
