"""A session of requests whose calls end with the block of ``http.within`` that they are in."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Final, final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import Timeout

from .http import connect, cut_off_in_time

if TYPE_CHECKING:
    import ssl

    from requests import Session


def bound_session(session: Session, tls: ssl.SSLContext | None = None) -> None:
    """Have the calls of a session end with ``within``, and their TLS use a context."""
    session.mount("http://", _BoundedAdapter())
    session.mount("https://", _BoundedAdapter() if tls is None else _TlsAdapter(tls))


def _connected(connection: HTTPConnection) -> socket.socket:
    """Connect as ``HTTPConnection._new_conn`` does, but resolve the name in time."""
    timeout_s = Timeout.resolve_default_timeout(connection.timeout)
    try:
        return connect(
            connection._dns_host.strip("[]"),  # noqa: SLF001  # ``host`` lacks a dot at its end
            connection.port,
            timeout_s,
            connection.socket_options or (),  # type: ignore[arg-type]
        )
    except socket.gaierror as error:
        raise NameResolutionError(connection.host, connection, error) from error
    except TimeoutError as error:
        problem = f"Connection to {connection.host} timed out: {error}"
        raise ConnectTimeoutError(connection, problem) from error
    except OSError as error:
        problem = f"Failed to establish a new connection: {error}"
        raise NewConnectionError(connection, problem) from error


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)

    def request(self, *args: Any, **kwargs: Any) -> None:
        cut_off_in_time(self.sock)  # which another block may have opened
        super().request(*args, **kwargs)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)

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
