"""Sockets that are connected to brokers, through a proxy or TLS where the settings ask for it."""

from __future__ import annotations

import errno
import math
import os
import select
import selectors
import socket
import ssl
from contextlib import ExitStack
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote, urlsplit

from kafka import errors as kafka_errors

from ...domain.errors import MAX_NAMED
from ...ports.clock import WAIT_S, Deadline, still_waiting
from ..name_resolution import Address, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from ..security.tls_context import CurrentContext

HANGUPS: Final = (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)
"""The errors of a TLS handshake if the broker ends, or does not speak TLS."""

SocketOption = tuple[int, int, int]

_IN_PROGRESS: Final = (errno.EINPROGRESS, errno.EWOULDBLOCK)
_MIN_SHARE_S: Final = 0.001
_MASKS: Final = {
    EVENT_READ: getattr(select, "POLLIN", 0),
    EVENT_WRITE: getattr(select, "POLLOUT", 0),
}


def ready_numbers(numbers: Iterable[int], events: int, timeout_s: float) -> Collection[int]:
    """Return the numbers of sockets to read from, or to write to, once there is one or in time."""
    # poll() needs no system call to register a socket; a selector takes three times as long to make
    # and to close. Windows has no poll(); select() elsewhere takes no numbers from 1,024 on.
    make = getattr(select, "poll", None)
    if make is None:
        return _selected(numbers, events, timeout_s)
    poll = make()
    for each in numbers:
        poll.register(each, _MASKS[events])
    return [number for number, _ in poll.poll(math.ceil(1_000 * timeout_s))]


def _selected(numbers: Iterable[int], events: int, timeout_s: float) -> Collection[int]:
    with selectors.SelectSelector() as selector:
        for each in numbers:
            selector.register(each, events)
        return [key.fd for key, _ in selector.select(timeout_s)]


def is_ready(waiting: socket.socket, events: int, timeout_s: float) -> bool:
    """Return whether a socket can be read from or written to, once it can or in time."""
    deadline, numbers = Deadline.after(timeout_s), (waiting.fileno(),)
    while not (found := ready_numbers(numbers, events, min(deadline.remaining, WAIT_S))):
        still_waiting()
        if deadline.has_passed:
            break
    return bool(found)


def await_ready(waiting: socket.socket, events: int, deadline: Deadline, late: str) -> None:
    """Wait until a socket can be read from or written to.

    :raises TimeoutError: with the text ``late`` if it cannot in time.
    """
    if deadline.has_passed or not is_ready(waiting, events, deadline.remaining):
        raise TimeoutError(late)


def open_socket(
    host: str, port: int, options: Sequence[SocketOption], proxy: str, deadline: Deadline
) -> socket.socket:
    """Return a socket that does not block, connected to the first address that answers.

    Each address gets a fair part of the time.

    :raises KafkaConnectionError: with the reason for each address, if none answers in time.
    """
    if proxy:
        return _open_through(proxy, host, port, options, deadline)
    return _first(host, port, deadline, partial(_connected, options))


def _first(
    host: str, port: int, deadline: Deadline, connect: Callable[[Address, Deadline], socket.socket]
) -> socket.socket:
    """Return the result of ``connect`` for the first address of a host that answers."""
    failures: list[str] = []
    addresses = _addresses(host, port, deadline)
    for address in addresses:
        share_s = deadline.remaining / (len(addresses) - len(failures))
        share = Deadline.after(max(share_s, _MIN_SHARE_S))
        try:
            return connect(address, share)
        except (OSError, OverflowError) as error:  # a port that no listener can have
            failures.append(_failure(host, address, error))
    raise kafka_errors.KafkaConnectionError("; ".join(failures[-MAX_NAMED:]))


def _addresses(host: str, port: int, deadline: Deadline) -> Sequence[Address]:
    try:
        return resolve(host, port, deadline)
    except OSError as error:
        text = f"the name '{host}' cannot be resolved: {error.strerror or error}"
        raise kafka_errors.KafkaConnectionError(text) from error
    except UnicodeError as error:
        # Metadata may name any host.
        raise kafka_errors.KafkaConnectionError(f"no host can be named {host!r}") from error


