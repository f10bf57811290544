"""The sources of tokens for logins by OAUTHBEARER, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final
from urllib.parse import urlsplit

from ..options.option import server_list
from ..options.servers import server_address
from ..options.settings_table import BOOLEAN, BOOTSTRAP_SERVERS, CALLBACK_HANDLERS
from .secrets import Secret, hides_secrets
from .tls import pem


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """A token endpoint, and the fields of the request for a token (RFC 6749, section 4.4).

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

    def at(self, host: str) -> MskIam:
        """Return the source for a broker: its region signs, if its name has one."""
        found = _MSK_HOST.search(host)
        return replace(self, region=found[1]) if found else self


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


SHADED: Final = "kafkashaded."
"""The package prefix of Kafka's classes on platforms that shade them."""

OAUTHBEARER: Final = "OAUTHBEARER"
AWS_MSK_IAM: Final = "AWS_MSK_IAM"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MSK_MODULE: Final = "software.amazon.msk.auth.iam.IAMLoginModule"

PROVIDER_NAMES: Final = ("azure", "google", "msk")
"""Values of the option ``tokenProvider`` that are neither a function nor an entry point."""

_OPTION: Final = "Option 'kafka.{}'"
_NAME_A_FUNCTION: Final = (
    "set the option 'tokenProvider' to a Python function that returns tokens, 'module:function'"
)
_HANDLERS: Final = (
    (re.compile(r"org\.apache\.kafka\..*\.OAuthBearer(Login|SaslClient)CallbackHandler"), ""),
    (re.compile(r"io\.strimzi\.kafka\.oauth\.client\.\w+"), ""),
    (re.compile(r"software\.amazon\.msk\.auth\.iam\.\w+"), "msk"),
    (re.compile(r"com\.google\.cloud\.hosted\.kafka\.auth\.\w+"), "google"),
    (re.compile(r"(com\.(microsoft\.)?azure|kafka\.azure)\.[\w.]+"), "azure"),
)
"""Java's classes of callback handlers, and the provider that does the same."""

