import itertools
import socket
import ssl
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kafka.errors import SaslAuthenticationFailedError

from pyspark_kafka.adapters.kafka_python.sasl import MECHANISMS
from pyspark_kafka.adapters.kafka_python.settings import DEFAULTS, OWN_SETTINGS, TRANSLATIONS
from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.options.settings_table import KAFKA_PYTHON_IGNORED, Ignored
from pyspark_kafka.ports.security.token_provider import Token

from ..client_settings import KERBEROS, SERVERS, problems_of, ssl_settings, translations
from ..client_settings import kafka_python_config as client_config

problems = partial(problems_of, client_config)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def translated(**settings: str) -> dict[str, Any]:
    return client_config(SERVERS | {name.replace("__", "."): v for name, v in settings.items()})


@pytest.mark.parametrize("name", ["proxy.url", "socks5.proxy"])
@pytest.mark.parametrize(
    "url",
    [
        "http://user:hush#x@host:1",
        "//user:hush@host:1",
        "user:hush@host:1",
        "https://user:hush@host:1",
        "http://user:hush@host",
        "http://user:hush@host:port",
        "http://host:1?hush",
    ],
)
def test_a_proxy_that_cannot_be_used_is_not_shown(name, url):
    """kafka-python would log its URL at each connection, and the error would repeat a part."""
    (problem,) = problems({name: url, "sasl.mechanism": "PLAIN"})
    assert problem.startswith(f"Option 'kafka.{name}': a proxy must be a URL with host and port")
    assert "hush" not in problem


def test_a_proxy_is_passed():
    config = client_config(SERVERS | {"proxy.url": "socks5h://user:p%23@[::1]:1080"})
    assert config["proxy_url"] == "socks5h://user:p%23@[::1]:1080"


@pytest.mark.parametrize(("name", "value", "config"), translations("kafka-python"))
def test_a_java_clients_setting_becomes_one_of_kafka_pythons(name, value, config):
    made = client_config(SERVERS | {name: value})
    assert config.items() <= made.items()
    assert made.keys() == DEFAULTS.keys()


def test_a_broker_that_is_back_is_noticed_soon():
    assert translated()["reconnect_backoff_max_ms"] == 1_000
    assert translated(reconnect__backoff__max__ms="5000")["reconnect_backoff_max_ms"] == 5_000


@pytest.mark.parametrize(
    ("name", "option"),
    [("receive.buffer.bytes", socket.SO_RCVBUF), ("send.buffer.bytes", socket.SO_SNDBUF)],
)
def test_the_size_of_a_buffer_is_an_option_of_sockets(name, option):
    options = client_config(SERVERS | {name: "65536"})["socket_options"]
    assert options == (*DEFAULTS["socket_options"], (socket.SOL_SOCKET, option, 65_536))


def test_left_to_the_system():
    assert translated(receive__buffer__bytes="-1") == translated()


@pytest.mark.parametrize(
    "name",
    [
        *(name for name, known in TRANSLATIONS.items() if isinstance(known, Ignored)),
        *sorted(KAFKA_PYTHON_IGNORED),
    ],
)
def test_a_setting_that_kafka_python_has_no_equivalent_of_is_accepted_and_left_out(name):
    assert client_config(SERVERS | {name: _plausible(name)}) == client_config(SERVERS)


def _plausible(name: str) -> str:
    return {"metadata.recovery.strategy": "none", "enable.metrics.push": "true"}.get(name, "1")


@pytest.mark.parametrize("name", sorted(OWN_SETTINGS))
def test_every_listed_setting_is_translated(name):
    known = name.replace(".", "_")
    is_flag = isinstance(DEFAULTS[known], bool)
    value = "http://host:1" if "proxy" in name else "false" if is_flag else "7"
    assert translated(**{name: value})[known] != DEFAULTS[known]


@pytest.mark.parametrize(
    "name",
    [
        *("foo.bar", "ssl.context", "statistics.interval.ms", "selector", "kafka_client"),
        *("auto_offset_reset", "consumer_timeout_ms", "enable_auto_commit", "key_deserializer"),
        *("metric_group_prefix", "sasl_oauth_token_provider"),
    ],
)
def test_not_known(name):
    """Settings that kafka-python does not know or use, or takes as objects, are refused by name."""
    name = name.replace("_", ".")
    assert problems({name: "1"}) == (
        f"Option 'kafka.{name}' is not known to the client 'kafka-python'.",
    )


