"""The bytes that Spark's Kafka source keeps of the offsets at which a stream begins.

``KafkaSourceInitialOffsetWriter``: a byte, the version's line, and the offsets as JSON. The byte is
there because Spark 2.1.0 read, and wrote, the length of the text in it (SPARK-19517).
"""

from __future__ import annotations

from typing import Final

from .log_version import require_version
from .partition_offsets import PartitionOffsets

VERSION: Final = 1
BATCH_ID: Final = 0
"""The batch under which the offsets are kept, which is the only one of their log."""


def write_initial_offsets(offsets: PartitionOffsets) -> bytes:
    """Give the bytes of a file."""
    return b"\0" + f"v{VERSION}\n{offsets.to_json()}".encode()


def read_initial_offsets(content: bytes) -> PartitionOffsets:
    """Read the bytes of a file, those of Spark 2.1.0 included, which have no version.

    :raises ValueError: in the words of Spark, if they are of a later version or malformed.
    """
    try:
        text = content[1:].decode()
    except UnicodeDecodeError as error:
        raise ValueError("Log file was malformed: it is no text.") from error
    if not text.startswith("v"):
        return PartitionOffsets.from_json(text)
    version, newline, offsets = text.partition("\n")
    if not newline:
        raise ValueError("Log file was malformed: failed to detect the log file version line.")
    require_version(version, VERSION)
    return PartitionOffsets.from_json(offsets)
