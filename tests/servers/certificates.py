"""Certificate authorities, and certificates with their keys in the formats of Kafka's clients."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey

LOOPBACK: Final = ("127.0.0.1", "localhost")
"""The names of every listener in the tests."""

_DAY: Final = timedelta(days=1)
_KDF_ROUNDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Certificate:
    """A private key, and the certificate that proves whose it is."""

    key: PrivateKey
    certificate: x509.Certificate

    @property
    def chain_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        """Return the key as PEM (PKCS #8), encrypted if there is a password."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write_pem(self, path: Path, password: str = "") -> Path:
        """Write a PEM keystore: the key, then its certificate."""
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write a PKCS12 keystore, as ``keytool`` makes it."""
        encryption = _store_encryption(password)
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"key", self.key, self.certificate, None, encryption
            )
        )
        return path


class Authority:
    """Signs certificates. Brokers and clients trust a certificate if they know its authority."""

    def __init__(self, name: str = "Test authority") -> None:
        self._authority = trustme.CA(organization_name=name)
        self.pem = self._authority.cert_pem.bytes().decode()

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.pem.encode())

    def issue(
        self, name: str, hosts: Sequence[str] = LOOPBACK, *, is_expired: bool = False
    ) -> Certificate:
        """Return a new key with a certificate for a common name and some hosts or addresses.

        An expired certificate was valid until yesterday.
        """
        now = datetime.now(UTC)
        made = self._authority.issue_cert(
            *hosts,
            common_name=name,
            # A broker takes a new certificate while it runs if the subject is the same.
            organization_unit_name="tests",
            not_before=now - 2 * _DAY,
            not_after=now - _DAY if is_expired else now + 7 * _DAY,
        )
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        assert isinstance(key, PrivateKey)
        [pem] = made.cert_chain_pems
        return Certificate(key, x509.load_pem_x509_certificate(pem.bytes()))


def truststore(trusted: Sequence[Authority], password: str) -> bytes:
    """Return a PKCS12 truststore that Java reads, with one authority or more."""
    if not hasattr(pkcs12, "serialize_java_truststore"):  # cryptography before 45
        return _store_of_keytool(trusted, password)
    entries = [
        pkcs12.PKCS12Certificate(authority.certificate, f"authority-{number}".encode())
        for number, authority in enumerate(trusted)
    ]
    return pkcs12.serialize_java_truststore(entries, _store_encryption(password))


def _store_of_keytool(trusted: Sequence[Authority], password: str) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        store, certificate = Path(directory, "trust.p12"), Path(directory, "ca.pem")
        for number, authority in enumerate(trusted):
            certificate.write_text(authority.pem)
            command = f"keytool -importcert -noprompt -storetype PKCS12 -alias authority-{number}"
            given: list[str | Path] = ["-keystore", store, "-storepass", password]
            given += ["-file", certificate]
            subprocess.run([*command.split(), *given], check=True, capture_output=True)
        return store.read_bytes()


def _store_encryption(password: str) -> KeySerializationEncryption:
    """Return the best encryption of a store, in few rounds: a broker spends a second on 20,000."""
    return (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_KDF_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(SHA256())
        .build(password.encode())
    )
