"""What librdkafka's events say of refused logins, failed handshakes and missing rights."""

import pytest
from confluent_kafka import KafkaError

from pyspark_kafka.adapters.confluent import cluster_errors
from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.cluster_errors import (
    is_plaintext,
    is_tls_failure,
    login_refusal,
    tls_error,
)
from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
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
TLS = KafkaError._SSL
TRANSPORT = KafkaError._TRANSPORT
ALL_DOWN = KafkaError._ALL_BROKERS_DOWN


@pytest.fixture
def cluster():
    """Return a cluster of a user, which is never reached."""
    return Cluster(source_of("confluent", ADA))


@pytest.fixture
def errors(cluster):
    return cluster.errors


MECHANISM = "SASL PLAIN mechanism handshake failed: {} broker's supported mechanisms: "
UNSUPPORTED = f"{MECHANISM.format('Broker: Unsupported SASL mechanism:')}GSSAPI"


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (AUTHENTICATION, WRONG_PASSWORD, "Authentication failed: Invalid username or password"),
        (
            AUTHENTICATION,
            (
                f'{BROKER}SASL authentication error: {{"status":"invalid_token"}} (after 315ms in '
                "state AUTH_REQ, 2 identical error(s) suppressed)"
            ),
            '{"status":"invalid_token"}',
        ),
        (AUTHENTICATION, f"{BROKER}{UNSUPPORTED}", UNSUPPORTED),
        (AUTHENTICATION, BROKER + MECHANISM.format("Local: Broker transport failure:"), None),
        (AUTHENTICATION, f"{BROKER}Disconnected: hung up from peer in state AUTH_LEGACY", None),
        (AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: no answer", None),
        (TRANSPORT, f"{BROKER}Disconnected (after 5ms in state AUTH_REQ)", None),
        (ALL_DOWN, "1/1 brokers are down", None),
    ],
)
def test_what_refuses_a_login(code, text, reason):
    """A broker's answer refuses it; a connection that is lost meanwhile does not."""
    assert login_refusal(KafkaError(code, text)) == reason


def test_a_login_that_is_renewed_too_soon():
    """A broker refuses it as one without SASL does, and it is no refusal of a login."""
    text = (
        "SASL OAUTHBEARER mechanism handshake failed: Broker: Request not valid in current SASL "
        "state: broker's supported mechanisms: "
    )
    error = KafkaError(AUTHENTICATION, f"{BROKER}{text}")
    assert login_refusal(error) == text
    assert login_refusal(error, is_known=True) is None


def alert(text: str) -> str:
    said = f"error:0A0000F4:SSL routines::{text}"
    return f"SSL handshake failed: {said} (after 3ms in state SSL_HANDSHAKE)"


@pytest.mark.parametrize(
    ("code", "text", "failure"),
    [
        (TLS, alert("ssl/tls alert handshake failure: SSL alert number 40"), "CIPHER_NOT_SHARED"),
        (TLS, alert("tlsv1 alert protocol version: SSL alert number 70"), "VERSION_NOT_SHARED"),
        (TLS, alert("wrong version number"), "NOT_TLS"),
        (TRANSPORT, ALERT.removeprefix(BROKER), "CLIENT_CERTIFICATE_REFUSED"),
        (TLS, alert("unexpected message"), "HANDSHAKE_FAILED"),
        (TLS, "Broker did not provide a certificate", "HANDSHAKE_FAILED"),
        (TRANSPORT, "Receive failed: error:0A000126:SSL routines::unexpected eof", None),
        (TRANSPORT, "SSL handshake failed: Disconnected: SSL connection closed by peer", None),
        (TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused", None),
    ],
)
def test_what_fails_a_handshake(code, text, failure):
    assert is_tls_failure(KafkaError(code, f"{BROKER}{text}")) is (failure is not None)
    if failure is not None:
        assert tls_error("b:9092", f"{BROKER}{text}", {}).failure is TlsFailure[failure]


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
    monkeypatch.setattr(cluster_errors, "REFUSED_LOGIN_S", 0.0)
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
