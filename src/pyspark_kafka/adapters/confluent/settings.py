"""Kafka's names of client settings as librdkafka spells them, and TLS.

librdkafka gets the content of Java's stores as PEM if it cannot read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from confluent_kafka import KafkaException, Producer

from ...domain.errors import OptionsError
from ...domain.options.client_settings import JavaSettings, not_known
from ...domain.options.option import PREFIX
from ...domain.options.settings_table import (
    API_TIMEOUT_MS,
    GROUP_ID,
    ISOLATION_LEVEL,
    READ_UNCOMMITTED,
    SETTINGS,
    Ignored,
    Number,
    ProducerField,
)
from ...domain.security.oauth import OAUTHBEARER
from ...domain.security.secrets import Secret
from ...domain.security.tls import TLS_1_2, Store, StoreFormat, Tls, store_format
from ..security.clear_text import warn_about_clear_text
from ..security.providers import token_provider
from ..security.store_files import certificates, key_pair, store_content
from ..security.tls_context import file_paths, pem_files

CLIENT_NAME: Final = "confluent"

TRANSLATIONS: Final[Mapping[str, Number | Ignored]] = {
    setting.name: setting.librdkafka
    for setting in SETTINGS
    if setting.librdkafka and not isinstance(setting.write, ProducerField)
}
"""Settings that librdkafka spells or bounds differently; ``producer_config`` has the producer's."""

_NOT_PASSED: Final = frozenset({API_TIMEOUT_MS, GROUP_ID})
"""Settings that this library applies itself."""

_NOT_TEXT: Final = frozenset({"default.topic.config", "logger", "opaque"})
"""Settings that confluent-kafka expects as objects."""

_MESSAGE_BYTES: Final = 1_000_000
"""librdkafka's default ``message.max.bytes``; it refuses a smaller ``fetch.max.bytes``."""

_FETCH_WAIT_MS: Final = 500
SOCKET_TIMEOUT_MS: Final = 60_000
"""librdkafka's defaults of ``fetch.wait.max.ms`` and ``socket.timeout.ms``."""

_KINIT: Final = "sasl.kerberos.kinit.cmd"

_IN_COMMANDS: Final[Mapping[str, re.Pattern[str]]] = {
    "sasl.kerberos.keytab": re.compile("[A-Za-z0-9_./][A-Za-z0-9_./:@=+, -]*"),
    "sasl.kerberos.principal": re.compile("[A-Za-z0-9_][A-Za-z0-9_./@-]*"),
    "sasl.kerberos.service.name": re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]*"),
}
"""Texts for the shell command with which librdkafka gets tickets; the principal has no quotes."""


def client_config(java: JavaSettings) -> dict[str, str]:
    """Translate settings, and read the files they name.

    librdkafka's own settings are passed unchanged; it checks their values when a client is made.

    :raises OptionsError: naming every setting that librdkafka does not know or support.
    :raises MissingDependencyError: if a truststore is PKCS12 and the extra ``tls`` is missing.
    """
    problems = list(java.problems)
    # librdkafka's default is read_committed, unlike Java's client's and the JVM connector's.
    config = {ISOLATION_LEVEL: READ_UNCOMMITTED, "security.protocol": java.protocol.lower()}
    own: dict[str, str] = {}
    for name in sorted(java.others.keys() - _NOT_PASSED):
        match TRANSLATIONS.get(name):
            case Number() as number:
                config[number.name or name] = str(number.nearest(int(java.others[name])))
            case None if _is_known(name):
                own[name] = java.others[name]
            case None:
                problems.append(not_known(name, CLIENT_NAME))
    own |= dict(java.login.librdkafka) if java.login else {}
    for security in (_sasl, _tls):
        try:
            config |= security(java)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise OptionsError(problems)
    warn_about_clear_text(java)
    # librdkafka's own names take precedence.
    return {**_in_order(config), **own, **_kinit(own)}


@lru_cache(maxsize=1)
def _has_gssapi() -> bool:
    """Return whether librdkafka was built with Cyrus SASL, which confluent-kafka's wheels lack."""
    try:
        # As in ``_is_known``, no client is made.
        Producer({"builtin.features": "sasl_gssapi", "fetch.min.bytes": "none"})
    except KafkaException as error:
        return '"builtin.features"' not in error.args[0].str()
    return True


@lru_cache(maxsize=1_024)
def _is_known(name: str) -> bool:
    if name in _NOT_TEXT or ("_" in name and name != "log_level"):
        return False
    try:
        # The second setting is invalid, so that no client is made; the first is checked before it.
        Producer({name: None, "fetch.min.bytes": "none"})
    except KafkaException as error:
        return f'"{name}"' not in error.args[0].str() or "No such" not in error.args[0].str()
    return True


