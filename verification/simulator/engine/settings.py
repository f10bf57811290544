"""The sizes of a schedule, and the kinds of faults that it may have."""

import enum
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each simulator adds its sizes. Few kinds at once find more: all hide what two of them do."""

    seed: int
    kinds: frozenset[enum.Enum]
    rate: float
    focus: str
    """A call that fails often."""

    is_strict: bool = False
    """Whether what is known counts as a violation."""

    kept: frozenset[str] | None = None
    """The only faults that may happen, by their keys; all if it is ``None``."""

    def smaller(self) -> list[Self]:
        """Return simpler settings; one of them may show the same violation."""
        return [
            replace(self, kinds=self.kinds - {kind})
            for kind in sorted(self.kinds, key=lambda kind: kind.name)
        ]
