import pytest

from pyspark_kafka.adapters.confluent import settings as confluent
from pyspark_kafka.adapters.kafka_python import settings as kafka_python
from pyspark_kafka.adapters.security import clear_text
from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.domain.options.client_settings import JavaSettings, read_java_settings
from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.values.registry import RegistryOptions, registry_settings

TRANSLATIONS = [confluent.client_config, kafka_python.check_settings]


@pytest.fixture(autouse=True)
def _no_warnings_before():
    clear_text._warn_once.cache_clear()
    clear_text._warn_once_about_registry.cache_clear()


@pytest.fixture(params=TRANSLATIONS, ids=["confluent", "kafka-python"])
def translate(request):
    """Return how each client reads its settings."""
    return lambda settings: request.param(read_java_settings(settings))


def settings(mechanism: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "bootstrap.servers": "b:9092",
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": "u",
        "sasl.password": "hunter2",
    }


def test_a_password_in_clear_text(translate, caplog):
    for _ in range(2):
        translate(settings("PLAIN"))
    [told] = caplog.messages
    assert told.startswith("A login by PLAIN without TLS sends the password in clear text. Set ")
    assert "hunter2" not in told


def test_a_secret_that_is_not_sent_in_clear_text(translate, caplog):
    translate(settings("PLAIN", "SASL_SSL"))
    translate(settings("SCRAM-SHA-256"))
    assert caplog.messages == []


def test_a_token_in_clear_text(caplog):
    login = Login("OAUTHBEARER")
    clear_text.warn_about_clear_text(JavaSettings({}, "SASL_PLAINTEXT", login, None, ()))
    assert "OAUTHBEARER without TLS sends the token" in caplog.text


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        (RegistryOptions("https://r,http://ada:hunter2@r"), "the password"),
        (RegistryOptions("http://r", (("bearer.auth.token", "hunter2"),)), "the token"),
    ],
)
def test_a_login_at_a_registry_in_clear_text(settings, secret, caplog):
    for _ in range(2):
        HttpSchemaRegistry(registry_settings(settings))
    [told] = caplog.messages
    assert told.startswith(f"A login at a schema registry without TLS sends {secret} in clear text")
    assert "hunter2" not in told


@pytest.mark.parametrize("url", ["http://r", "https://ada:hunter2@r", "https://ada:p@r,http://r"])
def test_a_login_at_a_registry_that_is_not_in_clear_text(url, caplog):
    HttpSchemaRegistry(registry_settings(RegistryOptions(url)))
    assert caplog.messages == []
