"""librdkafka's handles ask for tokens by themselves, and report why there is none."""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Producer

from pyspark_kafka.adapters.confluent.client_handle import handle_event, new_client
from pyspark_kafka.adapters.confluent.connection import Connection
from pyspark_kafka.adapters.confluent.librdkafka import PRODUCER, load
from pyspark_kafka.adapters.confluent.tokens import TokenRefresh, set_token
from pyspark_kafka.adapters.security.tokens import token_provider
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.security.token_provider import Token

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator

    from pyspark_kafka.ports.security.token_provider import TokenProvider

TOKEN = "not-to-be-shown"  # noqa: S105


class Issuer:
    """Issues tokens of a second, until it has none any more."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __call__(self) -> Token:
        if self.error is not None:
            raise self.error
        return Token(TOKEN, int(1_000 * time.time()) + 1_000, extensions=(("pool", "p"),))


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """Have a module with an issuer."""
    made = Issuer()
    module = ModuleType("issuer_of_a_test")
    module.__dict__["issue"] = made
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield made
    token_provider.cache_clear()


def connection() -> Connection:
    [port] = free_ports(1)
    options = {
        "client": "confluent",
        "subscribe": "t",
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "tokenProvider": "issuer_of_a_test:issue",
    }
    return Connection(parse_source_options(options, QueryKind.STREAM, UNRESTRICTED))


def await_error(library: ctypes.CDLL, queue: int, made: Connection, text: str) -> None:
    """Handle the events of a handle until its last error has a text."""
    deadline = Deadline.after(20)
    while text not in made.last_error:
        assert not deadline.has_passed
        if event := library.rd_kafka_queue_poll(queue, 100):
            handle_event(library, event, "a handle", made)
            library.rd_kafka_event_destroy(event)


def test_no_client_without_a_token(issuer: Issuer) -> None:
    """The refusal of the first token is raised where a client is made."""
    issuer.error = AuthenticationError("the issuer", "OAUTHBEARER", "", "sealed")
    made = connection()
    with pytest.raises(AuthenticationError, match="sealed"):
        made.make(Producer, {})
    with pytest.raises(AuthenticationError, match="sealed"):
        new_client(load(), PRODUCER, made, made.config({}, {}))


def test_a_handle_says_why_it_has_no_token(issuer: Issuer) -> None:
    """A handle asks for the next token by itself; the reason for none is its last error."""
    library, made = load(), connection()
    client, queue = new_client(library, PRODUCER, made, made.config({}, {}))
    issuer.error = TokenUnavailableError("the issuer", "sealed")
    try:
        await_error(library, queue, made, "There is no token from the issuer for the login: sealed")
        assert TOKEN not in made.last_error
    finally:
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_destroy(client)


def test_a_token_that_librdkafka_does_not_accept(issuer: Issuer) -> None:
    """It says why."""
    library, made = load(), connection()
    client, queue = new_client(library, PRODUCER, made, made.config({}, {}))
    try:
        assert set_token(library, client, issuer()) == ""
        assert "expire" in set_token(library, client, Token(TOKEN, 1_000))
    finally:
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_destroy(client)


class FailingProvider:
    """Raises what no provider should."""

    def token(self) -> Token:
        raise KeyError(TOKEN)


@pytest.mark.usefixtures("issuer")
def test_all_handles_of_a_connection_have_one_callback() -> None:
    """A task that makes a producer for each partition would keep ever more of them."""
    made = connection()
    assert made.token_refresh(load()) is made.token_refresh(load())


@pytest.mark.usefixtures("issuer")
def test_an_unexpected_error_of_an_issuer_is_reported() -> None:
    """By its name: librdkafka would wait for a token in vain, and the text may hold a secret."""
    library, made = load(), connection()
    client, queue = new_client(library, PRODUCER, made, made.config({}, {}))
    try:
        refresh = TokenRefresh(library, cast("TokenProvider", FailingProvider()))
        refresh._refresh(client, b"", 0)
        await_error(library, queue, made, "KeyError")
        assert TOKEN not in made.last_error
    finally:
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_destroy(client)
