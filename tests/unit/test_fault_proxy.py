"""The proxy of the soak does to connections what its rules say."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from pyspark_kafka.brokers.settings import free_ports
from tests.slowness import bound_s

from ..servers.fault_proxy import OPEN, FaultProxies, FaultProxy, Rules, Traffic

TIMEOUT_S = bound_s(5)
SHORT_S = 0.1
HELD = Traffic(is_held=True)


@pytest.fixture
def proxy():
    with FaultProxies() as proxies, echo_server() as target:
        yield proxies.add(free_ports(1)[0], target)


@contextmanager
def echo_server() -> Iterator[int]:
    """Run a server that sends back what it gets, and return its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(65_536):
                connection.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=echo, args=listener.accept()[:1], daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()


def connect(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=TIMEOUT_S)


def receive(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (data := client.recv(count - len(received))):
        received += data
    return received


def test_bytes_pass_in_both_directions_until_an_end(proxy):
    sent = bytes(range(256)) * 8_000
    with connect(proxy) as client:
        sending = threading.Thread(target=client.sendall, args=[sent])
        sending.start()
        assert receive(client, len(sent)) == sent
        sending.join()
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


@pytest.mark.parametrize("rules", [Rules(HELD, HELD), Rules(HELD), Rules(to_client=HELD)])
def test_what_is_held_comes_afterwards(proxy, rules):
    with connect(proxy) as client:
        client.sendall(b"before")
        assert receive(client, 6) == b"before"
        proxy.set(rules)
        client.sendall(b"held")
        client.settimeout(SHORT_S)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(TIMEOUT_S)
        proxy.set(OPEN)
        assert receive(client, 4) == b"held"


def test_a_delay_is_between_what_is_sent_and_what_comes(proxy):
    proxy.set(Rules(to_server=Traffic(delay_s=SHORT_S), to_client=Traffic(delay_s=SHORT_S)))
    with connect(proxy) as client:
        began = time.monotonic()
        client.sendall(b"late")
        assert receive(client, 4) == b"late"
        assert time.monotonic() - began >= 2 * SHORT_S


def test_the_proxy_limits_how_many_bytes_come_in_a_second(proxy):
    proxy.set(Rules(to_client=Traffic(bytes_per_s=1_000)))
    with connect(proxy) as client:
        began = time.monotonic()
        client.sendall(b"x" * 300)
        assert len(receive(client, 300)) == 300
        assert time.monotonic() - began >= 2 * SHORT_S


def test_a_connection_is_reset_in_the_middle(proxy):
    proxy.set(Rules(to_client=Traffic(reset_after=3)))
    for _ in range(2):
        with connect(proxy) as client:
            client.sendall(b"abcdef")
            assert receive(client, 3) == b"abc"
            with pytest.raises(ConnectionResetError):
                client.recv(1)


def test_a_refusal_resets_what_is_connected_and_nothing_listens(proxy):
    with connect(proxy) as client:
        client.sendall(b"before")
        assert receive(client, 6) == b"before"
        proxy.set(Rules(refuses=True))
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.set(OPEN)
    with connect(proxy) as client:
        client.sendall(b"after")
        assert receive(client, 5) == b"after"


def test_a_client_of_a_server_that_is_down_is_reset():
    """A proxy accepts and then resets, as a connection to nothing ends.

    The reset may arrive before ``connect`` has returned, which then raises it.
    """
    target, port = free_ports(2)
    with FaultProxies() as proxies:
        proxy = proxies.add(port, target)
        with pytest.raises(ConnectionResetError), connect(proxy) as client:
            client.recv(1)
        assert proxy.connections == 1
