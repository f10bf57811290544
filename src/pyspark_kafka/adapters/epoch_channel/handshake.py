"""Mutual authentication of a driver and a task with a key that both hold.

1. The driver sends ``GREETING`` and its nonce.
2. The task sends its nonce and its proof.
3. The driver sends its proof.

A proof is the HMAC-SHA256 of the sender's role and both nonces. The roles differ, so that no side
can be used to compute the proof of the other; the nonces are fresh, so that no proof can be used
again. Each direction has its own key for the frames that follow.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final, final

GREETING: Final = b"pyspark-kafka epoch channel 1\n"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = hashlib.sha256().digest_size
HELLO_BYTES: Final = len(GREETING) + NONCE_BYTES
REPLY_BYTES: Final = NONCE_BYTES + PROOF_BYTES


class Role(enum.Enum):
    """A side of a connection."""

    DRIVER = b"driver"
    TASK = b"task"


@final
@dataclass(frozen=True, slots=True)
class Handshake:
    """A key, and the nonces of one connection."""

    key: bytes = field(repr=False)
    driver_nonce: bytes
    task_nonce: bytes

    def proof(self, role: Role) -> bytes:
        """Return the proof that a side holds the key."""
        return self._mac(b"proof of the " + role.value)

    def is_proof(self, role: Role, proof: bytes) -> bool:
        """Return whether a side holds the key."""
        return hmac.compare_digest(self.proof(role), proof)

    def frame_key(self, sender: Role) -> bytes:
        """Return the key of the frames that a side sends."""
        return self._mac(b"frames of the " + sender.value)

    def _mac(self, purpose: bytes) -> bytes:
        return hmac.digest(self.key, purpose + self.driver_nonce + self.task_nonce, "sha256")


def new_key() -> bytes:
    """Return a random key for a channel."""
    return secrets.token_bytes(KEY_BYTES)


def new_nonce() -> bytes:
    """Return random bytes for one connection."""
    return secrets.token_bytes(NONCE_BYTES)
