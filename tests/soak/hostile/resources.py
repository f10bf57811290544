"""The threads, sockets and files of this process, by what they are for."""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

_SELF: Final = Path("/proc/self")
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
_INODE: Final = re.compile(r"\[\d+\]")
_NUMBER: Final = re.compile(r"[-_]?\d+")
_LISTENS: Final = "0A"
_TABLES: Final = ("tcp", "tcp6")


@final
@dataclass(frozen=True, slots=True)
class Resources:
    """How many there are of each name: a thread's, a socket's peer, a file's path or kind."""

    threads: Counter[str]
    """Also those of C libraries."""

    sockets: Counter[str]
    files: Counter[str]

    @classmethod
    def count(cls) -> Resources:
        """Return what there is now."""
        opened = Counter[str]()
        sockets = Counter[str]()
        peers = _peers()
        for descriptor in (_SELF / "fd").iterdir():
            # One of them is that of this list.
            with suppress(FileNotFoundError):
                target = str(descriptor.readlink())
                if found := _SOCKET.fullmatch(target):
                    sockets[peers.get(found[1], "not connected")] += 1
                else:
                    opened[_INODE.sub("", target)] += 1
        return cls(_threads(), sockets, opened)

    def beyond(self, other: Resources) -> dict[str, int]:
        """Return by how much this is more than another one, for each name that is more."""
        pairs = ((self.threads, other.threads), (self.sockets, other.sockets))
        more = [mine - theirs for mine, theirs in (*pairs, (self.files, other.files))]
        kinds = ("thread", "socket", "file")
        return {
            f"{kind} {name}": count
            for kind, names in zip(kinds, more, strict=True)
            for name, count in sorted(names.items())
        }

    def without_peers(self, ports: Iterable[int]) -> Resources:
        """Return all but the sockets that are connected to some ports."""
        ignored = {f"to {port}" for port in ports}
        kept = {name: count for name, count in self.sockets.items() if name not in ignored}
        return replace(self, sockets=Counter(kept))

    def totals(self) -> dict[str, int]:
        """Return how many there are of each kind."""
        return {
            "threads": self.threads.total(),
            "sockets": self.sockets.total(),
            "files": self.files.total(),
        }


def _threads() -> Counter[str]:
    of_python = {thread.native_id: thread.name for thread in threading.enumerate()}
    names = Counter[str]()
    for task in (_SELF / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            native = (task / "comm").read_text().strip()
            name = of_python.get(int(task.name))
            names[native if name is None else _NUMBER.sub("", name)] += 1
    return names


def _peers() -> dict[str, str]:
    """Return by inode to which port each TCP socket is connected, or which one accepted it."""
    rows = [
        line.split()
        for table in _TABLES
        for line in (_SELF / "net" / table).read_text().splitlines()[1:]
    ]
    listening = {_port(row[1]) for row in rows if row[3] == _LISTENS}
    found = {}
    for row in rows:
        local, peer, state, inode = _port(row[1]), _port(row[2]), row[3], row[9]
        if state == _LISTENS:
            found[inode] = f"listening at {local}"
        else:
            found[inode] = f"accepted at {local}" if local in listening else f"to {peer}"
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
