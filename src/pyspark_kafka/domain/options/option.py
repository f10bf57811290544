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
    """One option: how it is spelled and read, and what the reference page says of it."""

    name: str
    parse: Callable[[str], T]
    default: T
    values: str
    doc: str
    default_text: str = ""
    queries: frozenset[QueryKind] = BOTH

    @property
    def key(self) -> str:
        """The name as it is looked up: Spark hands options over in lower case."""
        return self.name.lower()
