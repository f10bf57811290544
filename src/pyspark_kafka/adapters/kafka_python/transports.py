"""kafka-python's transports, without four faults of 3.0.12."""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast, final

from kafka import errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from ...ports.clock import Deadline
from ..name_resolution import Address, resolve
from .responses import INVALID

_PROBE_S: Final = 2.0


@final
class OpenSockets:
    """The sockets of a manager: its transports', and sockets that are being connected.

    kafka-python leaves some to the garbage collector. A coroutine that connects is never resumed
    once the event loop has stopped, and a closed transport first waits until all bytes are sent.
    """

    def __init__(self) -> None:
        self._connecting: set[socket.socket] = set()
        self._transports: set[_Transport] = set()

    @contextmanager
    def connecting(self, connected: socket.socket) -> Iterator[None]:
        """Close a socket if the block raises, or if ``close`` is called before its end."""
        self._connecting.add(connected)
        try:
            yield
        except BaseException:
            connected.close()
            raise
        finally:
            self._connecting.discard(connected)

    def add(self, transport: _Transport) -> None:
        """Add a transport, until it is closed."""
        self._transports.add(transport)

    def remove(self, transport: _Transport) -> None:
        """Remove a transport; a second call does nothing."""
        self._transports.discard(transport)

    def close(self) -> None:
        """Close all, without waiting until bytes are sent."""
        for connecting in tuple(self._connecting):
            connecting.close()
        for transport in tuple(self._transports):
            transport.close_at_once()


class _Transport:
    """What both transports of kafka-python lack."""

    _owner: OpenSockets
    _sock: socket.socket | None

    def belong_to(self, owner: OpenSockets) -> None:
        """Be closed with other sockets; call it once, before anything else."""
        self._owner = owner
        owner.add(self)

    def close_at_once(self) -> None:
        """Close the socket, without waiting until bytes are sent."""
        self._close()

    def _close(self, error: Exception | None = None) -> None:
        self._owner.remove(self)
        super()._close(error)  # type: ignore[misc]  # of the transport

    async def _read_from_sock(self) -> None:
        """Receive until the end of the connection, or until a response cannot be decoded.

        3.0.12 expects ``KafkaProtocolError`` alone: others end the task that receives, so that
        requests wait for responses until their time is up.
        """
        try:
            await super()._read_from_sock()  # type: ignore[misc]  # of the transport
        except INVALID as error:
            problem = kafka_errors.KafkaProtocolError(f"a response cannot be decoded: {error!r}")
            self.abort(error=problem)  # type: ignore[attr-defined]  # of the transport

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """Receive all bytes before the end of a connection.

        kafka-python drops what comes together with it: that is how brokers refuse a login
        (``Selector.maybeDelayCloseOnAuthenticationFailure``).
        """
        received, error = super()._sock_recv()  # type: ignore[misc]  # of the transport
        # The next call has the error again.
        return received, None if received else error


