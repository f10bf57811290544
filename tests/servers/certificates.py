"""Certificate authorities, and certificates that are valid or have one thing wrong."""

import ipaddress
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

LOOPBACK: Final = ("127.0.0.1", "localhost")
"""The names of every listener in the tests."""

_DAY: Final = timedelta(days=1)
_KDF_ROUNDS: Final = 1_000

_SIGNS_CERTIFICATES: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A private key, and the certificates that prove whose it is, beginning with its own."""

    key: PrivateKey
    chain: tuple[x509.Certificate, ...]

    @property
    def principal(self) -> str:
        """The name that a broker gives a client with this certificate, as in an ACL."""
        return f"User:{self.chain[0].subject.rfc4514_string()}"

    @property
    def chain_pem(self) -> str:
        """The certificates as PEM."""
        return certificates_pem(self.chain)

    def key_pem(self, password: str = "") -> str:
        """Return the key as PEM (PKCS #8), encrypted if there is a password."""
        encryption = _encryption(password)
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str) -> bytes:
        """Return a PKCS12 keystore, as ``keytool`` makes it."""
        own, *others = self.chain
        return pkcs12.serialize_key_and_certificates(
            b"key", self.key, own, others, _store_encryption(password)
        )

    def write_pem(self, path: Path, password: str = "") -> Path:
        """Write a PEM keystore: the key, then its certificates."""
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write a PKCS12 keystore."""
        path.write_bytes(self.pkcs12(password))
        return path


class Authority:
    """Signs certificates. Brokers and clients trust a certificate if they know its authority."""

    def __init__(self, name: str = "Test authority") -> None:
        """Make the authority's own certificate."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        subject = _name(name)
        self.certificate = _sign(
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .not_valid_before(now - 30 * _DAY)
            .not_valid_after(now + 30 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True),
            self._key,
            self._key,
        )

    @property
    def pem(self) -> str:
        """The authority's certificate as PEM."""
        return certificates_pem([self.certificate])

    def issue(
        self,
        name: str,
        hosts: Iterable[str] = LOOPBACK,
        *,
        is_expired: bool = False,
        is_rsa: bool = False,
    ) -> Certificate:
        """Return a new key with a certificate for a common name and some hosts or addresses.

        An expired certificate was valid until yesterday.
        """
        key: PrivateKey = (
            rsa.generate_private_key(public_exponent=65537, key_size=2048)
            if is_rsa
            else ec.generate_private_key(ec.SECP256R1())
        )
        now = datetime.now(UTC)
        certificate = _sign(
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self.certificate.subject)
            .not_valid_before(now - 2 * _DAY)
            .not_valid_after(now - _DAY if is_expired else now + 7 * _DAY)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            ),
            key,
            self._key,
        )
        return Certificate(key, (certificate,))


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
            pem = authority.certificate.public_bytes(Encoding.PEM)
            certificate.write_bytes(pem)
            command = f"keytool -importcert -noprompt -storetype PKCS12 -alias authority-{number}"
            given: list[str | Path] = ["-keystore", store, "-storepass", password]
            given += ["-file", certificate]
            subprocess.run([*command.split(), *given], check=True, capture_output=True)
        return store.read_bytes()


def certificates_pem(certificates: Iterable[x509.Certificate]) -> str:
    """Return certificates as PEM."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _sign(
    builder: x509.CertificateBuilder, key: PrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        builder.public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(subject_key, critical=False)
        .add_extension(authority_key, critical=False)
        .sign(issuer, SHA256())
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encryption(password: str) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()


def _store_encryption(password: str) -> KeySerializationEncryption:
    """Return the best encryption of a store, in few rounds: a broker spends a second on 20,000."""
    if not password:
        return NoEncryption()
    return (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_KDF_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(SHA256())
        .build(password.encode())
    )
