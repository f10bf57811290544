"""Waiting for responses on several connections."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from .connections import RawConnection

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
    poll = select.poll()
    for connection, _ in awaited:
        poll.register(connection, select.POLLIN)
        if connection.has_decrypted:
            timeout_s = 0.0
    ready = {number for number, _ in poll.poll(1_000 * timeout_s)}
    for connection, receive in awaited:
        if connection.fileno() in ready or connection.has_decrypted:
            receive()
