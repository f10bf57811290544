"""TLS: trust store, key store and their formats, versions and cipher suites."""

from __future__ import annotations

import base64
import enum
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from ..options.option import PREFIX
from ..options.settings_table import one_of
from .secrets import Secret, hides_secrets

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
MODERN: Final = frozenset({TLS_1_2, TLS_1_3})
LEGACY: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
"""Versions that a JVM lists but does not offer: its security properties disable them."""


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class Store:
    """Certificates, or a key and its certificates: in a file, or as PEM in the settings."""

    kind: str
    location: str = ""
    password: Secret = field(default=Secret(), repr=False)
    pem: Secret = field(default=Secret(), repr=False)

    @property
    def option(self) -> str:
        """The option that names the file, or that holds the certificates or the key."""
        return f"{PREFIX}ssl.{_INLINE[self.kind] if self.pem else f'{self.kind}.location'}"

    @property
    def chain_option(self) -> str:
        """The option with a key's certificates."""
        return f"{PREFIX}ssl.keystore.certificate.chain" if self.pem else self.option


_INLINE: Final = {"truststore": "truststore.certificates", "keystore": "keystore.key"}


@final
@dataclass(frozen=True, slots=True)
class Tls:
    """How a client encrypts, whom it trusts, and its own certificate."""

    truststore: Store | None = None
    keystore: Store | None = None
    key_password: Secret = field(default=Secret(), repr=False)
    checks_hostname: bool = True
    versions: frozenset[str] = MODERN
    ciphers: str = ""
    """For TLS 1.2, as OpenSSL spells them. TLS 1.3 uses OpenSSL's default ciphers."""


_STORE_TYPES: Final = one_of("JKS", "PKCS12", "PEM")


def read_tls(settings: Mapping[str, str]) -> Tls:
    """Return the TLS settings.

    :raises ValueError: if they cannot be used; no message contains a password or a key.
    """
    versions = _versions(settings)
    versions, ciphers = _ciphers(settings.get("ssl.cipher.suites", ""), versions)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https")
    # Java spells it as an empty text, librdkafka as 'none'.
    hostname = _HOSTNAME.read("ssl.endpoint.identification.algorithm", algorithm or "none")
    return Tls(
        _truststore(settings),
        _keystore(settings),
        Secret(settings.get("ssl.key.password", "")),
        hostname == "https",
        versions,
        ciphers,
    )


_HOSTNAME: Final = one_of("https", "none")


def _truststore(settings: Mapping[str, str]) -> Store | None:
    _store_type("truststore", settings)
    location = settings.get("ssl.truststore.location", "")
    certificates = settings.get("ssl.truststore.certificates", "")
    if location and certificates:
        raise ValueError(
            "Options 'kafka.ssl.truststore.location' and 'kafka.ssl.truststore.certificates' "
            "cannot be set together"
        )
    if not location and not certificates:
        return None
    return Store(
        "truststore",
        location,
        Secret(settings.get("ssl.truststore.password", "")),
        Secret(pem("ssl.truststore.certificates", certificates) if certificates else ""),
    )


def _keystore(settings: Mapping[str, str]) -> Store | None:
    _store_type("keystore", settings)
    location = settings.get("ssl.keystore.location", "")
    key = settings.get("ssl.keystore.key", "")
    chain = settings.get("ssl.keystore.certificate.chain", "")
    if location and (key or chain):
        raise ValueError(
            "Options 'kafka.ssl.keystore.location' and 'kafka.ssl.keystore.key' cannot be set "
            "together"
        )
    if bool(key) != bool(chain):
        raise ValueError(
            "Options 'kafka.ssl.keystore.key' and 'kafka.ssl.keystore.certificate.chain' "
            "must be set together"
        )
    if not location and not key:
        return None
    inline = ""
    if key:
        inline = pem("ssl.keystore.key", key)
        inline += pem("ssl.keystore.certificate.chain", chain)
    password = Secret(settings.get("ssl.keystore.password", ""))
    return Store("keystore", location, password, Secret(inline))


def _store_type(kind: str, settings: Mapping[str, str]) -> None:
    # The format is recognised by the content, as in Java, where a store of type JKS may be PKCS12.
    _STORE_TYPES.read(f"ssl.{kind}.type", settings.get(f"ssl.{kind}.type") or "JKS")


def _versions(settings: Mapping[str, str]) -> frozenset[str]:
    named = _names(settings.get("ssl.enabled.protocols", ""))
    unknown = sorted(named - MODERN - LEGACY)
    versions = named & MODERN
    if unknown or (named and not versions):
        raise ValueError(
            "Option 'kafka.ssl.enabled.protocols' must name TLSv1.2, TLSv1.3 or both, "
            f"got '{settings['ssl.enabled.protocols']}'"
        )
    return versions or MODERN


