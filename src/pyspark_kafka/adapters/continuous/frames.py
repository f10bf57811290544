"""The bytes of a connection between the driver of a continuous query and a task, over TCP.

Both sides prove that they hold the same key, and each frame after that is authenticated. Nothing is
encrypted: the connection carries offsets, counts and the texts of errors, never records or
credentials.

1. The driver sends ``GREETING`` and its nonce.
2. The task sends its nonce and its proof.
3. The driver sends its proof.

A proof is the HMAC-SHA256 of the sender's role and both nonces. The roles differ, so that no side
can be used to compute the proof of the other; the nonces are fresh, so that no proof can be used
again. Each direction has its own key for the frames that follow.

A frame is a length, a MAC, and a payload. The length is the payload's, 4 bytes, big-endian. The
MAC is the HMAC-SHA256 of the frame's number on its connection (8 bytes, big-endian, from 0 on) and
the payload, so that a frame cannot be changed, repeated, moved or left out. An empty payload is a
ping.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
"""Holds a report of 10,000 partitions, even if each is of another topic with a name of 249
characters."""

PING: Final = b""
_LENGTH: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">Q")
_MAC_BYTES: Final = 32
_HEAD_BYTES: Final = _LENGTH.size + _MAC_BYTES


class FrameError(ValueError):
    """A frame is too large, or not from the other side."""


def check_size(payload: bytes) -> bytes:
    """Return a payload.

    :raises ValueError: if it is too large for a frame.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"a message of {len(payload)} bytes is too large: the limit is {MAX_PAYLOAD_BYTES}"
        )
    return payload


@final
class FrameWriter:
    """Encodes the frames of one direction of a connection."""

    __slots__ = ("_key", "_number")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def encode(self, payload: bytes) -> bytes:
        """Return the next frame.

        :raises ValueError: if the payload is too large.
        """
        length = _LENGTH.pack(len(check_size(payload)))
        mac = _mac(self._key, self._number, payload)
        self._number += 1
        return b"".join((length, mac, payload))


@final
class FrameReader:
    """Decodes the frames of one direction of a connection."""

    __slots__ = ("_buffer", "_key", "_number")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0
        self._buffer = bytearray()

    def decode(self, received: bytes) -> Iterator[bytes]:
        """Yield the payloads of the frames that are complete with these bytes.

        :raises FrameError: if a frame is too large, or its MAC is wrong. Nothing after it can be
            decoded.
        """
        self._buffer += received
        while len(self._buffer) >= _HEAD_BYTES:
            [length] = _LENGTH.unpack_from(self._buffer)
            if length > MAX_PAYLOAD_BYTES:
                raise FrameError("a frame is too large")
            end = _HEAD_BYTES + length
            if len(self._buffer) < end:
                return
            payload = self._authentic(end)
            del self._buffer[:end]
            self._number += 1
            yield payload

    def _authentic(self, end: int) -> bytes:
        mac = bytes(self._buffer[_LENGTH.size : _HEAD_BYTES])
        payload = bytes(self._buffer[_HEAD_BYTES:end])
        if not hmac.compare_digest(mac, _mac(self._key, self._number, payload)):
            raise FrameError("a frame is not authentic")
        return payload


def _mac(key: bytes, number: int, payload: bytes) -> bytes:
    return hmac.digest(key, _NUMBER.pack(number) + payload, "sha256")


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
