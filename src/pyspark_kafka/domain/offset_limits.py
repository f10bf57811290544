"""Where a query starts and where a batch query ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .partition_offsets import PartitionOffsets


@final
@dataclass(frozen=True, slots=True)
class Earliest:
    """The first offset that the broker holds, in every partition."""


@final
@dataclass(frozen=True, slots=True)
class Latest:
    """The offset after the last record, in every partition."""


@final
@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition, where -1 stands for latest and -2 for earliest."""

    offsets: PartitionOffsets


OffsetLimit = Earliest | Latest | Specific
StartingOffsets = OffsetLimit
EndingOffsets = Latest | Specific


def parse_offset_limit(text: str) -> OffsetLimit:
    """Read ``earliest``, ``latest`` (in any case) or offsets as JSON.

    :raises ValueError: in the words of Spark's ``JsonUtils``, if it is none of these.
    """
    trimmed = text.strip()
    match trimmed.lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
        case _:
            return Specific(PartitionOffsets.from_json(trimmed))
