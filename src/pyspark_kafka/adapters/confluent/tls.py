"""TLS for librdkafka, which gets the content of Java's stores as PEM if it cannot read them."""

from __future__ import annotations

from ...domain.kafka_settings.tls import StoreFormat, store_format
from ...domain.kafka_settings.values import TLS_1_2, Secret, Store, Tls
from ..key_stores.store_files import certificates, key_pair, store_content


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
        config["ssl.key.password"] = str(tls.key_password)
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
                "ssl.keystore.password": str(store.password),
            }
    pair = key_pair(store, password)
    return {"ssl.key.pem": str(pair.key), "ssl.certificate.pem": pair.chain}
