"""The files in the directories ``offsets`` and ``commits`` of a query's checkpoint.

Spark's ``OffsetSeqLog``: a line with the version, a line with metadata as JSON, and a line for each
source in the order of the plan. In version 2 (``OffsetMap``, with named sources) such a line is the
source's name, a colon and the offset. The offset is ``-`` for a source that has none yet.

Spark writes the file before a batch runs. A batch is committed once the directory ``commits`` has a
file with its id; the content does not matter (``CommitLog``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from ..json_text import is_integer, read_json
from ..partition_offsets import PartitionOffsets
from ..text import excerpt

VERSION: Final = 2

COMMITTED: Final = b'v1\n{"nextBatchWatermarkMs":0}'
"""The content of every file of the commit log."""

CONTINUOUS_GROUP: Final = "pyspark_kafka.continuous.groupId"
"""The setting in the file of an exactly-once continuous query's epoch with its group."""

_NO_OFFSET: Final = "-"

_MAX_SOURCES: Final = 10_000

_MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last one of ``datetime``."""

_VERSION: Final = re.compile("[0-9]{1,9}")


@final
@dataclass(frozen=True, slots=True)
class CheckpointedBatch:
    """A batch of the offset log.

    ``timestamp_ms`` is its start in milliseconds since the epoch, ``None`` if not logged.
    ``offsets`` are the end offsets of the Kafka sources, of the JVM connector and of this library
    alike, by the source's name or else its position.
    """

    batch_id: int
    timestamp_ms: int | None
    offsets: Mapping[str, PartitionOffsets]

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", MappingProxyType(dict(self.offsets)))


def read_batch(batch_id: int, content: bytes) -> CheckpointedBatch:
    """Parse a file of the offset log; sources that are not Kafka's are ignored.

    :raises ValueError: if it is malformed, or of a later version.
    """
    number, metadata, sources = _read_lines(content)
    named = _with_names(sources) if number > 1 else {str(i): s for i, s in enumerate(sources)}
    offsets = ((name, kafka_offsets(text)) for name, text in named.items())
    return CheckpointedBatch(
        batch_id,
        _timestamp(metadata),
        {name: found for name, found in offsets if found is not None},
    )


def source_lines(content: bytes) -> list[str]:
    """Return the ends of all sources as they are logged; raises as ``read_batch``."""
    return _read_lines(content)[2]


def with_offsets(content: bytes, offsets: Mapping[str, PartitionOffsets]) -> bytes:
    """Return the file of a batch with other end offsets of some sources.

    ``offsets`` are by the names that ``read_batch`` returns. All other lines stay as they are.

    :raises ValueError: if the file is malformed, or of a later version.
    """
    number, _, sources = _read_lines(content)
    names = list(_with_names(sources)) if number > 1 else [str(i) for i in range(len(sources))]
    for position, name in enumerate(names):
        if name in offsets:
            start = f"{name}:" if number > 1 else ""
            sources[position] = f"{start}{offsets[name].to_json()}"
    return "\n".join((*content.decode().split("\n", 2)[:2], *sources)).encode()


def write_batch_end(
    end: PartitionOffsets, timestamp_ms: int, conf: Mapping[str, str] | None = None
) -> bytes:
    """Return the file of a batch of one source, planned at ``timestamp_ms`` since the epoch.

    Spark reads from ``conf`` only the settings that it knows (``OffsetSeqMetadata``).
    """
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": timestamp_ms, "conf": dict(conf or {})}
    lines = ("v1", json.dumps(metadata, separators=(",", ":")), end.to_json())
    return "\n".join(lines).encode()


def read_batch_end(content: bytes) -> PartitionOffsets:
    """Parse the end of a batch of one source.

    :raises ValueError: if it is malformed, of a later version, or of a query with several or named
        sources.
    """
    number, _, sources = _read_lines(content)
    if number > 1 or len(sources) != 1:
        raise ValueError(f"expected a query with one source, got v{number} with {len(sources)}")
    return PartitionOffsets.from_checkpoint(sources[0])


def read_batch_conf(content: bytes) -> Mapping[str, str]:
    """Return the settings in the file of a batch, without those that are not texts.

    :raises ValueError: if it is malformed, or of a later version.
    """
    _, metadata, _ = _read_lines(content)
    conf = _metadata(metadata).get("conf")
    entries = conf.items() if isinstance(conf, dict) else ()
    return {name: value for name, value in entries if isinstance(value, str)}


def require_version(line: str, supported: int) -> int:
    """Return the number of a version line such as ``v1``.

    :raises ValueError: with the message of Spark's ``MetadataVersionUtil``, if it is not a version
        or is above ``supported``.
    """
    number = line[1:]
    # Java's `parseInt`: a version with more digits is invalid.
    if not line.startswith("v") or not _VERSION.fullmatch(number) or int(number) == 0:
        raise ValueError(
            f"Log file was malformed: failed to read correct log version from {excerpt(line)}."
        )
    if int(number) > supported:
        raise ValueError(
            f"UnsupportedLogVersion: maximum supported log version is v{supported}, but "
            f"encountered {line}. The log file was produced by a newer version of Spark and "
            "cannot be read by this version. Please upgrade."
        )
    return int(number)


def kafka_offsets(text: str | None) -> PartitionOffsets | None:
    """Parse a source's offset; ``None`` if there is none, or the source is not Kafka's."""
    if text is None or text == _NO_OFFSET:
        return None
    try:
        return PartitionOffsets.from_checkpoint(text) or None
    except ValueError:
        return None


def _read_lines(content: bytes) -> tuple[int, str, list[str]]:
    """Return the version, the metadata, and a line for each source."""
    try:
        # Not `splitlines`: it also splits at characters that JSON does not escape.
        version, metadata, *sources = content.decode().split("\n", _MAX_SOURCES + 2)
    except ValueError as error:
        raise ValueError("Log file was malformed: it is not an offset log.") from error
    if len(sources) > _MAX_SOURCES:
        raise ValueError(f"Log file was malformed: it has more than {_MAX_SOURCES:,} sources.")
    return require_version(version, VERSION), metadata, sources


def _with_names(lines: list[str]) -> dict[str, str]:
    named = {name: offset for name, _, offset in (line.partition(":") for line in lines)}
    if len(named) != len(lines):
        raise ValueError("Log file was malformed: two sources have the same name.")
    return named


def _timestamp(metadata: str) -> int | None:
    """Return the batch's timestamp; metadata is empty if there was none, {} before Spark 2.2."""
    timestamp: Any = _metadata(metadata).get("batchTimestampMs")
    return timestamp if is_integer(timestamp) and 0 < timestamp <= _MAX_TIMESTAMP_MS else None


def _metadata(text: str) -> dict[str, Any]:
    try:
        metadata = read_json(text or "{}")
    except ValueError as error:
        raise ValueError(f"Log file was malformed: invalid metadata: {excerpt(text)}") from error
    if not isinstance(metadata, dict):
        raise ValueError(f"Log file was malformed: invalid metadata: {excerpt(text)}")  # noqa: TRY004
    return metadata
