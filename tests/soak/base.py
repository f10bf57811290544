"""What all soaks share: rounds that are lines of JSON, and what is open for a block."""

import json
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Self


@dataclass(slots=True)
class JsonLine:
    """What was done in a round, and what came of it."""

    def to_json(self) -> str:
        """Return a line for a log."""
        return json.dumps(asdict(self))


class Opened(ABC):
    """What is opened when a block begins, and closed when it ends, or if opening fails."""

    def __init__(self) -> None:
        self._closing = ExitStack()

    @abstractmethod
    def _open(self, closing: ExitStack) -> None:
        """Open all that is needed, and let the stack close it."""

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            self._open(closing)
            self._closing = closing.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.__exit__(kind, error, traceback)
