"""A session of requests whose calls end with the block of ``http.within`` that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from requests.adapters import HTTPAdapter

from .http import POOLS

if TYPE_CHECKING:
    import ssl

    from requests import Session


def bound_session(session: Session, tls: ssl.SSLContext | None = None) -> None:
    """Have the calls of a session end with ``within``, and their TLS use a context."""
    session.mount("http://", _BoundedAdapter())
    session.mount("https://", _BoundedAdapter() if tls is None else _TlsAdapter(tls))


class _BoundedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = POOLS
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
