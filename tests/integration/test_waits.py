"""How long calls wait for brokers that stall, and what they leave behind."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.adapters.confluent.client import CLIENT as CONFLUENT
from pyspark_kafka.adapters.kafka_python.client import CLIENT as KAFKA_PYTHON
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.testing import await_until
from tests.servers.silent_listeners import silent_listener, trickling_listener

from .uses import USES

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S: Final = 0.5

TIMEOUTS: Final = {
    f"kafka.{name}": str(round(1_000 * TIMEOUT_S))
    for name in (
        "default.api.timeout.ms",
        "request.timeout.ms",
        "delivery.timeout.ms",
        "max.block.ms",
        "socket.connection.setup.timeout.ms",
    )
}

SLACK_S: Final = 1.0
"""What a machine with much to do may add."""

MAX_TIMEOUTS: Final = {"continuous": 4, "exactly once": 4}
"""How many time-outs a use may take that consists of several calls; others take two."""

CLIENTS: Final = ("kafka-python",)

BEGINNINGS: Final = {"PLAINTEXT": b"\0\0\0\x64", "SSL": b"\x16\x03\x03\0\x64"}
"""How a frame or a TLS record of 100 bytes begins."""


@pytest.fixture(scope="module", autouse=True)
def modules() -> None:
    """Import what a first call imports, which is no wait for a broker."""
    for client in (CONFLUENT, KAFKA_PYTHON):
        if client.preload is not None:
            client.preload()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Expect that a test leaves as many threads, sockets and files as there were."""
    threads, files = set(threading.enumerate()), _open_files()
    yield
    # A thread that has closed its socket may take a moment to end.
    await_until(lambda: set(threading.enumerate()) <= threads and _open_files() <= files, 5)


@contextmanager
def _in_time(timeouts: int) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < timeouts * TIMEOUT_S + SLACK_S


def _options(client: str, address: str, protocol: str) -> dict[str, str]:
    return {
        **TIMEOUTS,
        "client": client,
        "kafka.bootstrap.servers": address,
        "kafka.security.protocol": protocol,
    }


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("protocol", BEGINNINGS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_broker_that_never_answers(client: str, use: str, protocol: str) -> None:
    """A TLS handshake has the same deadline as a request."""
    with silent_listener() as listener:
        options = _options(client, listener.address, protocol)
        with _in_time(MAX_TIMEOUTS.get(use, 2)), pytest.raises(BrokerUnreachableError):
            USES[use](options, "t")
        assert listener.connections


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("protocol", BEGINNINGS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_broker_that_sends_a_byte_at_a_time(client: str, protocol: str) -> None:
    """The deadline is the one of the whole answer, and of the whole handshake."""
    with trickling_listener(BEGINNINGS[protocol] + bytes(100)) as listener:
        options = _options(client, listener.address, protocol)
        with _in_time(2), pytest.raises(BrokerUnreachableError):
            USES["plan"](options, "t")
