"""Waiting for responses on several connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from selectors import EVENT_READ
from typing import TYPE_CHECKING, Final, TypeAlias

from .connections import RawConnection, Selector

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WAIT_S: Final = 1.0

Awaited: TypeAlias = tuple[RawConnection, Callable[[], None]]
"""A connection with a request in flight, and what receives the next response."""


def receive_ready(awaited: Sequence[Awaited], timeout_s: float) -> None:
    """Wait until there are responses, or in time, and receive them.

    Returns after ``MAX_WAIT_S`` at the latest: the caller looks for overdue responses. The
    connections change often, so that they are registered each time: this is a list, and no system
    call.
    """
    timeout_s = min(timeout_s, MAX_WAIT_S)
    if not awaited:
        time.sleep(timeout_s)
        return
    with Selector() as selector:
        for connection, _ in awaited:
            selector.register(connection, EVENT_READ)
            if connection.has_decrypted:
                timeout_s = 0.0
        ready = {key.fd for key, _ in selector.select(timeout_s)}
    for connection, receive in awaited:
        if connection.fileno() in ready or connection.has_decrypted:
            receive()
