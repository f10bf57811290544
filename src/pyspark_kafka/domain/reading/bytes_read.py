"""The bytes of records by the brokers that sent them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@final
@dataclass(frozen=True, slots=True)
class BytesRead:
    """The bytes that leaders and other replicas have sent, by the rack of the broker.

    A broker without a rack, or whose rack is not known, has the rack ``""``.
    """

    leaders: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("leaders", "replicas"):
            sizes = getattr(self, name)
            if any(size < 0 for size in sizes.values()):
                raise ValueError("a number of bytes is negative")
            object.__setattr__(self, name, MappingProxyType(dict(sorted(sizes.items()))))

    def __reduce__(self) -> tuple[type[BytesRead], tuple[dict[str, int], dict[str, int]]]:
        return BytesRead, (dict(self.leaders), dict(self.replicas))

    def __add__(self, other: BytesRead) -> BytesRead:
        return BytesRead(
            Counter(self.leaders) + Counter(other.leaders),
            Counter(self.replicas) + Counter(other.replicas),
        )

    def __bool__(self) -> bool:
        return bool(self.leaders or self.replicas)

    def __str__(self) -> str:
        return ", ".join(
            f"{size} from {role} in rack '{rack}'" for role, rack, size in self.by_source()
        )

    def by_source(self) -> list[tuple[str, str, int]]:
        """Return the role of a broker, its rack, and the bytes of each."""
        return [
            (role, rack, size)
            for role, sizes in (("leaders", self.leaders), ("replicas", self.replicas))
            for rack, size in sizes.items()
        ]


@final
class SentBytes:
    """Counts the bytes that each broker sends."""

    def __init__(self) -> None:
        self._sent: Counter[tuple[int, bool]] = Counter()

    def add(self, broker: int, size: int, *, is_leader: bool) -> None:
        """Count bytes of records."""
        self._sent[broker, is_leader] += size

    def take(self, rack: Callable[[int], str]) -> BytesRead:
        """Return the bytes since the last call; ``rack`` returns a broker's rack."""
        sent, self._sent = self._sent, Counter()
        by_role: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        for (broker, is_leader), size in sent.items():
            by_role[is_leader][rack(broker)] += size
        return BytesRead(+by_role[True], +by_role[False])