@final
class PlainTransport(_Transport, KafkaTCPTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport without TLS."""


@final
class TlsTransport(_Transport, KafkaSSLTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport with TLS."""

    _net: Any

    async def handshake_until(self, timeout_at: float | None) -> None:
        """Finish the handshake before a time of ``time.monotonic``, for which 3.0.12 has none.

        :raises KafkaConnectionError: if the broker does not answer in time.
        :raises OSError: if the handshake fails.
        """
        if self._sock is None:
            raise kafka_errors.KafkaConnectionError("the connection is closed")
        try:
            await self._shake_hands(cast("ssl.SSLSocket", self._sock), timeout_at)
        except kafka_errors.KafkaTimeoutError as error:
            raise kafka_errors.KafkaConnectionError("TLS handshake timed out") from error

    async def _shake_hands(self, connected: ssl.SSLSocket, timeout_at: float | None) -> None:
        while True:
            try:
                connected.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(connected, timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(connected, timeout_at)
            else:
                return


async def open_transport(
    network: Any,
    node: Any,
    config: Mapping[str, Any],
    timeout_at: float | None,
    owner: OpenSockets,
    *,
    with_tls: bool,
) -> PlainTransport | TlsTransport:
    """Return a transport that is connected, and whose handshake is done.

    :raises KafkaError: if it cannot be connected.
    :raises OSError: if the handshake fails.
    """
    connected = await _connect(network, node, config, timeout_at, owner)
    with owner.connecting(connected):
        transport = _transport(network, connected, node.host, config, with_tls=with_tls)
    transport.belong_to(owner)
    try:
        if isinstance(transport, TlsTransport):
            await transport.handshake_until(timeout_at)
    except BaseException:
        transport.close_at_once()
        raise
    return transport


def _transport(
    network: Any, connected: socket.socket, host: str, config: Mapping[str, Any], *, with_tls: bool
) -> PlainTransport | TlsTransport:
    if not with_tls:
        return PlainTransport(network, connected, host=host)
    settings = {name: value for name, value in config.items() if name.startswith("ssl_")}
    return TlsTransport(network, connected, host=host, **settings)


async def _connect(
    network: Any,
    node: Any,
    config: Mapping[str, Any],
    timeout_at: float | None,
    owner: OpenSockets,
) -> socket.socket:
    """Return a connected socket, to the first address that can be connected to."""
    options, proxy = config["socket_options"], config["proxy_url"]
    connected: socket.socket
    if proxy:
        connected = await create_connection(
            network, node.host, node.port, options, proxy_url=proxy, timeout_at=timeout_at
        )
        return connected
    sockets = _Connector()
    sockets.owner = owner
    error: Exception = kafka_errors.KafkaConnectionError("DNS Resolution failure")
    for address in _addresses(node, Deadline(math.inf if timeout_at is None else timeout_at)):
        try:
            connected = await sockets.connect(network, address, options, timeout_at=timeout_at)
        except kafka_errors.KafkaTimeoutError as timeout:
            raise kafka_errors.KafkaConnectionError("Connection timed out") from timeout
        except OSError as failed:
            error = kafka_errors.KafkaConnectionError(f"unable to connect: {failed}")
        except kafka_errors.KafkaConnectionError as failed:
            error = failed
        else:
            return connected
    raise error


def _addresses(node: Any, deadline: Deadline) -> Sequence[Address]:
    try:
        return resolve(node.host, node.port, deadline)
    except OSError as error:
        text = f"DNS lookup failed for {node.host}:{node.port}: {error}"
        raise kafka_errors.KafkaConnectionError(text) from error
    except UnicodeError as error:
        # Metadata may name any host.
        raise kafka_errors.KafkaConnectionError(f"no host can be named {node.host!r}") from error


class _Connector(KafkaNetSocket):  # type: ignore[misc]  # kafka-python has no types
    """Connects sockets, and closes those that cannot be connected."""

    SCHEMES = ()
    owner: OpenSockets

    async def sock_connect(
        self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None
    ) -> socket.socket:
        with self.owner.connecting(sock):
            connected: socket.socket = await super().sock_connect(
                net, sock, sockaddr, timeout_at=timeout_at
            )
        return connected


async def answers_without_tls(
    network: Any, node: Any, config: Mapping[str, Any], owner: OpenSockets
) -> bool:
    """Return whether a broker answers a request for its versions without TLS."""
    timeout_at = time.monotonic() + _PROBE_S
    plain = {**config, "security_protocol": "PLAINTEXT", "metrics": None}
    connection = KafkaConnection(network, node_id=node.node_id, **plain)
    try:
        transport = await open_transport(network, node, config, timeout_at, owner, with_tls=False)
    except kafka_errors.KafkaError:
        return False
    connection.connection_made(transport)
    await connection.initialize(timeout_at=timeout_at)
    answers: bool = connection.connected
    connection.close()
    return answers
