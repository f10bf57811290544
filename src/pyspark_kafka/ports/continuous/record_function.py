"""The function of a continuous query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

RecordFunction: TypeAlias = (
    "Callable[[pa.RecordBatch], pa.RecordBatch | Sequence[pa.RecordBatch] | None]"
)
"""Takes records of one partition in order, and returns the rows to write, if any."""

FunctionFactory: TypeAlias = Callable[[], AbstractContextManager[RecordFunction]]
"""Returns a context that a task enters before its first record and leaves at its end."""
