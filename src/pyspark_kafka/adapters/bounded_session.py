"""A session of requests whose calls end with the block of ``http.within`` that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from .http import cut_off_in_time

if TYPE_CHECKING:
    import socket
    import ssl

    from requests import Session


def bound_session(session: Session, tls: ssl.SSLContext | None = None) -> None:
    """Have the calls of a session end with ``within``, and their TLS use a context."""
    session.mount("http://", _BoundedAdapter())
    session.mount("https://", _BoundedAdapter() if tls is None else _TlsAdapter(tls))


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        cut_off_in_time(connected)
        return connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        cut_off_in_time(self.sock)  # which another block may have opened
        super().request(*args, **kwargs)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        cut_off_in_time(connected)
        return connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        cut_off_in_time(self.sock)
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
