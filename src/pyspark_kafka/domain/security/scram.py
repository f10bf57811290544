"""SCRAM as Java's client does it (RFC 5802, RFC 7677, KIP-84), with delegation tokens (KIP-48)."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Generator

    from .login import Login

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

MIN_ITERATIONS: Final = 4_096
"""As in Java's ``ScramMechanism``: with fewer, a recorded login's password is easier to guess."""

MAX_ITERATIONS: Final = 100_000
"""Each iteration costs time, even before the broker proves who it is; Kafka stores up to 16,384."""

_GS2_HEADER: Final = b"n,,"
_TOKEN: Final = b",tokenauth=true"

_FIRST: Final = re.compile(
    rb"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[1-9][0-9]{0,8})(?:,.*)?"
)
_FINAL: Final = re.compile(rb"v=(?P<signature>[A-Za-z0-9+/=]+)(?:,.*)?")


def scram_messages(login: Login, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield the messages to the broker, and receive its answers; ``nonce`` is used once.

    :raises ScramError: if the broker refuses the login, or does not prove that
        it knows the password.
    """
    user = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}".encode() + _TOKEN * login.is_delegation_token
    challenge = yield _GS2_HEADER + first
    server = _Challenge.of(challenge, nonce.encode())
    final = b"c=" + b64encode(_GS2_HEADER) + b",r=" + server.nonce
    keys = _Keys.of(login, server)
    signed = b",".join((first, challenge, final))
    outcome = yield final + b",p=" + b64encode(keys.proof(signed))
    if not hmac.compare_digest(_signature(outcome), keys.server_signature(signed)):
        raise ScramError("SCRAM: the broker did not prove that it knows the password")


class ScramError(Exception):
    """The broker refuses the login, or does not prove who it is."""


@final
@dataclass(frozen=True, slots=True)
class _Challenge:
    """The broker's first message."""

    nonce: bytes
    salt: bytes
    iterations: int

    @classmethod
    def of(cls, message: bytes, nonce: bytes) -> _Challenge:
        """Read the message, whose nonce begins with the client's."""
        found = _matched(_FIRST, message)
        iterations = int(found["iterations"])
        if not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
            raise ScramError("SCRAM: the broker's nonce is not an answer")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ScramError(
                f"SCRAM: the broker asks for {iterations} iterations, not for {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS}; store the user's credentials again with a number in between"
            )
        return cls(found["nonce"], _decoded(found["salt"]), iterations)


@final
@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys derived from the password, whose ``repr`` hides them."""

    _hash: str
    _salted: bytes

    def __repr__(self) -> str:
        return "[hidden]"

    @classmethod
    def of(cls, login: Login, challenge: _Challenge) -> _Keys:
        """Derive the keys; Java does not normalise passwords either."""
        name = _HASHES[login.mechanism]
        password = login.password.encode()
        salted = hashlib.pbkdf2_hmac(name, password, challenge.salt, challenge.iterations)
        return cls(name, salted)

    def proof(self, signed: bytes) -> bytes:
        """Return the client's proof."""
        key = self._hmac(self._salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        return bytes(left ^ right for left, right in zip(key, signature, strict=True))

    def server_signature(self, signed: bytes) -> bytes:
        """Return the broker's signature, if it knows the password."""
        return self._hmac(self._hmac(self._salted, b"Server Key"), signed)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _signature(message: bytes) -> bytes:
    return _decoded(_matched(_FINAL, message)["signature"])


def _matched(pattern: re.Pattern[bytes], message: bytes) -> re.Match[bytes]:
    if message.startswith(b"e="):
        reason = message[2:].decode("ascii", "replace")
        raise ScramError(f"SCRAM: the broker refuses the login: {reason!r}")
    found = pattern.fullmatch(message)
    if found is None:
        raise ScramError("SCRAM: the broker's message is malformed")
    return found


def _decoded(text: bytes) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ScramError("SCRAM: the broker's message is malformed") from error
