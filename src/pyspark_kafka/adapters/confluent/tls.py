"""TLS for librdkafka, which gets the content of Java's stores as PEM if it cannot read them."""

from __future__ import annotations

import re
from typing import Final

from ...domain.kafka_settings.tls import StoreFormat, store_format
from ...domain.kafka_settings.values import TLS_1_2, Store, Tls
from ..key_stores.store_files import certificates, store_content, store_pem

_KEY: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----.*?-----END \1-----\n", re.DOTALL)


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
        config |= _key(tls.keystore)
    return config


def _key(store: Store) -> dict[str, str]:
    text = str(store.pem)
    if not text:
        content = store_content(store)
        if store_format(store, content) is StoreFormat.PKCS12:
            return {
                "ssl.keystore.location": store.location,
                "ssl.keystore.password": str(store.password),
            }
        text = store_pem(store, content)
    key = _KEY.search(text)
    if key is None:
        raise ValueError(f"Option '{store.option}' or 'kafka.ssl.keystore.key' holds no key")
    return {"ssl.key.pem": key[0], "ssl.certificate.pem": text.replace(key[0], "")}
