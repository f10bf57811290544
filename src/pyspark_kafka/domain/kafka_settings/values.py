"""Logins, stores and TLS, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from ..security.secret_names import hides_secrets
from .setting import PREFIX

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
MODERN: Final = frozenset({TLS_1_2, TLS_1_3})
LEGACY: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
"""Versions that a JVM lists but does not offer: its security properties disable them."""


@final
class Secret(str):
    """A text whose ``repr`` hides it, as Java hides a password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """A token endpoint, and what it is sent for a token (RFC 6749, section 4.4).

    ``extensions`` go to the broker with the token (RFC 7628). The endpoint is
    verified with the machine's certificate authorities, unless a PEM file or PEM itself names
    others.
    """

    endpoint: str
    client_id: str
    client_secret: Secret = field(repr=False)
    scope: str = ""
    audience: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    encodes_header: bool = False
    ca_location: str = ""
    ca_pem: Secret = field(default=Secret(), repr=False)


@final
@dataclass(frozen=True, slots=True)
class MskIam:
    """AWS credentials of the machine, a profile or a role, which sign tokens for Amazon MSK."""

    region: str = ""
    profile: str = ""
    role_arn: str = ""
    session_name: str = ""

    @property
    def names_identity(self) -> bool:
        """Whether other credentials are used than the default ones."""
        return bool(self.profile or self.role_arn)


@final
@dataclass(frozen=True, slots=True)
class AzureIdentity:
    """Azure's default credentials; ``client_id`` is a managed identity's."""

    scope: str
    client_id: str = ""


@final
@dataclass(frozen=True, slots=True)
class GoogleCredentials:
    """Google's application default credentials."""


@final
@dataclass(frozen=True, slots=True)
class TokenFunction:
    """A Python function as ``module:function``, or the name of an entry point."""

    name: str


TokenSource: TypeAlias = (
    ClientCredentials | MskIam | AzureIdentity | GoogleCredentials | TokenFunction
)
"""Where a process gets its tokens. It goes to executors; a token never does."""


@final
@dataclass(frozen=True, slots=True)
class Login:
    """How a client authenticates itself.

    A delegation token's id is the user name, and its HMAC the password (KIP-48).
    """

    mechanism: str
    username: str = ""
    password: Secret = field(default=Secret(), repr=False)
    service_name: str = ""
    keytab: str = ""
    principal: str = ""
    uses_ticket_cache: bool = False
    ticket_cache: str = ""
    is_delegation_token: bool = False
    tokens: TokenSource | None = None


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
        """The option that names the file."""
        return f"{PREFIX}ssl.{self.kind}.location"


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
