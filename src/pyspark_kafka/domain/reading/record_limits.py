"""Limits of a record's size, and the handling of records beyond them.

A few kilobytes of a batch decompress to gigabytes, and a header takes two bytes: without limits
any producer of a topic decides how much memory its readers need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from ..errors import MAX_NAMED
from .data_loss import oversized_records_skipped
from .errors import OversizedRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..topic_partition import TopicPartition
    from .data_loss import DataLoss

MAX_RECORD_BYTES: Final = "maxRecordBytes"
MAX_RECORD_HEADERS: Final = "maxRecordHeaders"
MAX_RECORD_HEADER_BYTES: Final = "maxRecordHeaderBytes"
"""The options, which name the limits."""

UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        MAX_RECORD_BYTES: "bytes after decompression",
        MAX_RECORD_HEADERS: "headers",
        MAX_RECORD_HEADER_BYTES: "bytes of headers",
    }
)
"""The unit that each option counts."""

DEFAULT_MAX_BYTES: Final = 64 * 1024 * 1024
"""64 times the largest batch that brokers accept by default (``message.max.bytes``)."""

DEFAULT_MAX_HEADERS: Final = 10_000
DEFAULT_MAX_HEADER_BYTES: Final = 16 * 1024 * 1024


@final
@dataclass(frozen=True, slots=True)
class RecordLimits:
    """The limits, and whether records beyond them are skipped."""

    max_bytes: int = DEFAULT_MAX_BYTES
    max_headers: int = DEFAULT_MAX_HEADERS
    max_header_bytes: int = DEFAULT_MAX_HEADER_BYTES
    skips: bool = False

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The limits in the order in which kernels take them."""
        return self.max_bytes, self.max_headers, self.max_header_bytes

    def of(self, option: str) -> int:
        """Return the limit that an option sets."""
        return dict(zip(UNITS, self.numbers, strict=True))[option]

    def exceeded(self, payload: int, headers: int, header_bytes: int) -> tuple[str, int] | None:
        """Return the option that a record exceeds and the record's number; ``None`` for none.

        ``payload`` is the bytes of the key and the value.
        """
        found = zip(UNITS, (payload + header_bytes, headers, header_bytes), strict=True)
        return next(((option, size) for option, size in found if size > self.of(option)), None)


@final
@dataclass(slots=True)
class _Skipped:
    """Records that were skipped: their number, and the first of their offsets."""

    count: int = 0
    offsets: list[int] = field(default_factory=list)


@final
class OversizedRecords:
    """Takes the records beyond a reader's limits: raises an error, or counts them."""

    __slots__ = ("_skipped", "limits")

    def __init__(self, limits: RecordLimits) -> None:
        self.limits = limits
        self._skipped: dict[tuple[TopicPartition, str], _Skipped] = {}

    def error(
        self, partition: TopicPartition, offset: int, option: str, size: int
    ) -> OversizedRecordError:
        """Return the error of a record that exceeds the limit of an option."""
        limit = self.limits.of(option)
        return OversizedRecordError(partition, offset, size, UNITS[option], option, limit)

    def skip(self, partition: TopicPartition, offset: int, option: str) -> None:
        """Count a record that is skipped."""
        skipped = self._skipped.setdefault((partition, option), _Skipped())
        skipped.count += 1
        if len(skipped.offsets) < MAX_NAMED:
            skipped.offsets.append(offset)

    def take_skipped(self) -> Iterator[DataLoss]:
        """Yield a report for each partition and limit, of the records since the last call."""
        taken, self._skipped = self._skipped, {}
        for (partition, option), skipped in taken.items():
            yield oversized_records_skipped(
                partition, skipped.offsets, skipped.count, f"'{option}' ({self.limits.of(option)})"
            )
