"""Which faults happen in a schedule."""

import enum
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar
from zlib import crc32

from .settings import Settings

S = TypeVar("S", bound=Settings)


class Numbers:
    """The random numbers of one process or fault: what others draw does not change them."""

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        self.random = Random(crc32(name.encode()) + (seed << 32)).random  # noqa: S311
        self.fires = 0

    def between(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))


@dataclass(frozen=True, slots=True)
class Fired:
    """A fault that happens, with random numbers for its extent."""

    kind: enum.Enum
    numbers: Numbers

    def between(self, low: int, high: int) -> int:
        return self.numbers.between(low, high)


class Decisions(Generic[S]):
    """Decides which faults happen. ``fired`` has those that did, by their keys."""

    def __init__(self, settings: S) -> None:
        self.settings = settings
        self.is_quiet = False
        self.fired: dict[str, enum.Enum] = {}
        self._numbers: dict[str, Numbers] = {}

    def between(self, name: str, low: int, high: int) -> int:
        return self._of(name).between(low, high)

    def one_of(self, name: str, call: str, kinds: Collection[enum.Enum]) -> Fired | None:
        """Return the fault of a call."""
        numbers = self._of(name)
        fires, which = numbers.random(), numbers.random()
        rate = self.settings.rate
        if fires >= (max(rate, 0.25) if call == self.settings.focus else rate):
            return None
        enabled = [kind for kind in kinds if kind in self.settings.kinds]
        return self._fire(numbers, enabled[int(which * len(enabled))]) if enabled else None

    def has(self, name: str, kind: enum.Enum, rate: float) -> Fired | None:
        numbers = self._of(name)
        fires = numbers.random() < rate and kind in self.settings.kinds
        return self._fire(numbers, kind) if fires else None

    def _of(self, name: str) -> Numbers:
        if name not in self._numbers:
            self._numbers[name] = Numbers(self.settings.seed, name)
        return self._numbers[name]

    def _fire(self, numbers: Numbers, kind: enum.Enum) -> Fired | None:
        numbers.fires += 1
        key = f"{numbers.name}#{numbers.fires}"
        kept = self.settings.kept
        if self.is_quiet or (kept is not None and key not in kept):
            return None
        self.fired[key] = kind
        return Fired(kind, Numbers(self.settings.seed, key))
