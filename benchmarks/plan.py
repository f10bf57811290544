"""How much a run measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

MB: Final = 1_000_000
GB: Final = 1_000 * MB


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of a run; the defaults are those of the page."""

    runs: int = 5
    """Counted rounds; in each, every competitor runs once."""

    warm_up_rounds: int = 1
    records: int = 4_000_000
    """Records of a topic of 100 B values; ``Shape.volume`` says how large the others are."""

    read_seconds: float = 2.0
    """The longest read of one core: the slowest there would take minutes for a topic."""

    triggers: int = 60
    """Micro-batches of one run of a stream, besides the first ones that are not counted."""

    memory_bytes: tuple[int, ...] = (100 * MB, 10 * GB)
    partitions: tuple[int, ...] = (1, 100, 2_000)


FULL: Final = Plan()

QUICK: Final = Plan(
    runs=1,
    warm_up_rounds=0,
    records=50_000,
    read_seconds=0.2,
    triggers=5,
    memory_bytes=(10 * MB, 50 * MB),
    partitions=(1, 50),
)
"""Whether it works; its figures say nothing."""
