"""Writing records that cannot be decoded to another topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ..domain.values.dead_letter import TaskIdentity


@final
@dataclass(frozen=True, slots=True)
class BadRecords:
    """Records whose ``column``, ``key`` or ``value``, cannot be decoded.

    ``records`` has the columns ``key``, ``value``, ``topic``, ``partition``, ``offset``,
    ``timestamp`` and ``headers`` as they were read, and perhaps others. For each record,
    ``reasons`` has its ``FailureReason``, and ``errors`` a string that describes what is wrong,
    without the record's bytes. ``decoder`` is the full name of the class that decodes the column.
    """

    records: pa.RecordBatch
    column: str
    decoder: str
    reasons: npt.NDArray[np.uint8]
    errors: pa.Array[Any]
    task: TaskIdentity


class DeadLetters(ABC):
    """Writes bad records to a dead-letter topic, at least once.

    A letter has the record's key, value and timestamp, and its headers, followed by
    ``domain.values.dead_letter.HEADERS``. After an error it must be closed. ``write`` and ``flush``
    raise errors that name the dead-letter topic:

    :raises PysparkKafkaError: as ``RecordWriter``.
    """

    @abstractmethod
    def write(self, bad: BadRecords) -> None:
        """Send a letter for each record; may return before they are acknowledged.

        :raises DeadLetterLoopError: if a record is of the dead-letter topic; nothing is sent.
        """

    @abstractmethod
    def flush(self) -> int:
        """Wait until all letters are acknowledged; return how many since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Close connections; letters that were not flushed may be lost.

        A second call does nothing.
        """
