"""What one option is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class QueryKind(enum.Enum):
    """The two kinds of query, whether it reads or writes."""

    BATCH = "batch"
    STREAM = "stream"


BOTH: Final = frozenset(QueryKind)
BATCH_ONLY: Final = frozenset({QueryKind.BATCH})
STREAM_ONLY: Final = frozenset({QueryKind.STREAM})


@final
@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option: how it is spelled and parsed, and what the reference page says about it.

    ``field`` is the field of ``SourceOptions`` or ``SinkOptions`` that holds the value. An option
    without one is combined with others.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    values: str
    doc: str
    default_text: str = ""
    queries: frozenset[QueryKind] = BOTH
    field: str = ""

    @property
    def key(self) -> str:
        """The name in lower case, as Spark passes options to a source."""
        return self.name.lower()
