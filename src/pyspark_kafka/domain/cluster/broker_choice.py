"""The choice of a broker for a request that any broker answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from .backoff import Address

_MAX_UNANSWERED: Final = 3
"""How often a listener may close a connection before its first answer. The listener may be
starting; one that keeps closing connections expects something else."""


@final
class BrokerChoice:
    """Chooses among the known brokers, and the bootstrap servers again if these fail.

    So a client finds its cluster again after all brokers were replaced (KIP-899, KIP-1102).
    """

    def __init__(self, servers: Collection[Address], random: Callable[[], float]) -> None:
        """Take the bootstrap servers, and a function that returns a number from 0 to 1."""
        self._servers = tuple(servers)
        self._random = random
        self._known: tuple[Address, ...] = ()
        self._doubted: dict[Address, int] = {}
        """Brokers that let a request wait, or knew less than others, and when that was."""

        self._doubts = 0
        self._unanswered: Counter[Address] = Counter()

    @property
    def candidates(self) -> list[Address]:
        """All addresses that may be asked."""
        return [*self._known, *(each for each in self._servers if each not in self._known)]

    def learn(self, brokers: Iterable[Address]) -> None:
        """Note the addresses in the metadata."""
        self._known = tuple(dict.fromkeys(brokers))
        kept = {*self._known, *self._servers}
        self._doubted = {each: when for each, when in self._doubted.items() if each in kept}

    def ask_last(self, address: Address) -> None:
        """Ask a broker after all others: it did not answer, or is cut off from the cluster."""
        self._doubts += 1
        self._doubted[address] = self._doubts

    def closed_unanswered(self, address: Address) -> bool:
        """Note a connection that was closed before its first answer.

        Return whether all listeners keep closing them, while none has ever answered.
        """
        self._unanswered[address] += 1
        return all(self._unanswered[each] >= _MAX_UNANSWERED for each in self.candidates)

    def next(
        self, connected: Collection[Address], seconds_left: Callable[[Address], float]
    ) -> Address:
        """Return the broker to ask next, after ``seconds_left`` of it.

        The order is: the shortest wait, no doubts, an address that the metadata have, and an open
        connection.
        """
        return min(
            self.candidates,
            key=lambda each: (
                seconds_left(each),
                self._doubted.get(each, 0),
                bool(self._known) and each not in self._known,
                each not in connected,
                self._random(),
            ),
        )
