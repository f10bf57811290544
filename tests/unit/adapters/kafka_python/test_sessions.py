"""How long a connection is used, whose login the broker has bounded in time."""

import socket
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.kafka_python.connections import RawConnection


@pytest.fixture
def clock(monkeypatch):
    """Return the time by which connections go, which stands still."""
    now = SimpleNamespace(seconds=1_000.0)
    monkeypatch.setattr(
        "pyspark_kafka.adapters.kafka_python.connections.time.monotonic", lambda: now.seconds
    )
    return now


@pytest.fixture
def client_socket():
    """Yield a socket whose other end stays open."""
    client, broker = socket.socketpair()
    with client, broker:
        yield client


def connection(client_socket: socket.socket, session_ms: int) -> RawConnection:
    """Return a connection that kafka-python opened and logged in on."""
    transport = Mock(
        take_socket=lambda: client_socket, _read_task=None, host_port=lambda: "broker:9092<-1"
    )
    reauth = Mock(session_lifetime_ms=session_ms)
    return RawConnection(Mock(transport=transport, _reauth=reauth), 1_000)


def test_a_session_is_left_before_it_ends(clock, client_socket):
    connected = connection(client_socket, 10_000)
    clock.seconds += 8.4
    assert not connected.is_stale
    clock.seconds += 0.2
    assert connected.is_expired
    assert connected.is_stale


def test_a_session_without_an_end(clock, client_socket):
    connected = connection(client_socket, 0)
    clock.seconds += 1e9
    assert not connected.is_stale
