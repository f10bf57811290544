"""TLS for librdkafka: what Java's stores hold, as PEM where it reads no store itself."""

from __future__ import annotations

import re
from typing import Final

from ...domain.kafka_settings import TLS_1_2, Store, StoreFormat, Tls, store_format
from ..key_stores.store_files import certificates, store_content, store_pem

_KEY: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----.*?-----END \1-----\n", re.DOTALL)


def tls_config(tls: Tls) -> dict[str, str]:
    """Give librdkafka's settings, and read the files it cannot read itself.

    :raises ValueError: if one cannot be read, naming its option.
    :raises MissingDependencyError: if a truststore is PKCS12, which the extra ``tls`` reads.
    """
    if TLS_1_2 not in tls.versions:
        raise ValueError(
            "Option 'kafka.ssl.enabled.protocols' or 'kafka.ssl.cipher.suites': the client "
            "'confluent' offers TLSv1.2 whatever it is told; allow it, or take the client "
            "'kafka-python'"
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
