"""The size of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

MB: Final = 1_000_000
GB: Final = 1_000 * MB


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run; the page is made with the defaults."""

    runs: int = 5
    """Counted rounds; in each, every competitor runs once."""

    warm_up_rounds: int = 1
    records: int = 4_000_000
    """Records of a topic with 100 B values; ``Shape.volume`` scales the others."""

    read_seconds: float = 2.0
    """The maximum time of a read on one core: the slowest reader would need minutes per topic."""

    triggers: int = 60
    """Counted micro-batches of a stream."""

    rates: tuple[int, ...] = (100, 1_000, 10_000)
    """Records per second while latencies are measured."""

    latency_seconds: float = 10.0
    """The time in which latencies are measured, of each competitor at each rate."""

    latency_warm_up_seconds: float = 4.0

    max_continuous_rounds: int = 2
    """The maximum of counted rounds of continuous pipelines; one round takes minutes."""

    memory_bytes: tuple[int, ...] = (100 * MB, 10 * GB)
    codec_bytes: int = 150 * MB
    """The values of each topic from which codecs are read."""

    partitions: tuple[int, ...] = (1, 100, 2_000)
    max_session_rounds: int = 3
    """The maximum of counted rounds of first queries; one round starts some fifteen sessions."""

    wide_topics: tuple[tuple[int, int], ...] = ((200, 50), (1_000, 10))
    """The partitions of topics, and the records of each partition."""

    thousands: tuple[int, int] = (10, 1_000)
    """Topics, and the partitions of each."""


FULL: Final = Plan()

QUICK: Final = Plan(
    runs=1,
    warm_up_rounds=0,
    records=50_000,
    read_seconds=0.2,
    triggers=5,
    rates=(1_000,),
    latency_seconds=1.0,
    latency_warm_up_seconds=0.5,
    memory_bytes=(10 * MB, 50 * MB),
    codec_bytes=5 * MB,
    partitions=(1, 50),
    wide_topics=((20, 5),),
    thousands=(2, 20),
)
"""A check that everything runs; its figures are meaningless."""
