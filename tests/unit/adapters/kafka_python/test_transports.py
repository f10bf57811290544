import gc
import socket
import ssl
import struct
import types
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest
from kafka.errors import KafkaProtocolError
from kafka.net.selector import NetworkSelector

from pyspark_kafka.adapters.kafka_python.transports import (
    OpenSockets,
    PlainTransport,
    open_transport,
)
from pyspark_kafka.ports.clock import Deadline


@types.coroutine
def _never(*_arguments: Any, **_named: Any) -> Generator[None]:
    """Wait for what an event loop that has stopped does not tell."""
    yield


STOPPED_NETWORK = Mock(
    wait_read=_never, wait_write=_never, unregister_event=Mock(side_effect=KeyError)
)
"""An event loop that resumes no coroutine."""


@pytest.fixture
def listener():
    """Yield a socket to which connections are made, and which answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def _begin(
    listener: socket.socket, owner: OpenSockets, *, with_tls: bool
) -> Coroutine[Any, Any, Any]:
    host, port = listener.getsockname()
    node = types.SimpleNamespace(host=host, port=port)
    config: dict[str, Any] = {
        "socket_options": [],
        "proxy_url": None,
        "ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    }
    return open_transport(STOPPED_NETWORK, node, config, None, owner, with_tls=with_tls)


def _is_closed(listener: socket.socket) -> bool:
    """Return whether the other end of the next connection is closed."""
    accepted, _ = listener.accept()
    with accepted:
        accepted.settimeout(10)
        while received := accepted.recv(4_096):
            assert received
        return True


@pytest.mark.parametrize("steps", [1, 2], ids=["connect", "handshake"])
def test_a_connection_that_is_never_finished_is_closed_with_its_manager(listener, steps):
    """No socket is left to the garbage collector, which would warn."""
    owner = OpenSockets()
    opening = _begin(listener, owner, with_tls=True)
    for _ in range(steps):
        opening.send(None)
    owner.close()
    assert _is_closed(listener)
    cycle: dict[str, Any] = {"coroutine": opening}
    cycle["self"] = cycle
    del opening, cycle
    gc.collect()


def test_a_transport_with_bytes_to_send_is_closed_at_once(listener):
    owner = OpenSockets()
    transport = _opened(listener, owner)
    transport.write(b"never sent")
    transport.close()
    owner.close()
    assert _is_closed(listener)


def _opened(listener: socket.socket, owner: OpenSockets) -> Any:
    async def keep() -> None:
        opened.append(await _begin(listener, owner, with_tls=False))

    opened: list[Any] = []
    opening = keep()
    with suppress(StopIteration):
        while True:
            opening.send(None)
    return opened[0]


class Undecodable:
    """A connection of kafka-python for which no response can be decoded."""

    _sensors = None

    def __init__(self, raised: Exception) -> None:
        self._raised = raised
        self.lost: list[Exception | None] = []

    def data_received(self, _received: bytes) -> None:
        raise self._raised

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)


@pytest.mark.parametrize(
    "raised", [struct.error("1 byte"), IndexError("out of bounds"), OverflowError("too large")]
)
def test_a_connection_whose_responses_cannot_be_decoded_is_closed(raised):
    network = NetworkSelector()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    connection = Undecodable(raised)
    transport = PlainTransport(network, ours, host="broker")
    transport.belong_to(OpenSockets())
    transport.set_protocol(connection)
    transport.resume_reading()
    with theirs:
        theirs.sendall(b"response")
        deadline = Deadline.after(10)
        while not connection.lost and not deadline.has_passed:
            network.poll(timeout_ms=100)
        [error] = connection.lost
        assert isinstance(error, KafkaProtocolError)
        assert theirs.recv(1) == b""
    network.close()
