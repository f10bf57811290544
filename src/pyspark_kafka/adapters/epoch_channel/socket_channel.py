"""Both ends of the channel over TCP."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import TaskMessage, write_command
from ...ports.continuous import ChannelAddress, EpochChannel
from ..inbox import Inbox
from .connection_loop import HANDSHAKE_TIMEOUT_S, PING_INTERVAL_S, ConnectionLoop
from .frames import check_size
from .handshake import new_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.continuous.messages import TaskCommand, TaskId

SOCKET: Final = "socket"
"""The ``kind`` of this channel's address; its location is ``host:port``."""

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 1024


@final
class SocketEpochChannel(EpochChannel):
    """Listens on a port of the driver, to which tasks connect.

    ``bind_address`` is of this machine; ``advertised_host`` is its name for executors. Port 0 is
    any free port.

    :raises OSError: if the address or the port cannot be used.
    """

    def __init__(
        self,
        bind_address: str = LOOPBACK,
        advertised_host: str | None = None,
        port: int = 0,
        *,
        ping_interval_s: float = PING_INTERVAL_S,
        handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S,
    ) -> None:
        # Spark writes IPv6 addresses in brackets (Utils.addBracketsIfNeeded).
        bound = bind_address.strip("[]")
        listener = socket.create_server((bound, port), family=_family(bound), backlog=_BACKLOG)
        host = bind_address if advertised_host is None else advertised_host
        location = f"{host}:{listener.getsockname()[1]}"
        self._address = ChannelAddress(SOCKET, location, new_key())
        self._inbox: Inbox[TaskMessage] = Inbox()
        self._is_closed = False
        self._loop = ConnectionLoop(
            listener, self._address.key, self._inbox.put, ping_interval_s, handshake_timeout_s
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._address.location}')"

    @property
    def address(self) -> ChannelAddress:
        return self._address

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return self._inbox.take(timeout_s)

    def send(self, task: TaskId, command: TaskCommand) -> None:
        if not self._is_closed:
            self._loop.send(task, check_size(write_command(command).encode()))

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.close()


def _family(host: str) -> socket.AddressFamily:
    """Return the family of a host's addresses: IPv6 if there is no other."""
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM) if host else ()
    families = {family for family, *_ in found}
    return socket.AF_INET6 if families == {socket.AF_INET6} else socket.AF_INET
