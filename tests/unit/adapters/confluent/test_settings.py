import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.adapters.confluent import settings as confluent_settings
from pyspark_kafka.adapters.confluent.settings import _is_known
from pyspark_kafka.domain.security.policy import OWN_SETTINGS

from ..client_settings import (
    KERBEROS,
    SERVERS,
    problems_of,
    ssl_settings,
    translations,
)
from ..client_settings import confluent_config as client_config
from ..conftest import PASSWORD

problems = partial(problems_of, client_config)


def added(settings: dict[str, str]) -> dict[str, str]:
    """Return librdkafka's settings that differ from the defaults."""
    plain = client_config(SERVERS)
    made = client_config(SERVERS | settings)
    return {name: value for name, value in made.items() if plain.get(name) != value}


@pytest.mark.parametrize(("name", "value", "config"), translations("librdkafka"))
def test_translation(name, value, config):
    """A Java client's setting becomes librdkafka's, which both of its clients accept."""
    made = {"log_level": "0"} | client_config(SERVERS | {name: value})
    assert config.items() <= made.items()
    Consumer(made | {"group.id": "unused"}).close()
    AdminClient(dict(made))


@pytest.mark.parametrize(
    "name", ["session.timeout.ms", "acks", "socket.connection.setup.timeout.max.ms"]
)
def test_without_effect(name):
    """A setting that a read has no use for, or librdkafka no equivalent of, is left out."""
    assert client_config(SERVERS | {name: "1"}) == client_config(SERVERS)


@pytest.mark.parametrize("name", sorted(OWN_SETTINGS["confluent"]))
def test_own_settings_exist(name):
    """Every setting that queries may set without permission is one of librdkafka's."""
    assert _is_known(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("principal", "me;touch /tmp/x"),
        ("principal", "me@R || id"),
        ("principal", "$(id)@R"),
        ("principal", "-R"),
        ("principal", "me@R\nid"),
        ("keytab", '/k" ; id ; "'),
        ("keytab", "/k$(id)"),
        ("keytab", "/k`id`"),
        ("keytab", "/k\\"),
        ("keytab", "-V"),
        ("keytab", "/%{sasl.password}"),
        ("service.name", "kafka;id"),
    ],
)
@pytest.mark.parametrize("in_jaas", [True, False])
def test_nothing_gets_into_the_command_of_kerberos(monkeypatch, name, value, in_jaas):
    monkeypatch.setattr(confluent_settings, "_has_gssapi", lambda: True)
    kerberos = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    jaas_names = {"principal": "principal", "keytab": "keyTab", "service.name": "serviceName"}
    line = f'{KERBEROS} required useKeyTab=true {jaas_names[name]}="{escaped}";'
    login = {"sasl.jaas.config": line} if in_jaas else {f"sasl.kerberos.{name}": value}
    [problem] = problems(kerberos | login)
    assert problem == (
        f"Option 'kafka.sasl.kerberos.{name}' has characters that the shell command of the client "
        "'confluent' must not contain"
    )


@given(st.from_regex(r"\A[a-z0-9]+(/[a-z0-9.-]+)?(@[A-Z0-9.-]+)?\Z"))
def test_names_of_users_services_and_realms_are_given_to_the_command_as_they_are(principal):
    kerberos = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confluent_settings, "_has_gssapi", lambda: True)
        made = client_config(SERVERS | kerberos | {"sasl.kerberos.principal": principal})
    assert made["sasl.kerberos.principal"] == principal


@pytest.mark.parametrize("name", ["foo.bar", "error_cb", "logger", "fetch_min_bytes"])
def test_not_known(name):
    """A setting that librdkafka does not know, or takes as an object, is refused by its name."""
    told = f"Option 'kafka.{name}' is not known to the client 'confluent'."
    [problem] = problems({name: "1"})
    assert problem.startswith(told)


@pytest.mark.parametrize("login", json.loads((Path(__file__).parent / "logins.json").read_text()))
def test_login(login, monkeypatch):
    """A login is translated to librdkafka's names, if it has a provider of Kerberos for it."""
    monkeypatch.setattr(confluent_settings, "_has_gssapi", lambda: True)
    protocol = {"security.protocol": "SASL_PLAINTEXT"}
    found = added(protocol | login["settings"])
    assert found == {"security.protocol": "sasl_plaintext"} | login["config"]


