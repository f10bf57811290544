"""The parts that all soaks share: rounds that are lines of JSON, and resources of a block."""

import json
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from .numbers import SoakError


class Opened(ABC):
    """A resource that a block opens at its beginning, and closes at its end or if opening fails."""

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

    def __exit__(self, *error: object) -> None:
        self._closing.__exit__(*error)  # type: ignore[arg-type]


def temporary_directory(closing: ExitStack, name: str) -> Path:
    """Make a directory, which is removed when the stack closes."""
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    closing.callback(shutil.rmtree, directory, ignore_errors=True)
    return directory


@dataclass(slots=True)
class Round:
    """The actions of a round, and their outcome."""

    seed: int
    number: int
    facts: dict[str, Any]
    steps: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Rounds(Opened):
    """One round after another.

    A seed and a round's number say what happens; what that meets is up to the machine.
    """

    def __init__(self, seed: int, say: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._seed = seed
        self._say = say
        self._round = Round(seed, -1, {})
        self._began = 0.0

    def run(self, numbers: Iterable[int], *, goes_on: bool = False) -> None:
        """Run some rounds; raise where one fails, or, with ``goes_on``, after the last one."""
        failed = []
        for number in numbers:
            try:
                self.run_round(number)
            except SoakError as error:
                if not goes_on:
                    raise
                self._say(str(error))
                failed.append(number)
        if failed:
            raise SoakError(f"rounds have failed: {failed}")

    @abstractmethod
    def run_round(self, number: int) -> Round:
        """Run a round, and raise if a promise was broken, with what was done."""

    @abstractmethod
    def _come_to(self) -> dict[str, Any]:
        """Return what has come of the round until now."""

    def _last_words(self) -> str:
        return ""

    def _checked(self, number: int, act: Callable[[], None], **facts: Any) -> Round:
        """Run a round, and report it."""
        self._round = Round(self._seed, number, facts)
        self._began = time.monotonic()
        failure: Exception | None = None
        try:
            act()
        except Exception as error:  # noqa: BLE001  # it is reported with what was done
            failure, self._round.error = error, f"{type(error).__name__}: {error}"
        self._round.facts |= self._come_to()
        self._round.seconds = round(time.monotonic() - self._began, 1)
        self._say(self._round.to_json())
        if failure is not None:
            raise SoakError(f"{self._round.to_json()}\n{self._last_words()}") from failure
        return self._round

    def _note(self, what: str) -> None:
        self._round.steps.append(f"{time.monotonic() - self._began:.2f} s: {what}")
