"""How much a micro-batch may read, as Spark's ``ReadLimit`` and its kinds say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ReadAllAvailable:
    """Everything that Kafka has; it overrules the limits beside it, as ``Trigger.Once`` needs."""


@final
@dataclass(frozen=True, slots=True)
class ReadMaxRows:
    """At most about ``max_rows`` offsets (option ``maxOffsetsPerTrigger``)."""

    max_rows: int

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ValueError(f"a batch of at most {self.max_rows} rows reads nothing")


@final
@dataclass(frozen=True, slots=True)
class ReadMinRows:
    """No batch below ``min_rows`` offsets, unless one has been awaited too long.

    Options ``minOffsetsPerTrigger`` and ``maxTriggerDelay``, the latter in milliseconds.
    """

    min_rows: int
    max_trigger_delay_ms: int

    def __post_init__(self) -> None:
        if self.min_rows < 0:
            raise ValueError(f"not a number of rows: {self.min_rows}")
        if self.max_trigger_delay_ms < 0:
            raise ValueError(f"not a delay in milliseconds: {self.max_trigger_delay_ms}")


@final
@dataclass(frozen=True, slots=True)
class ReadMaxBytes:
    """At most about ``max_bytes`` of keys and values, estimated from what was read before."""

    max_bytes: int

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ValueError(f"a batch of at most {self.max_bytes} bytes reads nothing")


SingleReadLimit = ReadAllAvailable | ReadMaxRows | ReadMinRows | ReadMaxBytes


@final
@dataclass(frozen=True, slots=True)
class CompositeReadLimit:
    """Several limits that hold at once; it has no other composite in it."""

    limits: tuple[SingleReadLimit, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise ValueError("a composite limit has at least one limit")
        # Spark hands limits over, so the types alone do not hold this.
        if any(isinstance(limit, CompositeReadLimit) for limit in self.limits):
            raise ValueError("a composite limit has no other in it")


ReadLimit = SingleReadLimit | CompositeReadLimit


def limits_of(limit: ReadLimit) -> tuple[SingleReadLimit, ...]:
    """Give the parts of a composite, or the limit alone."""
    return limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)


def default_read_limit(
    min_offsets: int | None,
    max_offsets: int | None,
    max_trigger_delay_ms: int,
    max_bytes: int | None,
) -> ReadLimit:
    """Give the limit that a query's options ask for; ``None`` stands for an option not given.

    The table of ``getDefaultReadLimit`` in Spark's ``KafkaMicroBatchStream``, which has no limit
    of bytes: that one joins the others. The delay counts only beside ``min_offsets``.
    """
    limits: list[SingleReadLimit] = []
    if min_offsets is not None:
        limits.append(ReadMinRows(min_offsets, max_trigger_delay_ms))
    if max_offsets is not None:
        limits.append(ReadMaxRows(max_offsets))
    if max_bytes is not None:
        limits.append(ReadMaxBytes(max_bytes))
    match limits:
        case []:
            return ReadAllAvailable()
        case [limit]:
            return limit
        case _:
            return CompositeReadLimit(tuple(limits))
