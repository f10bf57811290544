"""Rows that become a record batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ..partitioning.murmur2 import RowGroups

if TYPE_CHECKING:
    from ...domain.continuous.epochs import Output
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int64Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of columns, which become a batch; ``output`` is what the caller tracks."""

    columns: ProducerColumns
    rows: Int64Array
    payload_bytes: int
    max_bytes: int
    """An upper bound of the bytes of the encoded records, without compression."""

    output: Output | None = None

    @classmethod
    def of(cls, columns: ProducerColumns, rows: Int64Array, output: Output | None = None) -> Rows:
        """Return rows with their size."""
        payloads, bounds = columns.measure_groups(rows, np.array([len(rows)]))
        return cls(columns, rows, int(payloads[0]), int(bounds[0]), output)

    @classmethod
    def of_groups(cls, columns: ProducerColumns, groups: RowGroups) -> list[Rows]:
        """Return the rows of each group with their size."""
        payloads, bounds = columns.measure_groups(groups.rows, groups.ends)
        found = []
        start = 0
        for end, payload, bound in zip(
            groups.ends.tolist(), payloads.tolist(), bounds.tolist(), strict=True
        ):
            found.append(cls(columns, groups.rows[start:end], payload, bound))
            start = end
        return found

    def __len__(self) -> int:
        return len(self.rows)

    def first_record_bytes(self) -> int:
        """Return ``payload_bytes`` of the first row."""
        return self.columns.payload_bytes(self.rows[:1])

    def halves(self) -> tuple[Rows, Rows]:
        """Return the first and the second half."""
        half = len(self.rows) // 2
        return (
            Rows.of(self.columns, self.rows[:half], self.output),
            Rows.of(self.columns, self.rows[half:], self.output),
        )
