"""What stands in the directories ``offsets`` and ``commits`` of a query's checkpoint.

``OffsetSeqLog``: the version's line, metadata as a line of JSON, and a line for each source in the
order of the plan. In version 2 (``OffsetMap``, with named sources) such a line has the source's
name and a colon before the offset. The offset is ``-`` where a source has none yet.

It is written before a batch runs. A batch is committed once the directory ``commits`` has a file of
its number, whatever it holds (``CommitLog``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from .json_text import is_integer
from .log_version import require_version
from .partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION: Final = 2

COMMITTED: Final = b'v1\n{"nextBatchWatermarkMs":0}'
"""What is written into the log of commits, whatever the batch."""

_NO_OFFSET: Final = "-"


@final
@dataclass(frozen=True, slots=True)
class CheckpointedBatch:
    """A batch as the offset log has it.

    ``timestamp_ms`` is when it began, in milliseconds since the epoch, if the log says so.
    ``offsets`` are the ends of the Kafka sources' parts, by the source's name; those of the JVM
    connector and of this one look the same. A source without a name is called by its position.
    """

    batch_id: int
    timestamp_ms: int | None
    offsets: Mapping[str, PartitionOffsets]

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", MappingProxyType(dict(self.offsets)))


def read_batch(batch_id: int, content: bytes) -> CheckpointedBatch:
    """Read a file of the offset log; sources that are not Kafka's are passed over.

    :raises ValueError: if it is no such file, or one of a later version.
    """
    number, metadata, sources = _read_lines(content)
    named = _with_names(sources) if number > 1 else ((str(i), s) for i, s in enumerate(sources))
    offsets = ((name, kafka_offsets(text)) for name, text in named)
    return CheckpointedBatch(
        batch_id,
        _timestamp(metadata),
        {name: found for name, found in offsets if found is not None},
    )


def write_batch_end(end: PartitionOffsets, timestamp_ms: int) -> bytes:
    """Give the bytes of a batch of one source, planned at a time (milliseconds since the epoch)."""
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": timestamp_ms, "conf": {}}
    lines = ("v1", json.dumps(metadata, separators=(",", ":")), end.to_json())
    return "\n".join(lines).encode()


def read_batch_end(content: bytes) -> PartitionOffsets:
    """Read where a batch of one source ends.

    :raises ValueError: if it is no such file, one of a later version, or one of a query that has
        other sources beside this one, or names for them.
    """
    number, _, sources = _read_lines(content)
    if number > 1 or len(sources) != 1:
        raise ValueError(f"not the log of a query with one source: v{number}, {len(sources)} in it")
    return PartitionOffsets.from_json(sources[0])


def kafka_offsets(text: str | None) -> PartitionOffsets | None:
    """Read a source's offset; ``None`` if it has none, or one that is not of Kafka's shape."""
    if text is None or text == _NO_OFFSET:
        return None
    try:
        return PartitionOffsets.from_json(text) or None
    except ValueError:
        return None


def _read_lines(content: bytes) -> tuple[int, str, list[str]]:
    """Give the version, the metadata, and the lines of the sources."""
    try:
        # Not by `splitlines`, for which there are other ends of lines than JSON escapes.
        version, metadata, *sources = content.decode().split("\n")
    except ValueError as error:
        raise ValueError("Log file was malformed: it is no offset log.") from error
    return require_version(version, VERSION), metadata, sources


def _with_names(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, offset = line.partition(":")
        yield name, offset


def _timestamp(metadata: str) -> int | None:
    """Find the batch's time: metadata is empty where there was none, and {} before Spark 2.2."""
    try:
        timestamp = json.loads(metadata or "{}").get("batchTimestampMs")
    except (AttributeError, ValueError) as error:
        raise ValueError(f"Log file was malformed: these are no metadata: {metadata}") from error
    return timestamp if is_integer(timestamp) and timestamp > 0 else None
