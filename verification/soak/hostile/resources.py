"""The threads, sockets and files of this process, by what they are for."""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import psutil

_SELF: Final = Path("/proc/self")
_INODE: Final = re.compile(r"\[\d+\]")
_NUMBER: Final = re.compile(r"[-_]?\d+")
_NO_CEILINGS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resources:
    """How many there are of each name: ``thread X``, also of C libraries, ``socket Y``, ``file Z``.

    A socket is named by its peer, and a file by its path or its kind.
    """

    counts: Counter[str]

    @classmethod
    def count(cls) -> Self:
        """Return what there is now."""
        return cls(Counter([*_threads(), *_descriptors()]))

    def beyond(self, other: Self, ceilings: Mapping[str, int] = _NO_CEILINGS) -> dict[str, int]:
        """Return by how much this is more than another one, for each name that is more.

        ``ceilings`` say how many there may be of some names, even if the other one has fewer.
        """
        allowed = other.counts | Counter(ceilings)
        return dict(sorted((self.counts - allowed).items()))

    def without_peers(self, ports: Iterable[int]) -> "Resources":
        ignored = {f"socket to {port}" for port in ports}
        kept = {name: count for name, count in self.counts.items() if name not in ignored}
        return Resources(Counter(kept))

    def without_sockets(self) -> "Resources":
        kept = {name: count for name, count in self.counts.items() if "socket" not in name}
        return Resources(Counter(kept))

    def totals(self) -> dict[str, int]:
        kinds = Counter[str]()
        for name, count in self.counts.items():
            kinds[name.partition(" ")[0]] += count
        return dict(kinds)


def _threads() -> Iterator[str]:
    of_python = {thread.native_id: thread.name for thread in threading.enumerate()}
    for task in (_SELF / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            native = (task / "comm").read_text().strip()
            name = of_python.get(int(task.name))
            yield f"thread {native if name is None else _NUMBER.sub('', name)}"


def _descriptors() -> Iterator[str]:
    peers = _peers()
    for descriptor in (_SELF / "fd").iterdir():
        # One of them belongs to this listing.
        with suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith("socket:"):
                yield f"socket {peers.get(int(descriptor.name), 'not of TCP')}"
            else:
                yield f"file {_INODE.sub('', target)}"


def _peers() -> dict[int, str]:
    """Return by descriptor to which port each TCP socket is connected, or which one accepted it."""
    sockets = psutil.Process().net_connections("tcp")
    listening = {each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN}
    found = {}
    for each in sockets:
        local = each.laddr.port
        if each.status == psutil.CONN_LISTEN:
            found[each.fd] = f"listening at {local}"
        elif local in listening:
            found[each.fd] = f"accepted at {local}"
        elif each.raddr:
            found[each.fd] = f"to {each.raddr.port}"
    return found
