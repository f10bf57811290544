"""The columns of records to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
"""All columns, in the order of the JVM connector's schema."""


@final
@dataclass(frozen=True, slots=True)
class Projection:
    """The columns to read, in order."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("a projection needs at least one column")
        unknown = [column for column in self.columns if column not in COLUMNS]
        if unknown:
            raise ValueError(f"not a column of a Kafka record: {', '.join(unknown)}")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("duplicate column")

    def __contains__(self, column: str) -> bool:
        return column in self.columns


ALL_COLUMNS: Final = Projection(COLUMNS)
WITHOUT_HEADERS: Final = Projection(COLUMNS[:-1])