_RETRIEVERS: Final = frozenset({"", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever"})
_VALIDATORS: Final = frozenset({"", "DefaultJwtValidator", "ClientJwtValidator"})
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_NATIVE: Final = (
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.metadata.authentication.type",
)
_CLIENT_CREDENTIALS: Final = frozenset({"", "client_credentials"})
_OTHER_GRANTS: Final = (
    "oauth.access.token",
    "oauth.access.token.location",
    "oauth.refresh.token",
    "oauth.refresh.token.location",
    "oauth.client.assertion",
    "oauth.client.assertion.location",
    "oauth.password.grant.username",
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_MSK_HOST: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_AZURE_DOMAINS: Final = (
    "servicebus.windows.net",
    "servicebus.chinacloudapi.cn",
    "servicebus.usgovcloudapi.net",
)
_EXTENSION: Final = "extension_"
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
# RFC 7628, section 3.1; the bytes of other values would end the message.
_EXTENSION_VALUE: Final = re.compile(r"[\x20-\x7e\t\r\n]*")


def token_source(settings: Mapping[str, str], jaas: Mapping[str, str]) -> TokenSource | None:
    """Return where tokens come from; ``jaas`` has the options of the login module.

    ``None`` if librdkafka's settings choose a way that only librdkafka has.

    :raises ValueError: if it cannot be used; no message contains a secret.
    """
    provider = _provider(settings)
    if provider == "msk" or _mechanism(settings) == AWS_MSK_IAM:
        return _msk_iam(settings, jaas)
    if provider == "google":
        _require_host(settings, "cloud.goog")
        return GoogleCredentials()
    if provider == "azure":
        host = _require_host(settings, *_AZURE_DOMAINS)
        return AzureIdentity(f"https://{host}/.default", jaas.get("clientId", ""))
    if provider:
        return TokenFunction(provider)
    if _is_native(settings):
        return None
    return _client_credentials(settings, jaas)


def _mechanism(settings: Mapping[str, str]) -> str:
    return (settings.get("sasl.mechanism") or settings.get("sasl.mechanisms", "")).upper()


def _provider(settings: Mapping[str, str]) -> str:
    """Return a name of ``PROVIDER_NAMES``, a function or an entry point; empty without one."""
    named = [name for name in CALLBACK_HANDLERS if settings.get(name)]
    if not named:
        return ""
    given = settings[named[0]].removeprefix(SHADED)
    for pattern, provider in _HANDLERS:
        if pattern.fullmatch(given):
            return provider
    if ":" not in given and "." in given:
        raise ValueError(
            f"{_OPTION.format(named[0])}: no Java class runs here, and '{given}' is not known; "
            + _NAME_A_FUNCTION
        )
    return given


def _is_native(settings: Mapping[str, str]) -> bool:
    grant = settings.get("sasl.oauthbearer.grant.type", "").lower()
    return grant not in _CLIENT_CREDENTIALS or any(settings.get(name) for name in _NATIVE)


def _msk_iam(settings: Mapping[str, str], jaas: Mapping[str, str]) -> MskIam:
    regions = [found[1] for host in _hosts(settings) if (found := _MSK_HOST.search(host))]
    return MskIam(
        next(iter(regions), ""),
        jaas.get("awsProfileName", ""),
        jaas.get("awsRoleArn", ""),
        jaas.get("awsRoleSessionName", ""),
    )


def _hosts(settings: Mapping[str, str]) -> list[str]:
    servers = server_list(settings.get(BOOTSTRAP_SERVERS, ""))
    addresses = ((server, server_address(server)) for server in servers)
    return [address[0] if address else server for server, address in addresses]


def _require_host(settings: Mapping[str, str], *domains: str) -> str:
    """Return the first broker's host; all brokers have to be in one of these domains.

    The token of a machine in a cloud is good for more than Kafka: no other broker may get it.
    """
    hosts = _hosts(settings)
    for host in hosts:
        if not host.lower().endswith(tuple(f".{domain}" for domain in domains)):
            raise ValueError(
                f"{_OPTION.format(BOOTSTRAP_SERVERS)}: tokens of this machine's identity go to "
                f"brokers of {' or '.join(domains)} only, not to '{host}'; {_NAME_A_FUNCTION}"
            )
    return hosts[0]


def _client_credentials(settings: Mapping[str, str], jaas: Mapping[str, str]) -> ClientCredentials:
    _refuse_other_ways(settings, jaas)
    found = {
        f"kafka.{_ENDPOINT}": settings.get(_ENDPOINT) or jaas.get("oauth.token.endpoint.uri", ""),
        "kafka.sasl.oauthbearer.client.credentials.client.id": _credential(settings, jaas, "id"),
        "kafka.sasl.oauthbearer.client.credentials.client.secret": _credential(
            settings, jaas, "secret"
        ),
    }
    missing = [f"'{name}'" for name, value in found.items() if not value]
    if missing:
        raise ValueError(
            f"Option 'kafka.sasl.mechanism' {OAUTHBEARER} requires {', '.join(missing)}; or "
            + _NAME_A_FUNCTION
        )
    endpoint, client_id, secret = found.values()
    location, certificates = _authorities(settings, jaas)
    return ClientCredentials(
        _checked(endpoint),
        client_id,
        Secret(secret),
        _scope(settings, jaas),
        jaas.get("oauth.audience", ""),
        _extensions(settings, jaas),
        _encodes_header(settings),
        location,
        Secret(certificates),
    )


def _refuse_other_ways(settings: Mapping[str, str], jaas: Mapping[str, str]) -> None:
    """Raise ``ValueError`` if a token would not come from an endpoint for a client's secret."""
    for name in _OTHER_GRANTS:
        if jaas.get(name):
            raise ValueError(
                f"{_OPTION.format('sasl.jaas.config')}: '{name}' is not supported; set a client's "
                f"id and secret, or {_NAME_A_FUNCTION}"
            )
    for role, known in (("retriever", _RETRIEVERS), ("validator", _VALIDATORS)):
        name = f"sasl.oauthbearer.jwt.{role}.class"
        given = settings.get(name, "")
        if given.rpartition(".")[2] not in known:
            raise ValueError(
                f"{_OPTION.format(name)}: no Java class runs here, and '{given}' is not known; "
                + _NAME_A_FUNCTION
            )


def _credential(settings: Mapping[str, str], jaas: Mapping[str, str], part: str) -> str:
    return (
        settings.get(f"sasl.oauthbearer.client.credentials.client.{part}")
        or settings.get(f"sasl.oauthbearer.client.{part}")
        or jaas.get(f"client{part.capitalize()}")
        or jaas.get(f"oauth.client.{part}", "")
    )


def _scope(settings: Mapping[str, str], jaas: Mapping[str, str]) -> str:
    return (
        settings.get("sasl.oauthbearer.scope") or jaas.get("scope") or jaas.get("oauth.scope", "")
    )


def _encodes_header(settings: Mapping[str, str]) -> bool:
    name = "sasl.oauthbearer.header.urlencode"
    return BOOLEAN.read(name, settings.get(name) or "false")


def _checked(endpoint: str) -> str:
    """Return a token endpoint that can be asked without showing the secret to the network."""
    name = _OPTION.format(_ENDPOINT)
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:  # UnicodeError is one
        host = None
    if not host or parts.username is not None or parts.fragment:
        raise ValueError(f"{name} must be a URL, as https://host/path, without a user's name")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        raise ValueError(
            f"{name} must begin with https://, got '{parts.scheme}://{host}': the client's secret "
            "is sent to it"
        )
    return endpoint


def _authorities(settings: Mapping[str, str], jaas: Mapping[str, str]) -> tuple[str, str]:
    """Return the PEM file, or PEM, of the authorities that the endpoint's certificate may have."""
    location = settings.get("https.ca.location", "")
    inline = settings.get("https.ca.pem", "")
    for prefix in ("ssl", "oauth.ssl"):
        kind = jaas.get(f"{prefix}.truststore.type", "")
        if jaas.get(f"{prefix}.truststore.location"):
            if kind.upper() != "PEM":
                raise ValueError(
                    f"{_OPTION.format('sasl.jaas.config')}: '{prefix}.truststore.location' must "
                    "be PEM: set 'kafka.https.ca.location' to a PEM file of the authorities"
                )
            location = location or jaas[f"{prefix}.truststore.location"]
        inline = inline or jaas.get(f"{prefix}.truststore.certificates", "")
    return location, pem("https.ca.pem", inline) if inline else ""


def _extensions(
    settings: Mapping[str, str], jaas: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    given = settings.get("sasl.oauthbearer.extensions", "")
    pairs = [part.partition("=")[::2] for part in given.split(",") if part]
    extensions = {name.strip(): value for name, value in pairs}
    extensions |= {
        name.removeprefix(_EXTENSION): value
        for name, value in jaas.items()
        if name.startswith(_EXTENSION)
    }
    for name, value in extensions.items():
        if not is_extension(name, value):
            raise ValueError(
                f"{_OPTION.format('sasl.mechanism')} {OAUTHBEARER}: the extension '{name}' needs a "
                "name of letters other than 'auth', and a value of printable ASCII"
            )
    return tuple(sorted(extensions.items()))


def is_extension(name: str, value: str) -> bool:
    """Return whether a broker accepts an extension, which goes to it with the token."""
    is_named = _EXTENSION_NAME.fullmatch(name) is not None and name.lower() != "auth"
    return is_named and _EXTENSION_VALUE.fullmatch(value) is not None
