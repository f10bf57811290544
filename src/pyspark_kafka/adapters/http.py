"""An HTTP client whose requests end in time, however slowly a server answers."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock, Timer
from typing import Any, Final, final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, make_headers
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NewConnectionError,
)
from urllib3.util import Timeout

from ..ports.clock import Deadline
from .name_resolution import UnresolvedError, resolve
from .process_local import ProcessLocal

MAX_RESPONSE_BYTES: Final = 256 * 1024
_MAX_IDLE: Final = 8
"""The connections to a server that are kept: as many as threads send requests at the same time."""

_CHUNK_BYTES: Final = 64 * 1024
_MIN_S: Final = 0.001
_UNTRUSTED: Final = "certificate verify failed"
"""OpenSSL's words for a certificate that is not trusted, or is of another host."""


class RequestError(ConnectionError):
    """The response is missing or truncated; the message has the reason."""

    def __init__(self, reason: str, *, may_pass: bool = True) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        """Whether another attempt may succeed."""


class RequestTimeoutError(RequestError, TimeoutError):
    """The response was not complete at the deadline."""


class OversizedResponseError(RequestError):
    """The response is larger than its limit, and was not read to its end."""


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server; names of headers are in any case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)


def json_fields(content: bytes) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none if the content is not an object."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@final
class HttpClient:
    """Sends requests over connections that it keeps; any thread and any fork may use it.

    It follows no redirects, keeps no cookies, and reads no logins from files.
    """

    def __init__(
        self,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        *,
        uses_proxies: bool = False,
        max_connect_s: float | None = None,
    ) -> None:
        """Take the TLS of new connections, and whether the environment's proxies are used."""
        self._tls = tls
        self._uses_proxies = uses_proxies
        self._max_connect_s = max_connect_s
        self._pools = ProcessLocal[tuple[ssl.SSLContext | None, dict[str, PoolManager]]]()

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        deadline: Deadline,
        *,
        body: bytes | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> Response:
        """Send a request, and return the response as it was sent, without decompression.

        The error has no cause: the frames of its traceback would show the headers, which have
        logins.

        :raises RequestError: if no response comes before the deadline, or it exceeds ``max_bytes``.
        """
        seconds = max(_MIN_S, deadline.remaining)
        connect_s = seconds if self._max_connect_s is None else min(seconds, self._max_connect_s)
        sent = {"User-Agent": "pyspark-kafka", "Accept-Encoding": "identity", **headers}
        try:
            with (
                _ended_at(deadline),
                self._pools_of(url).request(
                    method,
                    url,
                    body=body,
                    headers=sent,
                    redirect=False,
                    preload_content=False,
                    timeout=Timeout(connect=connect_s, read=seconds),
                ) as response,
            ):
                content = _content(response, max_bytes)
                return Response(response.status, content, response.headers, url)
        except (HTTPError, OSError, ValueError) as error:
            failure = _failure(error, deadline)
        raise failure

    def close(self) -> None:
        """Close the connections of this process."""
        found = self._pools.pop()
        if found is not None:
            for pools in found[1].values():
                pools.clear()

    def _pools_of(self, url: str) -> PoolManager:
        tls, proxy = self._tls(), _proxy_of(url) if self._uses_proxies else ""
        found = self._pools.get()
        if found is None or found[0] is not tls:
            found = self._pools.set((tls, {}))
        return found[1].get(proxy) or found[1].setdefault(proxy, _new_pools(proxy, tls))


def request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    deadline: Deadline,
    *,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> Response:
    """Send one request as ``HttpClient.request``, over a new connection, without a proxy."""
    with closing(HttpClient(lambda: tls)) as client:
        return client.request(method, url, headers, deadline, body=body, max_bytes=max_bytes)


def _new_pools(proxy: str, tls: ssl.SSLContext | None) -> PoolManager:
    options: dict[str, Any] = {"retries": False, "ssl_context": tls, "maxsize": _MAX_IDLE}
    if tls is not None and not tls.check_hostname:
        options["assert_hostname"] = False
    if not proxy:
        pools = PoolManager(**options)
    else:
        login = urlsplit(proxy).netloc.rpartition("@")[0]
        headers = make_headers(proxy_basic_auth=unquote(login)) if login else None
        pools = ProxyManager(proxy, proxy_headers=headers, **options)
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return pools


