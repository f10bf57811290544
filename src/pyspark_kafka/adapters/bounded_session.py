"""A session of requests whose calls end in time, however slowly a server answers.

The time-outs of requests limit the wait for each byte, not for all of them.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ..ports.clock import Deadline

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from requests import Session


def bound_session(session: Session, tls: ssl.SSLContext | None = None) -> None:
    """Have the calls of a session end with ``within``, and their TLS use a context."""
    session.mount("http://", _BoundedAdapter())
    session.mount("https://", _BoundedAdapter() if tls is None else _TlsAdapter(tls))


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """End the calls of this block at the deadline that it yields; blocks are not nested.

    :raises TimeoutError: if it passes before the end of the block.
    """
    sockets = _Sockets()
    timer = threading.Timer(seconds, sockets.end)
    timer.daemon = True
    timer.start()
    token = _CURRENT.set(sockets)
    try:
        yield Deadline.after(seconds)
    except Exception:
        if not sockets.have_ended:
            raise
    finally:
        _CURRENT.reset(token)
        timer.cancel()
        sockets.close()
    if sockets.have_ended:
        # What was received looks like a whole response if none said how long it is.
        raise TimeoutError(f"its response was not complete within {seconds:g} s")


@final
class _Sockets:
    """Duplicates of the sockets of a block: TLS takes the first over, and responses close them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.have_ended = False

    def add(self, connected: socket.socket) -> None:
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(connected.fileno())))
            if self.have_ended:
                self._shut_down()

    def end(self) -> None:
        with self._lock:
            self.have_ended = True
            self._shut_down()

    def close(self) -> None:
        with self._lock:
            for each in self._sockets:
                each.close()
            self._sockets.clear()

    def _shut_down(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


_CURRENT: Final[ContextVar[_Sockets | None]] = ContextVar("_CURRENT", default=None)


def _add(connected: socket.socket | None) -> None:
    sockets = _CURRENT.get()
    if sockets is not None and connected is not None:
        sockets.add(connected)


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        _add(connected)
        return connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        _add(self.sock)  # which another block may have opened
        super().request(*args, **kwargs)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        _add(connected)
        return connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        _add(self.sock)
        super().request(*args, **kwargs)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


_POOLS: Final = {"http": _Pool, "https": _TlsPool}


class _BoundedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager


@final
class _TlsAdapter(_BoundedAdapter):
    """Verifies servers by a context alone; ``HTTPAdapter`` would also trust certifi."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = {"ssl_context": tls} | (
            {} if tls.check_hostname else {"assert_hostname": False}
        )
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, **self._tls)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        return super().proxy_manager_for(*args, **kwargs, **self._tls)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the connection to the context."""
