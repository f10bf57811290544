"""TLS for librdkafka: what Java's stores hold, as PEM where it reads no store itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ...domain.errors import MissingDependencyError
from ...domain.java_settings import TLS_1_2, Store, StoreFormat, Tls, pem, store_format

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
        config["ssl.ca.pem"] = _certificates(tls.truststore)
    if tls.keystore:
        config |= _key(tls.keystore)
    return config


def _key(store: Store) -> dict[str, str]:
    text = str(store.pem)
    if not text:
        content = _content(store)
        if store_format(store, content) is StoreFormat.PKCS12:
            return {
                "ssl.keystore.location": store.location,
                "ssl.keystore.password": str(store.password),
            }
        text = _pem(store, content)
    key = _KEY.search(text)
    if key is None:
        raise ValueError(f"Option '{store.option}' or 'kafka.ssl.keystore.key' holds no key")
    return {"ssl.key.pem": key[0], "ssl.certificate.pem": text.replace(key[0], "")}


def _certificates(store: Store) -> str:
    if store.pem:
        return str(store.pem)
    content = _content(store)
    if store_format(store, content) is StoreFormat.PEM:
        return _pem(store, content)
    try:
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ModuleNotFoundError as error:
        raise MissingDependencyError("'cryptography', which reads PKCS12 stores,", "tls") from error
    try:
        found = load_pkcs12(content, store.password.encode() or None)
    except ValueError as error:
        password = store.option.replace(".location", ".password")
        raise ValueError(
            f"Option '{store.option}': '{store.location}' cannot be opened as PKCS12; "
            f"check '{password}'"
        ) from error
    certificates = [] if found.cert is None else [found.cert.certificate]
    certificates += [each.certificate for each in found.additional_certs]
    if not certificates:
        raise ValueError(f"Option '{store.option}': '{store.location}' holds no certificate")
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _pem(store: Store, content: bytes) -> str:
    return pem(store.option.removeprefix("kafka."), content.decode("ascii", "replace"))


def _content(store: Store) -> bytes:
    try:
        return Path(store.location).read_bytes()
    except OSError as error:
        raise ValueError(
            f"Option '{store.option}': '{store.location}' cannot be read ({error.strerror})"
        ) from error
