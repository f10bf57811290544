"""Readers of trust stores and key stores, for both clients."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ...domain.errors import MissingDependencyError
from ...domain.kafka_settings.tls import StoreFormat, pem, store_format
from ...domain.kafka_settings.values import Store


def store_content(store: Store) -> bytes:
    """Read a store's file.

    :raises ValueError: if it cannot be read, with the name of its option.
    """
    try:
        return Path(store.location).read_bytes()
    except OSError as error:
        raise unreadable(store.option, store.location, error) from error


def store_pem(store: Store, content: bytes) -> str:
    """Return the content of a PEM store in canonical lines."""
    return pem(store.option.removeprefix("kafka."), content.decode("ascii", "replace"))


def certificates(store: Store) -> str:
    """Return all certificates of a trust store as PEM.

    :raises ValueError: if it cannot be read or opened, with the name of its option.
    :raises MissingDependencyError: if it is PKCS12, which the extra ``tls`` reads.
    """
    if store.pem:
        return str(store.pem)
    content = store_content(store)
    if store_format(store, content) is StoreFormat.PEM:
        return store_pem(store, content)
    encoding = _serialization().Encoding.PEM
    _, found = open_pkcs12(store, content)
    return "".join(each.public_bytes(encoding).decode() for each in found)


def open_pkcs12(store: Store, content: bytes) -> tuple[Any, list[Any]]:
    """Return the key, if there is one, and the certificates, beginning with the key's.

    :raises ValueError: if the password is wrong or the store is empty, with the option's name.
    :raises MissingDependencyError: without the extra ``tls``.
    """
    try:
        found = _serialization().pkcs12.load_pkcs12(content, store.password.encode() or None)
    except ValueError as error:
        password = store.option.replace(".location", ".password")
        raise ValueError(
            f"Option '{store.option}': '{store.location}' cannot be opened as PKCS12; "
            f"check '{password}'"
        ) from error
    certificate = [] if found.cert is None else [found.cert.certificate]
    certificates_found = certificate + [each.certificate for each in found.additional_certs]
    if not certificates_found:
        raise ValueError(f"Option '{store.option}': '{store.location}' contains no certificate")
    return found.key, certificates_found


def _serialization() -> Any:
    name = "cryptography.hazmat.primitives.serialization"
    try:
        import_module(f"{name}.pkcs12")
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError("'cryptography', which reads PKCS12 stores,", "tls") from error


def unreadable(option: str, location: str, error: OSError) -> ValueError:
    """Return the error for a file that cannot be read."""
    return ValueError(f"Option '{option}': '{location}' cannot be read ({error.strerror})")