def _in_order(config: Mapping[str, str]) -> dict[str, str]:
    """Return sizes and times in the order that librdkafka requires and Java's client does not."""
    ordered = dict(config)
    if "fetch.max.bytes" in config:
        # message.max.bytes limits produced messages only, and this is a consumer.
        ordered["message.max.bytes"] = str(min(_MESSAGE_BYTES, int(config["fetch.max.bytes"])))
    wait = int(config.get("fetch.wait.max.ms", _FETCH_WAIT_MS))
    max_wait = max(0, int(config.get("socket.timeout.ms", SOCKET_TIMEOUT_MS)) - 1_000)
    if wait > max_wait:
        ordered["fetch.wait.max.ms"] = str(max_wait)
    return ordered


def _sasl(java: JavaSettings) -> dict[str, str]:
    login = java.login
    if login is None:
        return {}
    if login.mechanism == "GSSAPI" and not _has_gssapi():
        raise ValueError(
            "Option 'kafka.sasl.mechanism': the librdkafka of the client 'confluent' has no "
            "GSSAPI provider; use the client 'kafka-python' with pip install "
            "'pyspark-kafka[kerberos]'"
        )
    if login.is_delegation_token:
        raise ValueError(
            "Option 'kafka.sasl.jaas.config': the client 'confluent' does not support delegation "
            "tokens ('tokenauth'); use the client 'kafka-python'"
        )
    if login.tokens is not None:
        token_provider(login.tokens)
        return {"sasl.mechanism": OAUTHBEARER}
    config = {
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.username,
        "sasl.password": login.password,
        "sasl.kerberos.service.name": login.service_name,
        "sasl.kerberos.keytab": login.keytab,
        "sasl.kerberos.principal": login.principal,
    }
    for name, pattern in _IN_COMMANDS.items():
        if config[name] and not pattern.fullmatch(config[name]):
            raise ValueError(
                f"Option '{PREFIX}{name}' has characters that the shell command of the client "
                f"'{CLIENT_NAME}' must not contain"
            )
    if login.uses_ticket_cache:
        # Tickets of the cache are renewed by the program that obtained them.
        config["sasl.kerberos.min.time.before.relogin"] = "0"
    return {name: value for name, value in config.items() if value}


def _kinit(own: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's ``kinit`` command if the setting is a path, as in Java."""
    path = own.get(_KINIT, "")
    if not path or "%{" in path:
        return {}
    login = '-t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'
    return {_KINIT: f"{path} -R {login} || {path} {login}"}


def _tls(java: JavaSettings) -> dict[str, str]:
    return {} if java.tls is None else tls_config(java.tls)


def tls_files(java: JavaSettings) -> list[str]:
    """Return the files of certificates and keys that a client with these settings reads."""
    return [] if java.tls is None else file_paths(java.tls, pem_files(java.others))


def pem_options(java: JavaSettings) -> dict[str, str]:
    """Return the options that librdkafka has other names for, by these names."""
    found = {}
    if java.tls and java.tls.truststore:
        found["ssl.ca.pem"] = java.tls.truststore.option
    if java.tls and java.tls.keystore:
        found["ssl.key.pem"] = java.tls.keystore.option
        found["ssl.certificate.pem"] = java.tls.keystore.chain_option
    return found


def require_loadable(config: Mapping[str, str]) -> None:
    """Have librdkafka load the certificates and keys of its settings.

    :raises KafkaException: if it cannot, or if a key does not belong to its certificate.
    """
    own = {name: value for name, value in config.items() if name.startswith("ssl.")}
    # A client loads them when it is created. Without a broker to connect to, it does no more.
    Producer({**own, "security.protocol": "ssl", "log_level": "0"})


def tls_config(tls: Tls) -> dict[str, str]:
    """Return librdkafka's settings; files that it cannot read itself are read here.

    :raises ValueError: if a file cannot be read, naming its option.
    :raises MissingDependencyError: if a truststore is PKCS12, which the extra ``tls`` reads.
    """
    if TLS_1_2 not in tls.versions:
        raise ValueError(
            "Option 'kafka.ssl.enabled.protocols' or 'kafka.ssl.cipher.suites': the client "
            "'confluent' always offers TLSv1.2; allow it, or use the client 'kafka-python'"
        )
    config = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_hostname else "none"}
    if tls.ciphers:
        config["ssl.cipher.suites"] = tls.ciphers
    if tls.key_password:
        config["ssl.key.password"] = tls.key_password
    if tls.truststore:
        config["ssl.ca.pem"] = certificates(tls.truststore)
    if tls.keystore:
        config |= _key(tls.keystore, tls.key_password)
    return config


def _key(store: Store, password: Secret) -> dict[str, str]:
    if not store.pem:
        content = store_content(store)
        if store_format(store, content) is StoreFormat.PKCS12:
            return {
                "ssl.keystore.location": store.location,
                "ssl.keystore.password": store.password,
            }
    pair = key_pair(store, password)
    return {"ssl.key.pem": pair.key, "ssl.certificate.pem": pair.chain}
