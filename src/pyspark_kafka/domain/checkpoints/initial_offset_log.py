"""The file in which Spark's Kafka source stores the offsets at which a stream starts.

``KafkaSourceInitialOffsetWriter``: a byte, a line with the version, and the offsets as JSON.
Spark 2.1.0 stored the length of the text in that byte (SPARK-19517).
"""

from __future__ import annotations

from typing import Final

from ..partition_offsets import PartitionOffsets
from .checkpoint_log import require_version

VERSION: Final = 1
BATCH_ID: Final = 0
"""The only batch id of this log."""


def write_initial_offsets(offsets: PartitionOffsets) -> bytes:
    """Return the content of the file."""
    return b"\0" + f"v{VERSION}\n{offsets.to_json()}".encode()


def read_initial_offsets(content: bytes) -> PartitionOffsets:
    """Parse the content of the file; a file of Spark 2.1.0 has no version.

    :raises ValueError: with Spark's message, if it is malformed or of a later version.
    """
    try:
        text = content[1:].decode()
    except UnicodeDecodeError as error:
        raise ValueError("Log file was malformed: it is not text.") from error
    if not text.startswith("v"):
        return PartitionOffsets.from_checkpoint(text)
    version, newline, offsets = text.partition("\n")
    if not newline:
        raise ValueError("Log file was malformed: failed to detect the log file version line.")
    require_version(version, VERSION)
    return PartitionOffsets.from_checkpoint(offsets)