def test_a_brokers_version_is_set_by_librdkafkas_names():
    version = {"api.version.request": "false", "broker.version.fallback": "2.1.0"}
    assert client_config(SERVERS | version)["api_version"] == (2, 1)
    assert client_config(SERVERS | {"broker.version.fallback": "2.1.0"})["api_version"] is None


@pytest.mark.parametrize(
    "settings",
    [
        {"sasl.jaas.config": f'{PLAIN} required username="u" password="hush";'},
        {"sasl.username": "u", "sasl.password": "hush"},
        {"sasl_plain_username": "u", "sasl_plain_password": "hush"},
    ],
)
def test_password(settings):
    """A user's name and password are taken from any of the three ways to give them."""
    protocol = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    config = client_config(SERVERS | protocol | settings)
    login = config["login"]
    assert next(MECHANISMS[login.mechanism](login, "b")) == b"\0u\0hush"
    assert "hush" not in repr(config)


MSK = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.mark.parametrize("options", ["", 'awsProfileName="prod"'])
def test_a_login_at_amazon_msk_is_by_its_tokens(options):
    module = f"software.amazon.msk.auth.iam.IAMLoginModule required {options};"
    for settings in (MSK, MSK | {"sasl.jaas.config": module}):
        assert client_config(SERVERS | settings)["login"].mechanism == "OAUTHBEARER"


def test_aws_without_its_library(monkeypatch):
    token_provider.cache_clear()
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[msk\]"):
        client_config(SERVERS | MSK)


OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}


def test_tokens_that_cannot_be_had():
    handler = {"sasl.login.callback.handler.class": "no_such_module:token"}
    [problem] = problems(OAUTH | handler)
    assert problem.startswith("Option 'tokenProvider': 'no_such_module:token' cannot be loaded: ")
    [problem] = problems(OAUTH | {"sasl.oauthbearer.grant.type": "jwt-bearer"})
    assert "the client 'confluent' has librdkafka's other ways" in problem


def test_a_token_is_sent_with_its_extensions(monkeypatch):
    """The first message is as in RFC 7628; the answer to a refusal is one byte."""
    token = Token("the.token", 2**60, "me", (("logicalCluster", "lkc-1"),))
    module = ModuleType("tokens_of_a_test")
    module.__dict__["token"] = lambda: token
    monkeypatch.setitem(sys.modules, module.__name__, module)
    name = {"sasl.login.callback.handler.class": "tokens_of_a_test:token"}
    config = client_config(SERVERS | OAUTH | name)
    assert "the.token" not in repr(config)
    accepted, refused = (MECHANISMS["OAUTHBEARER"](config["login"], "b") for _ in range(2))
    first = b"n,,\x01auth=Bearer the.token\x01logicalCluster=lkc-1\x01\x01"
    assert next(accepted) == next(refused) == first
    with pytest.raises(StopIteration):
        accepted.send(b"")
    assert refused.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslAuthenticationFailedError, match="invalid_token"):
        refused.send(b"")


@pytest.mark.parametrize("is_thrown", [False, True])
def test_a_refused_token_is_not_sent_again(monkeypatch, *, is_thrown):
    """A broker refuses by an answer of the mechanism, or by the response's error."""
    numbers = itertools.count(1)
    module = ModuleType("tokens_of_a_refusal")
    module.__dict__["token"] = lambda: Token(f"token-{next(numbers)}", 2**60)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    name = {"sasl.login.callback.handler.class": "tokens_of_a_refusal:token"}
    config = client_config(SERVERS | OAUTH | name)
    token_provider.cache_clear()

    def login() -> Any:
        return MECHANISMS["OAUTHBEARER"](config["login"], "b")

    first, again = login(), login()
    assert b"token-1" in next(first)
    if is_thrown:
        with pytest.raises(SaslAuthenticationFailedError, match="no"):
            first.throw(SaslAuthenticationFailedError("no"))
    else:
        first.send(b"no")
        with pytest.raises(SaslAuthenticationFailedError):
            first.send(b"")
    assert b"token-2" in next(again)
    again.close()
    assert b"token-2" in next(login())


