"""Schemas of a schema registry, and the settings of its client in Confluent's spelling."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, final
from urllib.parse import SplitResult, unquote, urlsplit

from ..options.option import INT32_MAX, integer
from ..options.option import REGISTRY_PREFIX as PREFIX
from ..security.secrets import Secret
from ..security.tls import Tls, read_tls


@final
@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """How to reach a schema registry.

    ``settings`` are Confluent's, without the prefix ``schema.registry.``. Neither they nor the URL
    are part of ``repr``, since they may contain secrets.
    """

    url: str = field(repr=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class SchemaType(enum.Enum):
    """The languages of schemas, in the registry's spelling."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@final
@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one imports: its name there, and where the registry has it."""

    name: str
    subject: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class ImportedSchema:
    """A schema, and the name by which others import it."""

    name: str
    text: str
    serialized: str = ""


@final
@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, and the schemas that it imports.

    ``references`` locate, in the registry, the schemas that the text itself imports. ``imports``
    are all schemas that it needs, each once and after those that it needs itself; they are empty
    until the references are resolved. ``serialized`` is the descriptor of a Protobuf schema in
    base64, if the registry has that in addition to the text.
    """

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()
    imports: tuple[ImportedSchema, ...] = ()
    serialized: str = ""


@final
@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject: a schema with the registry's id of it.

    ``guid`` is ``None`` if the registry has none.
    """

    subject: str
    version: int
    schema_id: int
    schema: Schema
    guid: str | None = None


_CONTEXT_PREFIX: Final = ":."
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def context_of(subject: str) -> str:
    """Return the context of a subject, such as ``.lsrc`` of ``:.lsrc:orders-value``.

    It is empty for the default context. Ids and versions are numbered per context
    (``QualifiedSubject`` of schema-registry).
    """
    return split_context(subject)[0]


def split_context(subject: str) -> tuple[str, str]:
    """Return the context of a subject, empty for the default one, and its name there."""
    if not subject.startswith(_CONTEXT_PREFIX):
        return "", subject
    context, _, name = subject[1:].partition(":")
    return "" if context == "." else context, name


def in_context_of(parent: str, subject: str) -> str:
    """Return a subject that a schema of ``parent`` refers to, with the context of ``parent``."""
    context = context_of(parent)
    if not context or subject.startswith(_CONTEXT_PREFIX):
        return subject
    return f":{context}:{subject}"


def is_descriptor(text: str) -> bool:
    """Return whether a Protobuf schema is base64: a .proto text has other characters."""
    return _BASE64.fullmatch(text) is not None


DEFAULT_TIMEOUT_MS: Final = 20_000
"""Less than the 30 s of silence after which a continuous task counts as lost: it fails with the
registry's error instead."""

_BASIC_SOURCE: Final = "basic.auth.credentials.source"
_USER_INFO: Final = "basic.auth.user.info"
_BEARER_SOURCE: Final = "bearer.auth.credentials.source"
_TOKEN: Final = "bearer.auth.token"  # noqa: S105  # a setting's name
_CLUSTER: Final = "bearer.auth.logical.cluster"
_POOL: Final = "bearer.auth.identity.pool.id"
_TIMEOUT: Final = "request.timeout.ms"

REGISTRY_SETTINGS: Final[Mapping[str, str]] = {
    _BASIC_SOURCE: "`USER_INFO`, or `URL` for a user and password in the URL. Not needed.",
    _USER_INFO: "User and password, as `user:password`.",
    _BEARER_SOURCE: "`STATIC_TOKEN`. Not needed.",
    _TOKEN: "Token for the header `Authorization`.",
    _CLUSTER: "Confluent Cloud's id of the registry, for a token.",
    _POOL: "Confluent Cloud's id of an identity pool, for a token.",
    _TIMEOUT: f"Time limit of each call with its retries. The default is {DEFAULT_TIMEOUT_MS}.",
    "ssl.ca.location": "PEM file or directory of the authorities to trust.",
    "ssl.certificate.location": "PEM file of the client's certificate.",
    "ssl.key.location": "PEM file of its key, if it is another one.",
    "ssl.key.password": "Password of the key.",
    "ssl.truststore.location": "JKS, PKCS12 or PEM file of the certificates to trust.",
    "ssl.truststore.password": "Its password.",
    "ssl.truststore.type": "`JKS`, `PKCS12` or `PEM`; the content decides.",
    "ssl.truststore.certificates": "The certificates to trust as PEM, instead of a file.",
    "ssl.keystore.location": "JKS, PKCS12 or PEM file of the client's key and certificate.",
    "ssl.keystore.password": "Its password.",
    "ssl.keystore.type": "`JKS`, `PKCS12` or `PEM`; the content decides.",
    "ssl.keystore.key": "The key as PEM, instead of a file.",
    "ssl.keystore.certificate.chain": "Its certificates as PEM.",
    "ssl.enabled.protocols": "`TLSv1.2`, `TLSv1.3` or both.",
    "ssl.cipher.suites": "Cipher suites in Java's or OpenSSL's names.",
    "ssl.endpoint.identification.algorithm": "`https`, or empty to accept any host name.",
}
"""The descriptions of settings, by their names without the prefix ``schema.registry.``."""


@final
@dataclass(frozen=True, slots=True)
class RegistryServer:
    """A URL of a registry, without user and password, and these as ``user:password``."""

    url: str
    login: Secret = field(default=Secret(), repr=False)


