"""The parsers of logins, tokens and TLS material, held against any bytes."""

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Iterator
from functools import partial
from typing import Final
from unittest.mock import patch

from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12

from pyspark_kafka.adapters.continuous.frames import FrameError, FrameReader, FrameWriter
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.security.jks import read_jks
from pyspark_kafka.adapters.security.memory_files import memory_file
from pyspark_kafka.adapters.security.oidc import OidcTokenProvider, claims_of
from pyspark_kafka.adapters.security.tls_context import PemFiles, ssl_context
from pyspark_kafka.adapters.security.tokens import RenewedTokens
from pyspark_kafka.domain.continuous.messages import read_message
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.security.oauth import ClientCredentials
from pyspark_kafka.domain.security.scram import ScramError, scram_messages
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Store, Tls
from tests.servers.certificates import Authority

from .corpus import CORPUS
from .parsers import Parser

_NONCE: Final = "rOprNGfwEbeRWgbNEkqO"
_SALT: Final = b"16 bytes of salt"
_USER: Final = Login("SCRAM-SHA-256", "user", Secret("pencil"))
_PASSWORD: Final = Secret("store-secret")
_KEY: Final = bytes(range(32))
_SOURCE: Final = ClientCredentials("http://127.0.0.1:80/token", "me", Secret("client-secret"))
_ERRORS: Final = ErrorMapper("broker:9092", 0, "SCRAM-SHA-256", "user")


def _scram(content: bytes) -> None:
    """Log in with two messages of the broker, one on each line."""
    challenge, _, outcome = content.partition(b"\n")
    messages = scram_messages(_USER, _NONCE)
    next(messages)
    try:
        messages.send(challenge)
        messages.send(outcome)
    except StopIteration:
        assert content.partition(b"\n")[2].startswith(b"v=")
    except ScramError as error:
        refused = _ERRORS.refused(error)
        assert isinstance(refused, PysparkKafkaError)
        raise


def _scram_messages() -> Iterator[bytes]:
    nonce = f"{_NONCE}abc"
    challenge = f"r={nonce},s={base64.b64encode(_SALT).decode()},i=4096"
    signed = f"n=user,r={_NONCE},{challenge},c=biws,r={nonce}".encode()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", _SALT, 4_096)
    key = hmac.digest(salted, b"Server Key", "sha256")
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    yield f"{challenge}\nv={signature}".encode()
    yield f"{challenge}\ne=invalid-proof".encode()


def _token(content: bytes) -> None:
    """Request a token from an endpoint that answers with these bytes."""
    ours, theirs = socket.socketpair()
    theirs.sendall(content)
    theirs.shutdown(socket.SHUT_WR)
    ours.settimeout(1)
    connect = patch("urllib3.util.connection.create_connection", lambda *_, **__: ours)
    with theirs, connect:
        token = RenewedTokens(OidcTokenProvider(_SOURCE, timeout_s=0.1)).token()
    assert token.value
    assert token.value.isascii()


def _responses() -> Iterator[bytes]:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "me", "exp": 9e9}).encode()).decode()
    for status, body in (
        ("200 OK", {"access_token": "abc", "expires_in": 3_600, "token_type": "bearer"}),
        ("200 OK", {"access_token": f"e30.{claims.rstrip('=')}.c2ln"}),
        ("401 Unauthorized", {"error": "invalid_client", "error_description": "no"}),
        ("503 Unavailable", {}),
    ):
        text = json.dumps(body)
        yield f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


def _claims(content: bytes) -> None:
    claims_of(content.decode("latin-1"))


def _truststore(content: bytes, password: Secret = _PASSWORD) -> None:
    with memory_file(content) as path:
        ssl_context(Tls(Store("truststore", path, password)), PemFiles())


def _keystore(content: bytes) -> None:
    with memory_file(content) as path:
        ssl_context(Tls(keystore=Store("keystore", path, _PASSWORD)), PemFiles())


def _pem_files(content: bytes) -> None:
    with memory_file(content) as path:
        ssl_context(Tls(), PemFiles(certificate=path))
    with memory_file(content) as path:
        ssl_context(Tls(), PemFiles(authorities=path))


def _stores() -> Iterator[bytes]:
    """Yield a store of each format; deriving keys from passwords takes one round only."""
    authority = Authority()
    client = authority.issue("client")
    weak = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(1).build(_PASSWORD.encode())
    yield (client.key_pem() + client.chain_pem).encode()
    yield authority.pem.encode()
    yield pkcs12.serialize_key_and_certificates(b"key", client.key, client.certificate, [], weak)
    trusted = pkcs12.PKCS12Certificate(authority.certificate, b"authority")
    yield pkcs12.serialize_java_truststore([trusted], weak)
    yield (CORPUS / "responses" / "store.jks").read_bytes()


def _jks_keys(content: bytes) -> None:
    for key in read_jks(content, "").keys:
        key.decrypt(_PASSWORD)


def _frames(content: bytes) -> None:
    """Read the frames of a task that holds the key, and the messages in them."""
    reader = FrameReader(_KEY)
    for start in range(0, len(content), 50):
        for payload in reader.decode(content[start : start + 50]):
            read_message(payload)


def _own_frames(content: bytes) -> None:
    """Read anything that a task that holds the key sends."""
    writer, reader = FrameWriter(_KEY), FrameReader(_KEY)
    lines = content.split(b"\n")
    received = b"".join(map(writer.encode, lines))
    assert list(reader.decode(received)) == lines


def _all() -> Iterator[Parser]:
    yield Parser("scram", _scram, (ScramError,), _scram_messages())
    yield Parser("token-endpoint", _token, (PysparkKafkaError,), _responses())
    yield Parser("token-claims", _claims, (), [b"e30.eyJzdWIiOiJtZSJ9.c2ln"])
    stores = list(_stores())
    for name, read in (
        ("truststore", _truststore),
        ("truststore-without-password", partial(_truststore, password=Secret())),
        ("keystore", _keystore),
        ("pem-files", _pem_files),
        ("jks-keys", _jks_keys),
    ):
        yield Parser(name, read, (ValueError,), stores)
    frame = FrameWriter(_KEY).encode(b'{"type":"StopTask"}')
    yield Parser("frames", _frames, (FrameError, ValueError), [frame])
    yield Parser("own-frames", _own_frames, (), [b"a\nb"])


PARSERS: Final = tuple(_all())