_SUITE: Final = re.compile(
    r"TLS_(?P<exchange>(?:ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA))_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>CBC|GCM)_(?P<hash>SHA|SHA256|SHA384)"
    r"|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)
_SUITES_1_3: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
_SIGNAL: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"


def _ciphers(text: str, versions: frozenset[str]) -> tuple[frozenset[str], str]:
    """Return the versions that have a suite, and the suites of TLS 1.2 in OpenSSL's names."""
    if not any(name.startswith(("TLS_", "SSL_")) for name in _names(text)):
        # None, or a list in OpenSSL's own names.
        return versions, text
    names = [name.strip() for name in text.split(",") if name.strip() not in ("", _SIGNAL)]
    newer = [name for name in names if name in _SUITES_1_3]
    older = [_openssl_suite(name) for name in names if name not in _SUITES_1_3]
    remaining = versions & {TLS_1_3 if newer else "", TLS_1_2 if older else ""}
    if not remaining:
        raise ValueError(
            "Option 'kafka.ssl.cipher.suites' has no suite for the versions in "
            "'kafka.ssl.enabled.protocols'"
        )
    return remaining, ":".join(older)


def _openssl_suite(name: str) -> str:
    found = _SUITE.fullmatch(name)
    if found is None:
        raise ValueError(
            f"Option 'kafka.ssl.cipher.suites': the suite '{name}' is not supported; use those "
            "that Java enables by default, or leave the option out"
        )
    exchange = "" if found["exchange"] == "RSA" else found["exchange"].replace("_", "-") + "-"
    if found["chacha"]:
        return f"{exchange}CHACHA20-POLY1305"
    mode = "" if found["mode"] == "CBC" else "-GCM"
    return f"{exchange}AES{found['bits']}{mode}-{found['hash']}"


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


class StoreFormat(enum.Enum):
    """The format of a store's file, recognised by its content."""

    JKS = "JKS"
    PEM = "PEM"
    PKCS12 = "PKCS12"


_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"


def store_format(store: Store, content: bytes) -> StoreFormat:
    """Return the format of a store.

    :raises ValueError: if it is JCEKS, with the command that converts it, or unknown, or if its
        end is missing.
    """
    if content[:4] == _JCEKS:
        source, target = store.location, f"{store.location.rpartition('.')[0] or 'store'}.p12"
        raise ValueError(
            f"Option '{store.option}': '{source}' is a JCEKS store, which only Java reads. "
            "Convert it, and set the new file instead: keytool -importkeystore "
            f"-srcstoretype JCEKS -srckeystore {shlex.quote(source)} "
            f"-destkeystore {shlex.quote(target)} -deststoretype PKCS12"
        )
    if content[:4] == _JKS:
        return StoreFormat.JKS
    if b"-----BEGIN " in content:
        return StoreFormat.PEM
    if content[:1] == b"\x30":
        _require_complete(store, content)
        return StoreFormat.PKCS12
    raise ValueError(
        f"Option '{store.option}': '{store.location}' is neither PKCS12 nor JKS nor PEM"
    )


def _require_complete(store: Store, content: bytes) -> None:
    """Raise if a DER sequence ends before its length: the file is being written, or was cut."""
    if len(content) < 2 or (content[1] > 0x80 and len(content) < _der_size(content)):
        raise ValueError(f"Option '{store.option}': '{store.location}' is cut off before its end")


def _der_size(content: bytes) -> int:
    """Return the size of a value whose length is in the long form (X.690, 8.1.3.5)."""
    count = content[1] & 0x7F
    return 2 + count + int.from_bytes(content[2 : 2 + count], "big")


_PEM_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+(.*?)-+END \1-+", re.DOTALL)


def pem(name: str, text: str) -> str:
    """Return PEM with its canonical lines: Java accepts any white space as a line end.

    :raises ValueError: if the text has no PEM block, or one that is not base64.
    """
    try:
        blocks = "".join(_pem_lines(*found) for found in _PEM_BLOCK.findall(text))
    except ValueError:
        hint = ": it has '\\n' as two characters, where lines end" if "\\n" in text else ""
        raise ValueError(f"Option '{PREFIX}{name}' has PEM that is not base64{hint}") from None
    if not blocks:
        raise ValueError(f"Option '{PREFIX}{name}' must be PEM, as '-----BEGIN ...'")
    return blocks


def _pem_lines(label: str, body: str) -> str:
    # Headers (RFC 1421), as in an old encrypted key, keep their lines.
    if ":" in body:
        content: Iterable[str] = body.strip().splitlines()
    else:
        text = "".join(body.split())
        base64.b64decode(text, validate=True)
        content = (text[start : start + 64] for start in range(0, len(text), 64))
    return "\n".join((f"-----BEGIN {label}-----", *content, f"-----END {label}-----", ""))
