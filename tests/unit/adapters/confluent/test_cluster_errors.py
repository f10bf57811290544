"""Errors from librdkafka's events: refused logins, failed handshakes and missing rights."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.cluster_errors import (
    is_plaintext,
    is_tls_failure,
    login_refusal,
    tls_error,
)
from pyspark_kafka.domain.cluster import refusal
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    Fault,
    KafkaRequestError,
    PysparkKafkaError,
)
from pyspark_kafka.domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
)
from pyspark_kafka.domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    group_right,
    topic_right,
    transactional_id_right,
)

from ..options import ADA, source_of

BROKER = "sasl_ssl://b:9092/bootstrap: "
WRONG_PASSWORD = (
    f"{BROKER}SASL authentication error: Authentication failed: Invalid username or password "
    "(after 301ms in state AUTH_REQ)"
)
ALERT = (
    f"{BROKER}Receive failed: ssl/record/rec_layer_s3.c:918:ssl3_read_bytes "
    "error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert number 42 "
    "(after 0ms in state APIVERSION_QUERY)"
)

AUTHENTICATION = KafkaError._AUTHENTICATION
TRANSPORT = KafkaError._TRANSPORT
ALL_DOWN = KafkaError._ALL_BROKERS_DOWN


@pytest.fixture
def cluster():
    """Return a cluster of a user, which is never reached."""
    return Cluster(source_of("confluent", ADA))


@pytest.fixture
def errors(cluster):
    return cluster.errors


def events(section: str) -> list[tuple[KafkaError, str | None]]:
    """Return events of librdkafka's, and what is expected of each."""
    text = (Path(__file__).parent / "events.txt").read_text().partition(f"[{section}]\n")[2]
    lines = text.partition("\n#")[0].splitlines()
    rows = [[part.strip() for part in line.split(" |")] for line in lines]
    return [(KafkaError(getattr(KafkaError, code), told), to or None) for code, told, to in rows]


@pytest.mark.parametrize(("error", "reason"), events("login"))
def test_what_refuses_a_login(error, reason):
    """A broker's answer refuses it; a connection that is lost meanwhile does not."""
    assert login_refusal(error) == reason


def test_a_login_that_is_renewed_too_soon():
    """A broker refuses it as one without SASL does, and it is no refusal of a login."""
    text = (
        "SASL OAUTHBEARER mechanism handshake failed: Broker: Request not valid in current SASL "
        "state: broker's supported mechanisms: "
    )
    error = KafkaError(AUTHENTICATION, f"{BROKER}{text}")
    assert login_refusal(error) == text
    assert login_refusal(error, is_known=True) is None


@pytest.mark.parametrize(("error", "failure"), events("handshake"))
def test_what_fails_a_handshake(error, failure):
    assert is_tls_failure(error) is (failure is not None)
    if failure is not None:
        assert tls_error("b:9092", error.str(), {}).failure is TlsFailure[failure]


def test_a_reason_is_openssls_alone():
    told = str(tls_error("b:9092", ALERT, {}))
    assert (
        "No TLS connection to b:9092: ssl/tls alert bad certificate: SSL alert number 42. The"
        in told
    )


def test_a_refused_login_is_remembered(cluster, monkeypatch):
    """No client is made that would log in again, for a time."""
    errors = cluster.errors
    errors.raise_refusal()
    errors.remember_error(KafkaError(AUTHENTICATION, WRONG_PASSWORD))
    errors.remember_error(KafkaError(ALL_DOWN, "1/1 brokers are down"))
    for _ in range(2):
        with pytest.raises(
            AuthenticationError, match="the user 'ada' by PLAIN at b:9092"
        ) as raised:
            cluster.make(dict, {})
        assert "secret" not in str(raised.value)
    monkeypatch.setattr(refusal, "REFUSED_LOGIN_S", 0.0)
    errors.remember_error(KafkaError(AUTHENTICATION, WRONG_PASSWORD))
    errors.raise_refusal()


def test_a_failed_handshake_is_raised_once(errors):
    """The certificate may be renewed until the next attempt."""
    errors.remember_error(KafkaError(TRANSPORT, ALERT))
    error = errors.error("a request", KafkaError(KafkaError._TIMED_OUT))
    assert isinstance(error, TlsError)
    error = errors.error("a request", KafkaError(KafkaError._TIMED_OUT))
    assert isinstance(error, BrokerUnreachableError)