def kerberos(options: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.jaas.config": f"{KERBEROS} required {options};",
    }


def test_kerberos_goes_by_the_ticket_cache_or_a_keytab(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))
    config = client_config(SERVERS | kerberos('useTicketCache=true serviceName="k"'))
    assert config["login"].mechanism == "GSSAPI"
    [missing] = problems(kerberos('useKeyTab=true keyTab="/nowhere/k" principal="me"'))
    assert missing == (
        "Option 'kafka.sasl.jaas.config': the keytab '/nowhere/k' cannot be read: "
        "No such file or directory"
    )
    keytab = tmp_path / "k"
    keytab.touch()
    assert client_config(SERVERS | kerberos(f'useKeyTab=true keyTab="{keytab}" principal="me"'))


def test_kerberos_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    [package] = problems(kerberos("useTicketCache=true"))
    assert package.startswith("Option 'kafka.sasl.mechanism': the client 'kafka-python' needs")
    assert package.endswith("install it with: pip install 'pyspark-kafka[kerberos]'")


def tls_context(settings: dict[str, str]) -> ssl.SSLContext:
    config = client_config(SERVERS | {"security.protocol": "SSL"} | settings)
    context: ssl.SSLContext = config["ssl_context"].context
    return context


def trust(stores: Path) -> dict[str, str]:
    return {key: v for key, v in ssl_settings(stores).items() if "keystore" not in key}


def test_a_pkcs12_truststore_holds_what_is_trusted_and_nothing_else_is(stores):
    context = tls_context(trust(stores))
    assert context.cert_store_stats()["x509"] == 1
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_truststore_may_be_pem(stores):
    text = (stores / "me.pem").read_text()
    for settings in (
        {"ssl.truststore.location": str(stores / "me.pem"), "ssl.truststore.type": "PEM"},
        {"ssl.ca.location": str(stores / "me.pem")},
        {"ssl_cafile": str(stores / "me.pem")},
        {"ssl.truststore.certificates": text.replace("\n", " ")},
    ):
        context = tls_context(settings)
        assert context.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize(
    ("settings", "minimum", "maximum", "checks"),
    [
        ({}, "TLSv1_2", "TLSv1_3", True),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "TLSv1_3", "TLSv1_3", True),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv1"}, "TLSv1_2", "TLSv1_2", True),
        ({"ssl.endpoint.identification.algorithm": ""}, "TLSv1_2", "TLSv1_3", False),
        ({"ssl_check_hostname": "false"}, "TLSv1_2", "TLSv1_3", False),
    ],
)
def test_a_context_follows_the_settings(settings, minimum, maximum, checks):
    context = tls_context(settings)
    assert (context.minimum_version.name, context.maximum_version.name) == (minimum, maximum)
    assert context.check_hostname is checks


def test_suites():
    """Only the named suites of TLS 1.2 are offered, together with the suites of TLS 1.3."""
    suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256"
    context = tls_context({"ssl.cipher.suites": suites})
    names = {each["name"] for each in context.get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {
        "ECDHE-RSA-AES128-GCM-SHA256"
    }


def test_a_list_of_suites_that_openssl_does_not_have_is_refused():
    [text] = problems({"security.protocol": "SSL", "ssl.cipher.suites": "nonsense"})
    assert text.startswith("Option 'kafka.ssl.cipher.suites' names no suite")


@pytest.mark.parametrize("suffix", ["p12", "jks"])
def test_keystore(stores, suffix):
    """A keystore's key and a truststore are loaded, whichever format ``keytool`` gave them."""
    context = tls_context(ssl_settings(stores, suffix))
    assert context.cert_store_stats()["x509"] == 1


def test_a_keystore_without_a_key_is_refused(stores):
    settings = {"ssl.keystore.location": str(stores / "trust.p12")}
    [told] = problems(ssl_settings(stores) | settings)
    assert told == "Option 'kafka.ssl.keystore.location' holds no private key"
