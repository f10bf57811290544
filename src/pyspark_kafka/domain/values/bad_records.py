"""How many records could not be decoded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, final

from .failure_reason import FailureReason

if TYPE_CHECKING:
    from collections.abc import Mapping


@final
@dataclass(frozen=True, slots=True)
class BadRecordStats:
    """The numbers of bad records by reason, and of the dead letters that are acknowledged.

    A record with a bad key and a bad value counts once, with the key's reason.
    """

    by_reason: Mapping[FailureReason, int] = field(default_factory=dict)
    dead_letters: int = 0

    def __post_init__(self) -> None:
        if any(count < 0 for count in (self.dead_letters, *self.by_reason.values())):
            raise ValueError("a count of bad records is negative")
        counted = {reason: self.by_reason[reason] for reason in sorted(self.by_reason)}
        object.__setattr__(self, "by_reason", MappingProxyType(counted))

    def __reduce__(self) -> tuple[type[BadRecordStats], tuple[dict[FailureReason, int], int]]:
        return BadRecordStats, (dict(self.by_reason), self.dead_letters)

    def __add__(self, other: BadRecordStats) -> BadRecordStats:
        return BadRecordStats(
            Counter(self.by_reason) + Counter(other.by_reason),
            self.dead_letters + other.dead_letters,
        )

    def __str__(self) -> str:
        return ", ".join(f"{count} {reason}" for reason, count in self.by_name().items())

    @property
    def total(self) -> int:
        """The number of bad records."""
        return sum(self.by_reason.values())

    def by_name(self) -> dict[str, int]:
        """Return the numbers of bad records by the names of their reasons."""
        return {reason.name: count for reason, count in self.by_reason.items()}

    @classmethod
    def from_names(cls, by_name: Mapping[str, int], dead_letters: int) -> BadRecordStats:
        """Return the numbers of ``by_name``.

        :raises ValueError: if there is no such reason, or a number is negative.
        """
        unknown = by_name.keys() - FailureReason.__members__.keys()
        if unknown:
            raise ValueError(f"unknown reasons of bad records: {sorted(unknown)}")
        return cls({FailureReason[name]: by_name[name] for name in by_name}, dead_letters)