def test_a_handshake_with_replaced_certificates_is_forgotten(errors, cluster, monkeypatch):
    cluster.settings.config({}, {})
    errors.remember_error(KafkaError(TRANSPORT, ALERT))
    monkeypatch.setattr(cluster.settings, "used", {})
    errors.raise_refusal()


ALERT_BYTES = bytes.fromhex("15 03 03 00 02 02 28")


@contextmanager
def listener(answer: bytes) -> Iterator[str]:
    """Yield the address of a listener that answers each connection's request, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with listening.accept()[0] as connection:
                        connection.recv(100)
                        connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def after_all_are_down(servers: str, **settings: str) -> PysparkKafkaError | None:
    """Return what the errors of a cluster raise after librdkafka has reached no broker."""
    options = {"kafka.bootstrap.servers": servers, **settings}
    errors = Cluster(source_of("confluent", options)).errors
    errors.remember_error(KafkaError(ALL_DOWN, "1/1 brokers are down"))
    try:
        errors.raise_refusal()
    except PysparkKafkaError as error:
        return error
    return None


def test_a_listener_that_hangs_up_on_a_client_without_tls_and_login():
    with listener(b"") as address:
        error = after_all_are_down(address)
    assert isinstance(error, BrokerUnreachableError)
    assert f"{address} closed the connection before its first answer" in str(error)
    assert "set 'kafka.security.protocol'" in str(error)
    assert error.fault is Fault.USER
    with listener(ALERT_BYTES) as address:
        error = after_all_are_down(address)
    assert isinstance(error, TlsError)
    assert (error.failure, error.fault) == (TlsFailure.TLS_EXPECTED, Fault.USER)


def test_listeners_that_answer_or_are_down_expect_nothing_else():
    with listener(b"\0\0\0\x08\0\0\0\x01") as answering, listener(b"") as closing:
        for servers in (answering, f"{closing},{answering}", f"{closing},127.0.0.1:1"):
            assert after_all_are_down(servers) is None
        encrypted = {"kafka.security.protocol": "SSL"}
        assert after_all_are_down(closing, **encrypted) is None


TOPIC = topic_right(Operation.WRITE, "t")
GROUP = group_right(Operation.READ, "g")
TRANSACTIONAL_ID = transactional_id_right(Operation.WRITE, "id")
NEEDED = (TOPIC, GROUP, TRANSACTIONAL_ID, IDEMPOTENT_WRITE)


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, [TOPIC]),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, [GROUP]),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, [TRANSACTIONAL_ID]),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, list(NEEDED)),
    ],
)
def test_missing_rights_are_those_on_what_was_refused(errors, code, missing):
    error = errors.error("a request", KafkaError(code), *NEEDED)
    assert isinstance(error, AuthorizationError)
    assert list(error.rights) == missing
    assert error.principal == "User:ada"


def test_a_refusal_without_a_known_right_is_a_failed_request(errors):
    error = errors.error("a request", KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), TOPIC)
    assert isinstance(error, KafkaRequestError)


UNTRUSTED = (
    "sasl_ssl://localhost:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::"
    "certificate verify failed: broker certificate could not be verified, verify that"
)


@pytest.mark.parametrize("place", ["probe", ".", "no/such/file"])
@pytest.mark.parametrize("address", ["localhost:1", "localhost:99999", f"{'x' * 64}.example:1"])
def test_an_untrusted_certificate_is_an_error_of_tls(place, address):
    event = UNTRUSTED.replace("localhost:1", address)
    error = tls_error("b:9092", event, {"ssl.ca.location": place})
    assert error.failure is TlsFailure.CERTIFICATE_NOT_TRUSTED


@pytest.mark.parametrize("address", ["localhost:99999", f"{'x' * 64}.example:1"])
def test_an_address_that_cannot_be_one_is_not_plaintext(address):
    text = f"ssl://{address}/bootstrap: connecting to a PLAINTEXT broker listener?"
    assert not is_plaintext(KafkaError(TRANSPORT, text))
