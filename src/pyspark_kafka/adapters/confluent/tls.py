"""TLS for librdkafka, which gets the content of Java's stores as PEM if it cannot read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer

from ...domain.security.secrets import Secret
from ...domain.security.tls import TLS_1_2, Store, StoreFormat, Tls, store_format
from ..security.store_files import certificates, key_pair, store_content

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILES: Final = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.crl.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.truststore.location",
)


def tls_files(settings: Mapping[str, str]) -> list[str]:
    """Return the files of certificates and keys that a client with these settings reads."""
    if not settings.get("security.protocol", "").upper().endswith("SSL"):
        return []
    return [settings[name] for name in _FILES if settings.get(name)]


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
