import logging
from importlib import import_module
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaConfigurationError
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslBytesRequest

from pyspark_kafka.adapters.kafka_python import log_filter

SECRET = "canary-6f1c"  # noqa: S105
PROOF = f"\0reader\0{SECRET}".encode()


@pytest.fixture(autouse=True)
def all_logged(caplog):
    """Log everything, from a time when the clients have been loaded."""
    import_module("pyspark_kafka.adapters.kafka_python.cluster_metadata")
    with caplog.at_level(1):
        yield


def answer(protocol: KafkaProtocol, number: int, response: Any) -> None:
    """Let a broker answer the request of this number."""
    frame = response.encode(version=1)
    content = number.to_bytes(4, "big") + frame
    protocol.receive_bytes(len(content).to_bytes(4, "big") + content)


@pytest.mark.parametrize(
    "request_of_login", [SaslAuthenticateRequest(PROOF, version=1), SaslBytesRequest(PROOF)]
)
def test_a_sent_login_is_hidden(caplog, request_of_login):
    protocol = KafkaProtocol(client_id="c")
    protocol.send_request(request_of_login)
    assert SECRET.encode() in protocol.send_bytes()
    assert len(caplog.records) == 2
    assert SECRET not in caplog.text


def test_a_received_login_is_hidden(caplog):
    protocol = KafkaProtocol(client_id="c")
    protocol.send_request(SaslAuthenticateRequest(b"", version=1))
    response = SaslAuthenticateResponse(
        error_code=0, error_message=None, auth_bytes=PROOF, session_lifetime_ms=0, version=1
    )
    answer(protocol, 1, response)
    assert "Received response 1 SaslAuthenticateResponse([hidden])" in caplog.text
    assert SECRET not in caplog.text


def test_a_connection_hides_logins(caplog):
    logger = logging.getLogger("kafka.net.connection")
    logger.debug("%s Request %d: %s", "c", 1, SaslAuthenticateRequest(PROOF, version=1))
    assert caplog.messages == ["c Request 1: SaslAuthenticateRequest([hidden])"]


def test_settings_of_an_admin_client_are_hidden(caplog):
    with pytest.raises(KafkaConfigurationError):
        KafkaAdminClient(
            sasl_plain_username="reader",
            sasl_plain_password=SECRET,
            proxy_url=f"socks5://me:{SECRET}@proxy",
            unknown=1,
        )
    masked = "'sasl_plain_username': 'reader', 'sasl_plain_password': '[hidden]'"
    assert any(masked in message for message in caplog.messages)
    assert SECRET not in caplog.text


def test_an_error_of_a_connection_hides_a_password(caplog):
    error = ValueError(f"Unable to parse proxy_url: socks5://me:{SECRET}@proxy")
    logging.getLogger("kafka.net.manager").error("Connection failed: %s", error)
    assert caplog.messages == ["Connection failed: Unable to parse proxy_url: socks5://proxy"]


def test_other_requests_are_logged(caplog):
    protocol = KafkaProtocol(client_id="c")
    protocol.send_request(MetadataRequest(version=1))
    assert "Sending request 1 MetadataRequest(version=1" in caplog.text


def test_a_secret_in_place_of_a_topic_is_hidden(caplog):
    protocol = KafkaProtocol(client_id="c")
    name = f'PlainLoginModule required username="u" password="{SECRET}";'
    topic = MetadataRequest.MetadataRequestTopic(name=name)
    protocol.send_request(MetadataRequest(topics=[topic], version=1))
    # The text may be JSON: PySparkLogger formats what its handlers get, pytest's too.
    assert any('username="u" password="[hidden]"' in message for message in caplog.messages)
    assert SECRET not in caplog.text


def test_the_filter_is_added_once():
    log_filter.hide_secrets()
    assert [len(logging.getLogger(name).filters) for name in log_filter.LOGGERS] == [1, 1, 1, 1]