def _proxy_of(url: str) -> str:
    """Return the URL of the proxy that the environment names for a URL, or nothing."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all", "")
    named = parts.netloc.rpartition("@")[2]
    if proxy_bypass(named) or _is_in_network(parts.hostname or "", proxies.get("no", "")):
        return ""
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _is_in_network(host: str, networks: str) -> bool:
    """Whether an address is in a network, such as 10.0.0.0/8, which ``proxy_bypass`` ignores."""
    for each in networks.split(","):
        with suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(each.strip(), strict=False):
                return True
    return False


def _content(response: BaseHTTPResponse, max_bytes: int) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise RequestError("its answer is compressed, which was not asked for")
    content = bytearray()
    # No more than that: ``read`` waits for all the bytes that it is asked for.
    while chunk := response.read(
        min(_CHUNK_BYTES, max_bytes + 1 - len(content)), decode_content=False
    ):
        content += chunk
        if len(content) > max_bytes:
            raise OversizedResponseError(f"its response exceeds {max_bytes} bytes")
    return bytes(content)


def _failure(error: Exception, deadline: Deadline) -> RequestError:
    if isinstance(error, NewConnectionError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    if isinstance(error, UnresolvedError):
        return RequestTimeoutError(str(error))
    if deadline.has_passed:
        return RequestTimeoutError("its response was not complete in time")
    if isinstance(error, RequestError):
        return error.with_traceback(None)
    text = f"{type(error).__name__}: {error}"
    # The first line of another server's answer, which may be secret, is in the error.
    text = "its answer is not HTTP" if "BadStatusLine" in text else text
    # Kafka's clients do not wait for a new certificate either.
    return RequestError(text, may_pass=_UNTRUSTED not in text)


@contextmanager
def _ended_at(deadline: Deadline) -> Iterator[None]:
    """End the connections of this block at a deadline.

    The time-out of a socket limits the wait for each byte, not for all of them.

    :raises RequestError: if the deadline passes: a truncated response without a declared length
        looks complete.
    """
    sockets = _Sockets()
    timer = Timer(max(0, deadline.remaining), sockets.end)
    timer.daemon = True
    timer.start()
    token = _CURRENT.set(sockets)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        timer.cancel()
        sockets.close()
    if sockets.have_ended:
        raise RequestError("its response was cut off")


@final
class _Sockets:
    """Duplicates of a block's sockets: TLS takes over the originals, and responses close them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._sockets: list[socket.socket] = []
        self.have_ended = False

    def add(self, connected: socket.socket) -> None:
        with self._lock:
            self._sockets.append(socket.socket(fileno=socket.dup(connected.fileno())))
            if self.have_ended:
                self.end()

    def end(self) -> None:
        with self._lock:
            self.have_ended = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            for each in self._sockets:
                each.close()
            self._sockets.clear()


_CURRENT: Final[ContextVar[_Sockets | None]] = ContextVar("_CURRENT", default=None)


def _end_in_time(connected: socket.socket | None) -> None:
    sockets = _CURRENT.get()
    if sockets is not None and connected is not None:
        sockets.add(connected)


class _Connection(HTTPConnection):
    """A connection that ends with its block, and tries each address for a share of the time."""

    def __init__(self, host: str, *args: Any, **named: Any) -> None:
        super().__init__(host, *args, **named)
        self._name = host  # ``self.host`` lacks a dot at its end

    @property
    def sock(self) -> socket.socket | None:
        """The socket, before and after its TLS handshake."""
        return self._socket

    @sock.setter
    def sock(self, connected: socket.socket | None) -> None:
        self._socket = connected
        _end_in_time(connected)

    def request(self, *args: Any, **named: Any) -> None:
        _end_in_time(self.sock)  # which another block may have opened
        super().request(*args, **named)

    def connect(self) -> None:
        deadline = Deadline.after(Timeout.resolve_default_timeout(self.timeout))
        hosts = self._addresses(deadline)
        while hosts:
            # A share for each address, so that one that is silent does not take all of the time.
            self.timeout = max(_MIN_S, deadline.remaining / len(hosts))
            self.host = hosts.pop(0)
            try:
                super().connect()
            except (ConnectTimeoutError, NewConnectionError):
                if not hosts:
                    raise
            else:
                return
            finally:
                self.host = self._name

    def _addresses(self, deadline: Deadline) -> list[str]:
        try:
            found = resolve(self._name, self.port, deadline)
        except UnicodeError:
            raise LocationParseError(f"'{self._name}', which is no name of a host") from None
        except OSError as error:
            raise NewConnectionError(self, str(error)) from error
        # A proxy's own TLS is for the proxy's name.
        return [self._name] if self.proxy else [address[0] for *_, address in found]


class _TlsConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        # The certificate is for the name, not for the address.
        self.server_hostname = self.server_hostname or (None if self.proxy else self._name)
        super().connect()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection
