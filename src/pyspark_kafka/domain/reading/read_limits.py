"""How much a micro-batch may read: Spark's ``ReadLimit`` and its subclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ReadAllAvailable:
    """No limit; it takes precedence over other limits, as ``Trigger.Once`` needs."""


@final
@dataclass(frozen=True, slots=True)
class ReadMaxRows:
    """At most about ``max_rows`` offsets (option ``maxOffsetsPerTrigger``)."""

    max_rows: int

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {self.max_rows}")


@final
@dataclass(frozen=True, slots=True)
class ReadMinRows:
    """At least ``min_rows`` offsets, unless ``max_trigger_delay_ms`` milliseconds have passed.

    Options ``minOffsetsPerTrigger`` and ``maxTriggerDelay``.
    """

    min_rows: int
    max_trigger_delay_ms: int

    def __post_init__(self) -> None:
        if self.min_rows < 0:
            raise ValueError(f"min_rows must not be negative, got {self.min_rows}")
        if self.max_trigger_delay_ms < 0:
            raise ValueError(
                f"max_trigger_delay_ms must not be negative, got {self.max_trigger_delay_ms}"
            )


@final
@dataclass(frozen=True, slots=True)
class ReadMaxBytes:
    """At most about ``max_bytes`` of keys, values and headers, estimated from sampled records."""

    max_bytes: int

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, got {self.max_bytes}")


SingleReadLimit = ReadAllAvailable | ReadMaxRows | ReadMinRows | ReadMaxBytes


@final
@dataclass(frozen=True, slots=True)
class CompositeReadLimit:
    """Several limits at once; they cannot be nested."""

    limits: tuple[SingleReadLimit, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise ValueError("a composite limit needs at least one limit")
        # Limits come from Spark, which the type checker does not see.
        if any(isinstance(limit, CompositeReadLimit) for limit in self.limits):
            raise ValueError("a composite limit cannot contain another one")


ReadLimit = SingleReadLimit | CompositeReadLimit


def limits_of(limit: ReadLimit) -> tuple[SingleReadLimit, ...]:
    """Return the limits of a composite, or the single limit."""
    return limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)


def default_read_limit(
    min_offsets: int | None,
    max_offsets: int | None,
    max_trigger_delay_ms: int,
    max_bytes: int | None,
) -> ReadLimit:
    """Return the read limit of a query's options; ``None`` stands for an option not set.

    As ``getDefaultReadLimit`` of Spark's ``KafkaMicroBatchStream``, plus the limit of bytes. The
    delay has an effect only with ``min_offsets``.
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
