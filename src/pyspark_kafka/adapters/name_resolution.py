"""Resolving names of hosts with a deadline, which ``getaddrinfo`` does not have."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ports.clock import Deadline

Address: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]
"""As ``socket.getaddrinfo`` returns it."""

_lookups: Final[dict[tuple[int, str], Future[list[Address]]]] = {}
"""The look-ups in progress, by process (threads do not survive a fork) and host."""


class UnresolvedError(TimeoutError):
    """The addresses of a host were not found in time."""


def resolve(host: str, port: int, deadline: Deadline) -> list[Address]:
    """Return the addresses of a host for TCP.

    If the addresses are not found in time, a thread continues to ask, and later calls wait for it.

    :raises UnresolvedError: if they are not found in time.
    :raises OSError: if the host has none.
    :raises UnicodeError: if no host can have the name.
    """
    seconds = min(deadline.remaining, threading.TIMEOUT_MAX)
    asked: Future[list[Address]] = Future()
    lookup = _lookups.setdefault((os.getpid(), host), asked)
    if lookup is asked:
        thread = threading.Thread(target=_ask, args=(host, asked), name="resolver", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter shuts down, or there are too many threads
            _ask(host, asked)
    try:
        found = lookup.result(seconds)
    except TimeoutError:
        raise UnresolvedError(
            f"the name '{host}' was not resolved within {seconds:.3g} s; check the DNS"
        ) from None
    return [(*kind, (place[0], port, *place[2:])) for *kind, place in found]  # type: ignore[misc]


def canonical_servers(
    servers: Iterable[tuple[str, int]], deadline: Deadline
) -> list[tuple[str, int]]:
    """Return servers by their canonical names in the DNS, which certificates have."""
    named: list[tuple[str, int]] = []
    for host, port in servers:
        try:
            names = [each[3] for each in resolve(host, port, deadline) if each[3]]
        except (OSError, UnicodeError):
            names = []
        named += [(name, port) for name in names or [host]]
    return named


def _ask(host: str, lookup: Future[list[Address]]) -> None:
    try:
        found: Any = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME
        )
    except BaseException as error:  # noqa: BLE001  # raised by those who wait
        _lookups.pop((os.getpid(), host), None)
        lookup.set_exception(error)
    else:
        _lookups.pop((os.getpid(), host), None)
        lookup.set_result(found)
