"""Faults of the storages of checkpoints."""

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.servers.storage_proxy import Behavior, Failure

from .arena import Arena
from .checkpoints import HDFS, S3, SMALL_DISK
from .fault import Faults

STORAGE_FAULTS: Final = Faults()

_LOG: Final = "KAFKA_METADATA_LOG"
_FAILURES: Final = [failure for failure in Failure if failure is not Failure.CONFLICT]
_FREE_PAGES: Final = 4
"""At most: with none, nothing is written; with some, the offset log is, or the sink's log."""


def fail(chance: random.Random) -> Behavior:
    """Requests fail: some of them, or all."""
    failures = tuple(chance.sample(_FAILURES, chance.randint(1, len(_FAILURES))))
    return Behavior(failures, share=chance.choice([0.1, 0.3, 1.0]))


def slow_down(chance: random.Random) -> Behavior:
    return Behavior(delay_s=chance.uniform(0.2, 2.0))


def list_late(chance: random.Random) -> Behavior:
    """Lists are old, and some answers are lost, so that drivers start again meanwhile."""
    share, delay_s = chance.choice([0.0, 0.1, 0.3]), chance.uniform(1.0, 30.0)
    return Behavior((Failure.LOST_RESPONSE, Failure.RESET), share=share, list_delay_s=delay_s)


def _behave(storage: str, what: str, choose: Callable[[random.Random], Behavior]) -> None:
    """Add a fault: a storage behaves in a way that the seed chooses."""

    # A driver may fail before an entry that was written, and abort what the entry would commit.
    @STORAGE_FAULTS.add(
        f"{storage} {what}", _LOG, "KAFKA_TRANSACTION_LOST", needs=frozenset({storage})
    )
    def strike(arena: Arena) -> Iterator[None]:
        behavior, proxy = choose(arena.chance), arena.checkpoints.proxies[storage]
        arena.note(f"{storage}: {behavior}")
        with proxy.behaving(behavior):
            yield
        arena.note(f"{storage} as before; {proxy.stale} old lists until now")


for _storage in (S3, HDFS):
    _behave(_storage, "fails", fail)
    _behave(_storage, "slow", slow_down)
    _behave(_storage, "lists late", list_late)


@STORAGE_FAULTS.add("disk of checkpoints full", _LOG, needs=frozenset({SMALL_DISK}))
def fill_disk(arena: Arena) -> Iterator[None]:
    """The disk of checkpoints is full, or has room for a file or two."""
    disk, pages = arena.checkpoints.disks[SMALL_DISK], arena.chance.randint(0, _FREE_PAGES)
    disk.fill(pages)
    arena.note(f"disk of checkpoints full but for {pages} pages")
    try:
        yield
    finally:
        disk.make_room()
        arena.note("disk of checkpoints has room")