def _connected(
    options: Sequence[SocketOption], address: Address, deadline: Deadline
) -> socket.socket:
    family, kind, protocol, _, place = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        for option in options:
            made.setsockopt(*option)
        _connect(made, place, deadline)
    except BaseException:
        made.close()
        raise
    return made


def _connect(made: socket.socket, place: tuple[Any, ...], deadline: Deadline) -> None:
    code = made.connect_ex(place)
    if code in _IN_PROGRESS:
        await_ready(made, EVENT_WRITE, deadline, "it did not answer in time")
        code = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code not in (0, errno.EISCONN):
        raise OSError(code, os.strerror(code))


def _failure(host: str, address: Address, error: Exception) -> str:
    """Return why an address of a host cannot be connected to."""
    ip = address[4][0]
    code = errno.errorcode.get(getattr(error, "errno", None) or 0)
    reason = f"{os.strerror(getattr(errno, code))} ({code})" if code else str(error)
    return reason if ip == host else f"{ip}: {reason}"


def _open_through(
    proxy: str, host: str, port: int, options: Sequence[SocketOption], deadline: Deadline
) -> socket.socket:
    """Return a socket that a proxy has connected; only ``socks5`` resolves the name here.

    :raises KafkaConnectionError: if the proxy fails; the reason has no password.
    """
    from python_socks import ProxyError, ProxyType
    from python_socks.sync import Proxy

    url = urlsplit(proxy)
    kind = ProxyType.HTTP if url.scheme == "http" else ProxyType.SOCKS5
    user, password = (unquote(text) if text else None for text in (url.username, url.password))
    place, number = url.hostname or "", url.port or 0
    target = _addresses(host, port, deadline)[0][4][0] if url.scheme == "socks5" else host

    def connect(address: Address, share: Deadline) -> socket.socket:
        opened = _connected(options, address, share)
        there: Any = _ProxyConnection(opened, share)
        proxy = Proxy(kind, place, number, user, password, rdns=True, forward=there)
        try:
            proxy.connect(target, port)  # closes the socket if it raises
        except (ProxyError, ValueError) as error:
            raise ConnectionError(str(error)) from error
        opened.setblocking(False)
        return opened

    try:
        return _first(place, number, deadline, connect)
    except kafka_errors.KafkaConnectionError as error:
        text = f"the proxy at {place}:{number} does not connect: {error.args[0]}"
        raise kafka_errors.KafkaConnectionError(text) from error


@final
class _ProxyConnection:
    """A connection to a proxy, for python-socks, with one deadline for all messages.

    python-socks's own connection has the time-out for each part of a message.
    """

    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._socket = opened
        self._deadline = deadline
        self.close = opened.close

    def connect(self, **_: object) -> _ProxyConnection:
        return self

    def sendall(self, data: bytes) -> None:
        self._limited().sendall(data)

    def recv(self, size: int) -> bytes:
        return self._limited().recv(size)

    def _limited(self) -> socket.socket:
        self._socket.settimeout(max(self._deadline.remaining, _MIN_SHARE_S))
        return self._socket


def encrypted(
    opened: socket.socket, host: str, context: CurrentContext, deadline: Deadline
) -> ssl.SSLSocket:
    """Return a socket whose TLS handshake is done; the one that it is given is closed otherwise.

    :raises KafkaConnectionError: if the handshake fails, with OpenSSL's error as its cause.
    """
    with ExitStack() as failing:
        failing.callback(opened.close)
        wrapped = context.wrap_socket(
            opened, server_hostname=host.rstrip("."), do_handshake_on_connect=False
        )
        failing.callback(wrapped.close)
        try:
            _shake_hands(wrapped, deadline)
        except OSError as error:
            raise kafka_errors.KafkaConnectionError(f"TLS handshake failed: {error}") from error
        failing.pop_all()
    return wrapped


def _shake_hands(wrapped: ssl.SSLSocket, deadline: Deadline) -> None:
    while True:
        try:
            return wrapped.do_handshake()
        except ssl.SSLWantReadError:
            events = EVENT_READ
        except ssl.SSLWantWriteError:
            events = EVENT_WRITE
        await_ready(wrapped, events, deadline, "it timed out")