def test_kerberos_that_librdkafka_lacks():
    jaas = f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="me";'
    [told] = problems({"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": jaas})
    assert told == (
        "Option 'kafka.sasl.mechanism': the librdkafka of the client 'confluent' has no GSSAPI "
        "provider; use the client 'kafka-python' with pip install 'pyspark-kafka[kerberos]'"
    )


def test_delegation_tokens_that_librdkafka_lacks():
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{module} required username="id" password="hmac" tokenauth="true";',
    }
    [told] = problems(login)
    assert told == (
        "Option 'kafka.sasl.jaas.config': the client 'confluent' does not support delegation "
        "tokens ('tokenauth'); use the client 'kafka-python'"
    )


def test_a_pkcs12_keystore_is_librdkafkas_to_read(stores):
    made = client_config(SERVERS | ssl_settings(stores))
    assert made["ssl.keystore.location"] == str(stores / "key.p12")
    assert made["ssl.keystore.password"] == PASSWORD
    assert made["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert made["ssl.endpoint.identification.algorithm"] == "https"
    AdminClient(dict(made))


def test_a_key_and_certificates_in_pem_are_separated_in_any_order(stores):
    certificate = (stores / "me.pem").read_text().replace("\r", "")
    both = stores / "both.pem"
    store = ("-in", str(stores / "key.p12"), "-passin", f"pass:{PASSWORD}", "-nodes")
    subprocess.run(
        ["openssl", "pkcs12", *store, "-out", str(both)], check=True, capture_output=True
    )
    settings = {"ssl.keystore.location": str(both), "ssl.keystore.type": "PEM"}
    settings |= {"ssl.truststore.certificates": certificate.replace("\n", " ")}
    made = client_config(SERVERS | {"security.protocol": "SSL"} | settings)
    assert made["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE KEY" not in made["ssl.certificate.pem"]
    assert made["ssl.ca.pem"].splitlines()[0] == "-----BEGIN CERTIFICATE-----"
    AdminClient(dict(made))


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_AES_128_GCM_SHA256"},
            {"ssl.cipher.suites": "AES128-SHA"},
        ),
        ({"ssl.ca.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        ({"ssl.enabled.protocols": "TLSv1.2"}, {}),
    ],
)
def test_tls_settings_are_translated_to_librdkafkas_names_and_its_own_names_pass(settings, config):
    basis = {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "https"}
    assert added({"security.protocol": "SSL"} | settings) == basis | config


def test_what_librdkafka_cannot_do_is_refused_by_its_option(stores):
    [told] = problems(ssl_settings(stores) | {"ssl.enabled.protocols": "TLSv1.3"})
    assert "always offers TLSv1.2" in told


def test_a_keystore_in_pem_that_has_no_key_is_refused(stores):
    settings = {"ssl.keystore.location": str(stores / "me.pem")}
    [told] = problems(ssl_settings(stores) | settings)
    assert told.endswith("holds no key")


def test_what_jks_stores_hold_comes_as_pem_which_librdkafka_uses(stores):
    made = client_config(SERVERS | ssl_settings(stores, "jks"))
    assert made["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert made["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----\n")
    AdminClient(dict(made))


@pytest.mark.parametrize("suffix", ["p12", "jks"])
def test_secrets_are_hidden_where_settings_are_represented(stores, suffix):
    login = {"security.protocol": "SASL_SSL", "sasl.username": "ann", "sasl.password": "hush"}
    passwords = {"sasl.mechanism": "PLAIN", "ssl.key.password": PASSWORD}
    made = client_config(SERVERS | ssl_settings(stores, suffix) | login | passwords)
    assert (made["sasl.password"], made["ssl.key.password"]) == ("hush", PASSWORD)
    shown = repr(made)
    assert "'sasl.username': 'ann'" in shown
    assert not [word for word in ("hush", PASSWORD, "PRIVATE KEY") if word in shown]
    AdminClient(dict(made))
