"""kafka-python's transports, without three faults of 3.0.12."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

HANGUPS: Final = (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)
"""How a TLS handshake ends if the broker ends, or does not speak TLS."""

_PROBE_S: Final = 2.0


class _LastBytes:
    """Receives all bytes before the end of a connection.

    kafka-python drops what comes together with it: that is how brokers refuse a login
    (``Selector.maybeDelayCloseOnAuthenticationFailure``).
    """

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, error = super()._sock_recv()  # type: ignore[misc]  # of the transport
        # The next call has the error again.
        return received, None if received else error


@final
class PlainTransport(_LastBytes, KafkaTCPTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport without TLS."""


@final
class TlsTransport(_LastBytes, KafkaSSLTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport with TLS."""


async def open_transport(
    network: Any, node: Any, config: Mapping[str, Any], timeout_at: float | None, *, with_tls: bool
) -> Any:
    """Return a transport that is connected, and whose handshake is done.

    :raises KafkaError: if it cannot be connected.
    :raises OSError: if the handshake fails.
    """
    connected = await _connect(network, node, config, timeout_at)
    if not with_tls:
        return PlainTransport(network, connected, host=node.host)
    settings = {name: value for name, value in config.items() if name.startswith("ssl_")}
    transport = TlsTransport(network, connected, host=node.host, **settings)
    try:
        await transport.handshake()
    except BaseException:
        # kafka-python leaves the socket to the garbage collector.
        transport.close()
        raise
    return transport


async def _connect(
    network: Any, node: Any, config: Mapping[str, Any], timeout_at: float | None
) -> socket.socket:
    """Return a connected socket, to the first address that can be connected to."""
    options, proxy = config["socket_options"], config["proxy_url"]
    connected: socket.socket
    if proxy:
        connected = await create_connection(
            network, node.host, node.port, options, proxy_url=proxy, timeout_at=timeout_at
        )
        return connected
    sockets = _ClosedSockets()
    error: Exception = kafka_errors.KafkaConnectionError("DNS Resolution failure")
    for address in sockets.dns_lookup(node.host, node.port):
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


class _ClosedSockets(KafkaNetSocket):  # type: ignore[misc]  # kafka-python has no types
    """Connects sockets, and closes those that are not connected.

    kafka-python leaves them to the garbage collector: of refused connections, and of those that are
    given up while they are made.
    """

    SCHEMES = ()

    async def sock_connect(
        self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None
    ) -> socket.socket:
        try:
            connected: socket.socket = await super().sock_connect(
                net, sock, sockaddr, timeout_at=timeout_at
            )
        except BaseException:
            sock.close()
            raise
        return connected


async def answers_without_tls(network: Any, node: Any, config: Mapping[str, Any]) -> bool:
    """Return whether a broker answers a request for its versions without TLS."""
    timeout_at = time.monotonic() + _PROBE_S
    plain = {**config, "security_protocol": "PLAINTEXT", "metrics": None}
    connection = KafkaConnection(network, node_id=node.node_id, **plain)
    try:
        transport = await open_transport(network, node, config, timeout_at, with_tls=False)
    except kafka_errors.KafkaError:
        return False
    connection.connection_made(transport)
    await connection.initialize(timeout_at=timeout_at)
    answers: bool = connection.connected
    connection.close()
    return answers
