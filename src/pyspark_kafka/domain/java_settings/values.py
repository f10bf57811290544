"""What the settings say, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..kafka_settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
MODERN: Final = frozenset({TLS_1_2, TLS_1_3})
LEGACY: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
"""Versions that a JVM lists and, of its own security properties, never offers."""


@final
class Secret(str):
    """A text that logs and messages show as Java shows a password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


@final
@dataclass(frozen=True, slots=True)
class Login:
    """How a client proves who it is."""

    mechanism: str
    username: str = ""
    password: Secret = field(default=Secret(), repr=False)
    service_name: str = ""
    keytab: str = ""
    principal: str = ""
    uses_ticket_cache: bool = False


@final
@dataclass(frozen=True, slots=True)
class Store:
    """Certificates, or a key and its certificates: in a file, or as PEM in the settings."""

    kind: str
    location: str = ""
    password: Secret = field(default=Secret(), repr=False)
    pem: Secret = field(default=Secret(), repr=False)

    @property
    def option(self) -> str:
        """The option that names the file."""
        return f"{PREFIX}ssl.{self.kind}.location"


@final
@dataclass(frozen=True, slots=True)
class Tls:
    """What a client needs to encrypt, and to trust and be trusted."""

    truststore: Store | None = None
    keystore: Store | None = None
    key_password: Secret = field(default=Secret(), repr=False)
    checks_hostname: bool = True
    versions: frozenset[str] = MODERN
    ciphers: str = ""
    """In the words of OpenSSL, and for TLS 1.2; those of 1.3 are its own."""


@final
@dataclass(frozen=True, slots=True)
class JavaSettings:
    """Settings as Java reads them; ``others`` are those that a client translates by its table."""

    others: Mapping[str, str] = field(repr=False)
    protocol: str
    login: Login | None
    tls: Tls | None
    problems: tuple[str, ...]