@final
@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """How to reach a schema registry: its servers in the order of their use, login and TLS."""

    servers: tuple[RegistryServer, ...]
    token: Secret = field(default=Secret(), repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of each request."""

    tls: Tls = field(default_factory=Tls)
    authorities: str = ""
    certificate: str = ""
    key: str = ""
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    @property
    def url(self) -> str:
        """The URLs, without user and password."""
        return ",".join(server.url for server in self.servers)


def registry_problems(options: RegistryOptions) -> list[str]:
    """Return what is wrong with the settings of a registry; no text contains a secret."""
    settings = {name: Secret(value) for name, value in options.settings}
    problems = [
        f"Option '{PREFIX}{name}' is not known"
        for name in settings
        if name not in REGISTRY_SETTINGS
    ]
    parts: tuple[Callable[[], object], ...] = (
        lambda: _servers(Secret(options.url), settings),
        lambda: _token(settings),
        lambda: _tls(settings),
        lambda: _timeout_ms(settings),
    )
    for part in parts:
        try:
            part()
        except ValueError as error:
            problems.append(str(error))
    return problems


def registry_settings(options: RegistryOptions) -> RegistrySettings:
    """Return the settings of a registry.

    :raises ValueError: if one of them cannot be used; ``registry_problems`` finds all.
    """
    settings = {name: Secret(value) for name, value in options.settings}
    headers = {"target-sr-cluster": _CLUSTER, "Confluent-Identity-Pool-Id": _POOL}
    return RegistrySettings(
        _servers(Secret(options.url), settings),
        _token(settings),
        tuple((name, settings[key]) for name, key in headers.items() if settings.get(key)),
        _tls(settings),
        settings.get("ssl.ca.location", ""),
        settings.get("ssl.certificate.location", ""),
        settings.get("ssl.key.location", ""),
        _timeout_ms(settings),
    )


def with_registry_names(text: str) -> str:
    """Return an error of stores and TLS with the names of a registry's options."""
    return text.replace("'kafka.ssl.", f"'{PREFIX}ssl.")


def _servers(url: str, settings: Mapping[str, str]) -> tuple[RegistryServer, ...]:
    source = _source(settings, _BASIC_SOURCE, "URL", "USER_INFO")
    user_info = settings.get(_USER_INFO, "")
    if user_info and ":" not in user_info:
        raise ValueError(f"Option '{PREFIX}{_USER_INFO}' must be 'user:password'")
    if source == "USER_INFO" and not user_info:
        raise ValueError(f"Option '{PREFIX}{_BASIC_SOURCE}' USER_INFO needs '{PREFIX}{_USER_INFO}'")
    found = [_server(each.strip()) for each in url.split(",") if each.strip()]
    servers = tuple(filter(None, found))
    if not found:
        raise ValueError(f"Option '{PREFIX}url' is empty")
    if len(servers) < len(found):
        raise ValueError(
            f"Option '{PREFIX}url' must be one or several 'http://host:port' or "
            "'https://host:port', separated by commas"
        )
    has_login = any(server.login for server in servers)
    if user_info and has_login:
        raise ValueError(
            f"Option '{PREFIX}url' has a user, and '{PREFIX}{_USER_INFO}' has one: set one of them"
        )
    if settings.get(_TOKEN) and (user_info or has_login):
        raise ValueError(f"Option '{PREFIX}{_TOKEN}' cannot be set with a user and password")
    if not user_info:
        return servers
    return tuple(RegistryServer(server.url, Secret(user_info)) for server in servers)


def _server(url: str) -> RegistryServer | None:
    # Raises nothing: the variables of its frame hold a password.
    try:
        parts = urlsplit(url)
        is_usable = bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # UnicodeError is one
        return None
    is_clean = url.isprintable() and not set(url) & set(" ?#")
    if parts.scheme not in {"http", "https"} or not is_usable or not is_clean:
        return None
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return RegistryServer(_without_login(parts), Secret("" if login == ":" else login))


def _without_login(parts: SplitResult) -> str:
    address = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{address}{parts.path}".rstrip("/")


def _source(settings: Mapping[str, str], name: str, *known: str) -> str:
    source = settings.get(name, "").upper()
    if source and source not in known:
        raise ValueError(f"Option '{PREFIX}{name}' must be {' or '.join(known)}")
    return source


def _token(settings: Mapping[str, str]) -> Secret:
    _source(settings, _BEARER_SOURCE, "STATIC_TOKEN")
    for name in (_TOKEN, _CLUSTER, _POOL):
        text = settings.get(name, "")
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ValueError(f"Option '{PREFIX}{name}' has characters that no header can have")
    return Secret(settings.get(_TOKEN, ""))


def _tls(settings: Mapping[str, str]) -> Tls:
    try:
        return read_tls(settings)
    except ValueError as error:
        raise ValueError(with_registry_names(str(error))) from None


def _timeout_ms(settings: Mapping[str, str]) -> int:
    text = settings.get(_TIMEOUT, str(DEFAULT_TIMEOUT_MS))
    try:
        found = integer(text)
    except ValueError:
        found = 0
    if not 1 <= found <= INT32_MAX:
        raise ValueError(
            f"Option '{PREFIX}{_TIMEOUT}' must be a whole number from 1 to {INT32_MAX}, "
            f"got '{text}'"
        )
    return found
