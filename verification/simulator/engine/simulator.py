"""A simulator: a world for schedules, and faults that it must find."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from .outcome import Outcome
from .settings import Settings

_MAX_RUNS: Final = 400
_MISSING: Final = object()


class Change(NamedTuple):
    """A name in the product, and what it means instead."""

    target: object
    name: str
    value: object


def nothing(*_: object, **__: object) -> None:
    """Do nothing, instead of a method."""


def always(value: object) -> Callable[..., Any]:
    """Return a function that returns one value, instead of a method."""
    return lambda *_, **__: value


@contextmanager
def changed(changes: Iterable[Change]) -> Iterator[None]:
    """Change names while the block runs; ``unittest.mock`` takes ten times as long."""
    before: list[Change] = []
    try:
        for target, name, value in changes:
            before.append(Change(target, name, vars(target).get(name, _MISSING)))
            setattr(target, name, value)
        yield
    finally:
        for target, name, value in reversed(before):
            if value is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, value)


@dataclass(frozen=True, slots=True)
class Simulator:
    """Simulates schedules, each from the settings that its seed decides."""

    name: str
    settings_of: Callable[[int], Settings]
    simulate: Callable[[Any], Outcome]
    story_of: Callable[[Outcome], list[str]]
    planted: Mapping[str, tuple[Change, ...]]
    """Faults to put into the product, by name."""

    found_by: Mapping[str, int]
    """The seeds of schedules that find them; those that are missing here are not found yet."""

    strict: Collection[str] = ()
    """Those that are found only if what is known is a violation, too."""

    def run(self, seed: int, *, is_strict: bool = False) -> Outcome:
        """Simulate the schedule of a seed."""
        return self.simulate(replace(self.settings_of(seed), is_strict=is_strict))

    def shrink(self, failed: Outcome) -> Outcome:
        """Return a schedule with the same violation that is smaller, and has fewer faults."""
        assert failed.violation is not None
        kind, smallest, runs = failed.violation.kind, failed, 0

        def is_smaller(settings: Settings) -> bool:
            nonlocal smallest, runs
            runs += 1
            outcome = self.simulate(settings)
            if outcome.violation is None or outcome.violation.kind != kind:
                return False
            smallest = outcome
            return True

        while runs < _MAX_RUNS and any(is_smaller(each) for each in smallest.settings.smaller()):
            pass
        size = max(1, len(smallest.fired) // 2)
        while runs < _MAX_RUNS and size:
            keys = list(smallest.fired)
            parts = [frozenset(keys[:at] + keys[at + size :]) for at in range(0, len(keys), size)]
            if not any(is_smaller(replace(smallest.settings, kept=each)) for each in parts):
                size //= 2
        return smallest

    @contextmanager
    def plant(self, name: str) -> Iterator[None]:
        """Put a fault into the product while the block runs."""
        with changed(self.planted[name]):
            yield

    def first_found(self, name: str, seeds: Iterable[int]) -> Outcome | None:
        """Return the first schedule that breaks a promise because of a planted fault, shrunk."""
        is_strict = name in self.strict
        for seed in seeds:
            with self.plant(name):
                outcome = self.run(seed, is_strict=is_strict)
                found = self.shrink(outcome) if outcome.violation else None
            if found and not self.run(seed, is_strict=is_strict).violation:
                return found
        return None
