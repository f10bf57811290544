"""A fault that happens under load, and what the queries are allowed to do about it.

A fault acts on an ``Arena``: its cluster, its proxies, its ledger, its queries and its random
numbers. The soak looks for lost and repeated numbers, wrong lags and long waits itself, after each
round. A module has a list of faults; ``registry.FAULTS`` joins these lists.

    CLEANER_FAULTS: Final = Faults()

    @CLEANER_FAULTS.add("log cleaner stopped")
    def stop_cleaner(arena: Arena) -> Iterator[None]:
        \"\"\"The log cleaner of a broker is stopped for a while.\"\"\"
        broker = arena.chance.randrange(arena.brokers)
        ...                          # the fault strikes
        arena.note(f"broker {broker}: ...")
        yield                        # the soak keeps it for a while, perhaps with other faults
        ...                          # heal
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from .arena import Arena

Strike: TypeAlias = Callable[[Arena], Iterator[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and what it may do.

    Entering what ``strike`` returns begins the fault, and leaving it heals. Both must be bounded.
    Numbers are written all the time, and the cluster loses none that it has acknowledged. A fault
    that deletes records gives ``arena.ledger.producer.begin_at`` the new beginnings.
    """

    name: str
    strike: Callable[[Arena], AbstractContextManager[object]]
    conditions: frozenset[str] = frozenset()
    """Conditions of errors, such as ``KAFKA_DATA_LOSS``, that fail a round without this fault."""

    needs: frozenset[str] = frozenset()
    """Features that an arena must offer (``Arena.offers``), like ``three brokers`` or ``hdfs``."""

    begins_first: bool = False
    """Whether it asks brokers for changes, at its beginning and end, that other faults hold up."""

    joins_others: bool = True
    """Whether it may be one of several faults of a round."""

    restarts: bool = False
    """Whether it starts brokers, which takes long."""


class Faults(list[Fault]):
    """The faults of a module, in the order of their definition."""

    def add(self, name: str, *conditions: str, **rules: Any) -> Callable[[Strike], Strike]:
        """Return a decorator that adds a fault, which may raise errors of some conditions."""

        def decorate(strike: Strike) -> Strike:
            self.append(Fault(name, contextmanager(strike), frozenset(conditions), **rules))
            return strike

        return decorate
