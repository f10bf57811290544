"""librdkafka's handles, which ask for tokens by themselves and report why there is none."""

import gc
import sys
import time
import weakref
from types import ModuleType
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, Producer

from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.handle import Handle, TokenRefresh, set_token
from pyspark_kafka.adapters.confluent.librdkafka import CONSUMER, PRODUCER
from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.security.token_provider import Token

from ..options import source_of

TOKEN = "not-to-be-shown"  # noqa: S105


class Issuer:
    """Issues tokens that are valid for a second, until it has none left."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __call__(self) -> Token:
        if self.error is not None:
            raise self.error
        return Token(TOKEN, int(1_000 * time.time()) + 1_000, extensions=(("pool", "p"),))


@pytest.fixture
def issuer(monkeypatch):
    made = Issuer()
    module = ModuleType("issuer_of_a_test")
    module.__dict__["issue"] = made
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield made
    token_provider.cache_clear()


@pytest.fixture
def cluster(issuer):  # noqa: ARG001  # its settings name the issuer
    """Return a cluster of the issuer, which is never reached."""
    [port] = free_ports(1)
    options = {
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "tokenProvider": "issuer_of_a_test:issue",
    }
    return Cluster(source_of("confluent", options, UNRESTRICTED))


@pytest.fixture
def handle(cluster):
    made = new_handle(cluster)
    yield made
    made.close()


def new_handle(cluster: Cluster, kind: int = PRODUCER) -> Handle:
    settings = cluster.settings
    config = settings.config({}, {})
    return Handle(cluster.library, kind, settings, cluster.errors, config)


def await_error(handle: Handle, cluster: Cluster, text: str) -> None:
    """Handle the events of a handle until its last error has a text."""
    deadline = Deadline.after(20)
    while text not in cluster.errors.last_error:
        assert not deadline.has_passed
        handle.poll(100)


def test_no_client_without_a_token(issuer, cluster):
    issuer.error = AuthenticationError("the issuer", "OAUTHBEARER", "", "sealed")
    with pytest.raises(AuthenticationError, match="sealed"):
        cluster.make(Producer, {})
    with pytest.raises(AuthenticationError, match="sealed"):
        new_handle(cluster)


def test_a_handle_says_why_it_has_no_token(issuer, cluster, handle):
    issuer.error = TokenUnavailableError("the issuer", "sealed")
    await_error(handle, cluster, "There is no token from the issuer for the login: sealed")
    assert TOKEN not in cluster.errors.last_error


def test_a_token_that_librdkafka_does_not_accept(issuer, handle):
    assert set_token(handle.library, handle.client, issuer()) == ""
    assert "expire" in set_token(handle.library, handle.client, Token(TOKEN, 1_000))


def test_a_refused_token_is_not_kept(issuer, cluster):
    tokens = cluster.settings.tokens
    tokens.token()
    issuer.error = TokenUnavailableError("the issuer", "asked again")
    refusal = "SASL authentication error: Authentication failed: invalid_token (after 3ms)"
    cluster.errors.remember_error(KafkaError(KafkaError._AUTHENTICATION, refusal))
    with pytest.raises(TokenUnavailableError, match="asked again"):
        tokens.token()


def test_the_callback_for_tokens_goes_with_its_handle(cluster):
    """A task that makes a producer for each partition would keep ever more of them."""
    handle = new_handle(cluster)
    refresh = weakref.ref(handle._parts.refresh)
    assert refresh() is not None
    handle.close()
    gc.collect()
    assert refresh() is None


def test_an_unexpected_error_of_an_issuer_is_reported(cluster, handle):
    """By its name: librdkafka would wait for a token in vain, and the text may hold a secret."""
    provider = Mock(token=Mock(side_effect=KeyError(TOKEN)))
    refresh = TokenRefresh(handle.library, provider)
    refresh._refresh(handle.client, b"", 0)
    await_error(handle, cluster, "KeyError")
    assert TOKEN not in cluster.errors.last_error


@pytest.mark.parametrize(("kind", "owner"), [(PRODUCER, "producer"), (CONSUMER, "reader")])
def test_a_closed_handle_is_not_used(cluster, kind, owner):
    """Its address may be another object's by then."""
    handle = new_handle(cluster, kind)
    handle.close()
    handle.close()
    assert not handle.is_open
    with pytest.raises(RuntimeError, match=f"the {owner} is closed, or belongs to another process"):
        handle.poll(0)
