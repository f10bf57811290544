"""Partitioners that replace the hash of the key: round-robin, and Python functions."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa

from ...domain.errors import OptionsError
from ...domain.options.option import PREFIX
from ...domain.options.settings_table import ROUND_ROBIN
from ..named_functions import named_function

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTION: Final = f"{PREFIX}partitioner.class"


@final
class _Counter:
    """A counter that threads share."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = Lock()

    def take(self, count: int) -> int:
        """Advance by ``count``, and return the number before."""
        with self._lock:
            first = self._next
            self._next += count
            return first


_rows: Final = _Counter()


def custom_partitions(
    partitioner: str, batch: pa.RecordBatch, partitions: int
) -> pa.Array[pa.Int32Scalar]:
    """Return the partition of each row of one topic, null where the key decides.

    ``partitioner`` is ``ROUND_ROBIN``, which continues where this process stopped, or a function
    as ``module:function``. The function is called with the batch and the topic's number of
    ``partitions``; its exceptions are raised.

    :raises OptionsError: if the function cannot be loaded, or does not return an array of int32
        with a value for each row.
    """
    if partitioner == ROUND_ROBIN:
        numbers = _rows.take(batch.num_rows) + np.arange(batch.num_rows)
        return pa.array(numbers % partitions, pa.int32())
    found = _function(partitioner)(batch, partitions)
    if not isinstance(found, pa.Int32Array) or len(found) != batch.num_rows:
        problem = (
            f"Option '{_OPTION}': '{partitioner}' must return an Arrow array of int32 with "
            f"{batch.num_rows} values, one for each row, but returned {_describe(found)}"
        )
        raise OptionsError([problem])
    return found


@lru_cache
def _function(name: str) -> Callable[[pa.RecordBatch, int], object]:
    try:
        return named_function(name)
    except ValueError as error:
        raise OptionsError([f"Option '{_OPTION}': {error}"]) from None


def _describe(found: object) -> str:
    if isinstance(found, (pa.Array, pa.ChunkedArray)):
        return f"{type(found).__name__} of {found.type} with {len(found)}"
    return type(found).__name__
