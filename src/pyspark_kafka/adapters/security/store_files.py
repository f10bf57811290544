"""Readers of trust stores and key stores, for both clients."""

from __future__ import annotations

import os
import re
import stat
from base64 import encodebytes
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, final

from ...domain.errors import MissingDependencyError
from ...domain.security.secrets import Secret
from ...domain.security.tls import Store, StoreFormat, pem, store_format
from .jks import JksStore, WrongPasswordError, read_jks

MAX_FILE_BYTES: Final = 16 * 1_024 * 1_024
"""More than any store needs: the certificates of all public authorities take a few hundred kB."""

_KEY_PASSWORD: Final = "kafka.ssl.key.password"  # noqa: S105  # an option's name

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)  # not on Windows
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----.*?-----END \1-----\n", re.DOTALL
)


@final
@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates as PEM, and the password that decrypts the key."""

    key: Secret
    chain: str = field(repr=False)
    password: Secret


def read_file(option: str, location: str) -> bytes:
    """Read a file that an option names.

    :raises ValueError: if it cannot be read, is no regular file or too large, naming the option.
    """
    try:
        # Opening a named pipe would wait for its writer.
        file = os.open(location, os.O_RDONLY | _NONBLOCK)
        with open(file, "rb") as content:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError(f"Option '{option}': '{location}' is not a file")
            found = content.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise unreadable(option, location, error) from error
    if len(found) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // 1_024 // 1_024
        raise ValueError(f"Option '{option}': '{location}' is larger than {limit} MiB")
    return found


def store_content(store: Store) -> bytes:
    """Read a store's file; raise as ``read_file``."""
    return read_file(store.option, store.location)


def certificates(store: Store) -> str:
    """Return all certificates of a trust store as PEM.

    :raises ValueError: if it cannot be read or opened, with the name of its option.
    :raises MissingDependencyError: if it is PKCS12, which the extra ``tls`` reads.
    """
    if store.pem:
        return str(store.pem)
    content = store_content(store)
    match store_format(store, content):
        case StoreFormat.PEM:
            return _store_pem(store, content)
        case StoreFormat.JKS:
            opened = _open_jks(store, content)
            chains = [certificate for key in opened.keys for certificate in key.chain[:1]]
            found = (*opened.certificates, *chains)
        case StoreFormat.PKCS12:
            _, found = _open_pkcs12(store, content)
    if not found:
        raise ValueError(f"Option '{store.option}': '{store.location}' contains no certificate")
    return _certificates_pem(found)


def key_pair(store: Store, key_password: Secret) -> KeyPair:
    """Return the key of a key store and its certificates.

    :raises ValueError: if it cannot be read or opened, with the name of its option.
    :raises MissingDependencyError: if it is PKCS12, which the extra ``tls`` reads.
    """
    if store.pem:
        return _split(store, str(store.pem), key_password)
    content = store_content(store)
    match store_format(store, content):
        case StoreFormat.PEM:
            return _split(store, _store_pem(store, content), key_password)
        case StoreFormat.JKS:
            key, chain = _jks_key(store, content, key_password)
        case StoreFormat.PKCS12:
            key, chain = _open_pkcs12(store, content)
    if not key:
        raise ValueError(f"Option '{store.option}' holds no private key")
    return KeyPair(Secret(_pem_block("PRIVATE KEY", key)), _certificates_pem(chain), Secret())


def unreadable(option: str, location: str, error: OSError) -> ValueError:
    """Return the error for a file that cannot be read."""
    return ValueError(f"Option '{option}': '{location}' cannot be read ({error.strerror})")


def _store_pem(store: Store, content: bytes) -> str:
    """Return the content of a PEM store in canonical lines."""
    return pem(store.option.removeprefix("kafka."), content.decode("ascii", "replace"))


def _split(store: Store, text: str, password: Secret) -> KeyPair:
    found = _PRIVATE_KEY.search(text)
    if found is None:
        raise ValueError(f"Option '{store.option}' holds no key")
    return KeyPair(Secret(found[0]), text.replace(found[0], ""), password)


def _open_jks(store: Store, content: bytes) -> JksStore:
    try:
        return read_jks(content, str(store.password))
    except WrongPasswordError as error:
        raise _unopened(store, StoreFormat.JKS) from error
    except ValueError as error:
        raise ValueError(f"Option '{store.option}': '{store.location}': {error}") from error


def _jks_key(store: Store, content: bytes, key_password: Secret) -> tuple[bytes, tuple[bytes, ...]]:
    opened = _open_jks(store, content)
    if not opened.keys:
        return b"", ()
    try:
        return opened.keys[0].decrypt(key_password or store.password), opened.keys[0].chain
    except WrongPasswordError as error:
        raise ValueError(
            f"Option '{store.option}': the key in '{store.location}' cannot be decrypted; check "
            f"'{_KEY_PASSWORD}'"
        ) from error
    except ValueError as error:
        raise ValueError(f"Option '{store.option}': '{store.location}': {error}") from error


def _open_pkcs12(store: Store, content: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the key (PKCS #8), empty if there is none, and the certificates, its own first."""
    serialization = _serialization()
    der = serialization.Encoding.DER
    try:
        found = serialization.pkcs12.load_pkcs12(content, store.password.encode() or None)
    except ValueError as error:
        raise _unopened(store, StoreFormat.PKCS12) from error
    own = [] if found.cert is None else [found.cert]
    every = tuple(each.certificate.public_bytes(der) for each in (*own, *found.additional_certs))
    if not every:
        raise ValueError(f"Option '{store.option}': '{store.location}' contains no certificate")
    key = b""
    if found.key is not None:
        form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key = found.key.private_bytes(der, form, encryption)
    return key, every


def _unopened(store: Store, form: StoreFormat) -> ValueError:
    password = store.option.replace(".location", ".password")
    return ValueError(
        f"Option '{store.option}': '{store.location}' cannot be opened as {form.value}; "
        f"check '{password}'"
    )


def _certificates_pem(certificates: Iterable[bytes]) -> str:
    return "".join(_pem_block("CERTIFICATE", each) for each in certificates)


def _pem_block(label: str, content: bytes) -> str:
    return f"-----BEGIN {label}-----\n{encodebytes(content).decode()}-----END {label}-----\n"


def _serialization() -> Any:
    name = "cryptography.hazmat.primitives.serialization"
    try:
        import_module(f"{name}.pkcs12")
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError("'cryptography', which reads PKCS12 stores,", "tls") from error
