"""TLS for kafka-python: an ``SSLContext`` with the content of Java's stores."""

from __future__ import annotations

import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ...domain.kafka_settings.tls import StoreFormat, store_format
from ...domain.kafka_settings.values import TLS_1_2, TLS_1_3, Store, Tls
from ..key_stores.store_files import certificates, open_pkcs12, store_content, store_pem, unreadable

_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}


@final
@dataclass(frozen=True, slots=True)
class PemFiles:
    """Files of librdkafka's and kafka-python's own settings, one for each purpose."""

    authorities: str = ""
    certificate: str = ""
    key: str = ""
    revoked: str = ""


def ssl_context(tls: Tls, files: PemFiles) -> ssl.SSLContext:
    """Return a context with the content of all files.

    :raises ValueError: if a file cannot be read, naming its option.
    :raises MissingDependencyError: if a store is PKCS12, which the extra ``tls`` reads.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    versions = sorted(_VERSIONS[version] for version in tls.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.check_hostname = tls.checks_hostname
    if tls.ciphers:
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError as error:
            raise ValueError(
                "Option 'kafka.ssl.cipher.suites' names no suite that OpenSSL has here"
            ) from error
    _load_authorities(context, tls.truststore, files)
    if files.certificate:
        _load_files(context, files, str(tls.key_password))
    if tls.keystore:
        _load_key(context, tls.keystore, str(tls.key_password))
    return context


def _load_authorities(context: ssl.SSLContext, store: Store | None, files: PemFiles) -> None:
    if files.authorities:
        _load(context, "ssl.ca.location", files.authorities)
    if files.revoked:
        _load(context, "ssl.crl.location", files.revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if store:
        # As in Java, any certificate in a truststore is trusted, not only self-signed ones.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=certificates(store))
        except ssl.SSLError as error:
            raise ValueError(f"Option '{store.option}' holds no certificate to trust") from error
    elif not files.authorities:
        context.load_default_certs()


def _load(context: ssl.SSLContext, name: str, location: str) -> None:
    try:
        if Path(location).is_dir():
            context.load_verify_locations(capath=location)
        else:
            context.load_verify_locations(cafile=location)
    except OSError as error:
        raise unreadable(f"kafka.{name}", location, error) from error


def _load_files(context: ssl.SSLContext, files: PemFiles, password: str) -> None:
    try:
        context.load_cert_chain(files.certificate, files.key or None, password)
    except OSError as error:
        option = "kafka.ssl.certificate.location"
        raise unreadable(option, files.certificate, error) from error


def _load_key(context: ssl.SSLContext, store: Store, key_password: str) -> None:
    if store.pem:
        _load_pem(context, store, str(store.pem), key_password)
        return
    content = store_content(store)
    if store_format(store, content) is StoreFormat.PEM:
        _load_pem(context, store, store_pem(store, content), key_password)
        return
    key, certificates = open_pkcs12(store, content)
    if key is None:
        raise ValueError(f"Option '{store.option}' holds no private key")
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    # The private key is never written to disk unencrypted.
    once = secrets.token_urlsafe()
    encryption = BestAvailableEncryption(once.encode())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
    text += "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)
    _load_pem(context, store, text, once)


def _load_pem(context: ssl.SSLContext, store: Store, text: str, password: str) -> None:
    # OpenSSL reads keys from files only; only the owner can read this directory.
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-") as directory:
        path = Path(directory) / "key.pem"
        path.touch(mode=0o600)
        path.write_text(text)
        try:
            # Without a password OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(path, password=password)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"Option '{store.option}' or 'kafka.ssl.keystore.key': the private key cannot be "
                "used; check that it belongs to the first certificate, and "
                "'kafka.ssl.key.password'"
            ) from error
