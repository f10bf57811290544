"""Java's own store format, JKS, which is a few lengths and SHA-1.

It is defined by ``sun.security.provider.JavaKeyStore`` and ``KeyProtector`` (OpenJDK). Both
use SHA-1 in ways that protect little; this module reads existing stores, and writes none.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Any, Final, final

_KEY: Final = 1
_CERTIFICATE: Final = 2
_WHITENER: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
_SALT_BYTES: Final = 20

_PROTECTOR: Final = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1, of Sun's way to protect keys."""

_SEQUENCE: Final = 0x30
_OCTETS: Final = 0x04


class WrongPasswordError(ValueError):
    """A store or a key was not protected with this password, or is damaged."""


@final
@dataclass(frozen=True, slots=True)
class JksKey:
    """A protected private key, and the certificates (DER) that belong to it, its own first."""

    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def decrypt(self, password: str) -> bytes:
        """Return the private key (PKCS #8, DER).

        :raises WrongPasswordError: if this is not its password.
        :raises ValueError: if it is protected in an unknown way.
        """
        secret = password.encode("utf-16-be")
        data = _protected_data(self.protected)
        salt, encrypted = data[:_SALT_BYTES], data[_SALT_BYTES:-_DIGEST_BYTES]
        plain = _xor(encrypted, _key_stream(secret, salt, len(encrypted)))
        if not hmac.compare_digest(_sha1(secret, plain), data[-_DIGEST_BYTES:]):
            raise WrongPasswordError("the key has another password")
        return plain


@final
@dataclass(frozen=True, slots=True)
class JksStore:
    """The entries of a store, in its order."""

    keys: tuple[JksKey, ...]
    certificates: tuple[bytes, ...]
    """Trusted certificates (DER)."""


def read_jks(content: bytes, password: str) -> JksStore:
    """Return the content of a store; without a password, its integrity is not verified.

    :raises WrongPasswordError: if this is not its password.
    :raises ValueError: if it is damaged.
    """
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    if password and not hmac.compare_digest(_sha1(secret, _WHITENER, body), digest):
        raise WrongPasswordError("the store has another password")
    try:
        return _Reader(body).store()
    except struct.error as error:
        raise ValueError("the store ends too early") from error


@final
class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._place = 0
        self._version = 0

    def store(self) -> JksStore:
        _, self._version, count = self._unpack(">III")
        keys: list[JksKey] = []
        certificates: list[bytes] = []
        for _ in range(count):
            (kind,) = self._unpack(">I")
            self._bytes(">H")  # the alias
            self._unpack(">Q")  # when it was made
            if kind == _KEY:
                keys.append(self._key())
            elif kind == _CERTIFICATE:
                certificates.append(self._certificate())
            else:
                raise ValueError(f"an entry has the unknown type {kind}")
        return JksStore(tuple(keys), tuple(certificates))

    def _key(self) -> JksKey:
        protected = self._bytes(">I")
        (count,) = self._unpack(">I")
        return JksKey(protected, tuple(self._certificate() for _ in range(count)))

    def _certificate(self) -> bytes:
        if self._version > 1:
            self._bytes(">H")  # its type, X.509
        return self._bytes(">I")

    def _bytes(self, length_format: str) -> bytes:
        (length,) = self._unpack(length_format)
        found: bytes
        (found,) = self._unpack(f"{length}s")
        return found

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(layout, self._body, self._place)
        self._place += struct.calcsize(layout)
        return found


def _protected_data(protected: bytes) -> bytes:
    """Return the content of an ``EncryptedPrivateKeyInfo`` (RFC 5208)."""
    outer, _ = _der(protected, _SEQUENCE)
    algorithm, rest = _der(outer, _SEQUENCE)
    data, _ = _der(rest, _OCTETS)
    if not algorithm.startswith(_PROTECTOR) or len(data) < _SALT_BYTES + _DIGEST_BYTES:
        raise ValueError("the key is protected in an unknown way")
    return data


def _der(content: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the value at the beginning, and the bytes after it (X.690)."""
    if len(content) < 2 or content[0] != tag:
        raise ValueError("the key is protected in an unknown way")
    length, begin = content[1], 2
    if length > 0x80:
        begin += length & 0x7F
        length = int.from_bytes(content[2:begin], "big")
    return content[begin : begin + length], content[begin + length :]


def _key_stream(secret: bytes, salt: bytes, size: int) -> bytes:
    blocks = [salt]
    for _ in range(-(-size // _DIGEST_BYTES)):
        blocks.append(_sha1(secret, blocks[-1]))
    return b"".join(blocks[1:])[:size]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _sha1(*parts: bytes) -> bytes:
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()
