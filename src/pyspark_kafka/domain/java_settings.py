"""What the settings of Kafka's Java client mean, for clients that are not Java's.

Whoever comes from the JVM connector brings its ``kafka.*`` options along. Here each of them is
read as Java reads it; the adapters only spell the result as their clients do. A setting that
governs what a read of a range does not have is accepted and left out (``WITHOUT_EFFECT``), and
one that would need a JVM is refused with what to set instead (``REFUSED``).

No message and no ``repr`` holds a secret: values are named only where they are numbers or
choices.
"""

from __future__ import annotations

import enum
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, final

from .kafka_settings import PREFIX
from .option_values import MOST_INT, boolean, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")

_NO_GROUP: Final = "a read of a range joins no consumer group"
_NO_COMMIT: Final = "a read of a range commits no offsets"
_NO_JVM_METRICS: Final = "Spark shows the query's metrics; the client's are not collected"
_NO_WRITE: Final = "it governs writing, and this is a read"
_NO_JVM_LOGIN: Final = "it paces the login thread of a JVM"
_NO_JVM_TLS: Final = "it names an implementation inside of a JVM; TLS is OpenSSL's here"
_BROKER_SIDE: Final = "it governs how a broker checks tokens"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "group.instance.id",
            "group.protocol",
            "group.remote.assignor",
            "heartbeat.interval.ms",
            "internal.leave.group.on.close",
            "max.poll.interval.ms",
            "partition.assignment.strategy",
            "session.timeout.ms",
            "share.acknowledgement.mode",
            "share.acquire.mode",
        ),
        _NO_GROUP,
    ),
    **dict.fromkeys(
        ("auto.commit.interval.ms", "internal.throw.on.fetch.stable.offset.unsupported"),
        _NO_COMMIT,
    ),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
        ),
        _NO_JVM_METRICS,
    ),
    **dict.fromkeys(
        (
            "acks",
            "batch.size",
            "buffer.memory",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "delivery.timeout.ms",
            "enable.idempotence",
            "linger.ms",
            "max.block.ms",
            "max.request.size",
            "metadata.max.idle.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "partitioner.class",
            "partitioner.ignore.keys",
            "retries",
            "transaction.timeout.ms",
            "transaction.two.phase.commit.enable",
            "transactional.id",
        ),
        _NO_WRITE,
    ),
    **dict.fromkeys(
        (
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
        ),
        _NO_JVM_LOGIN,
    ),
    **dict.fromkeys(
        (
            "ssl.keymanager.algorithm",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
        _NO_JVM_TLS,
    ),
    **dict.fromkeys(
        (
            "sasl.oauthbearer.clock.skew.seconds",
            "sasl.oauthbearer.expected.audience",
            "sasl.oauthbearer.expected.issuer",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.oauthbearer.jwks.endpoint.url",
            "sasl.oauthbearer.scope.claim.name",
        ),
        _BROKER_SIDE,
    ),
    "allow.auto.create.topics": "a read never makes a topic",
    "exclude.internal.topics": "'subscribePattern' always leaves internal topics out",
    "max.poll.records": "how many records are taken at once is the reader's matter",
    "ssl.protocol": "Java's client offers what 'ssl.enabled.protocols' lists, whatever it is",
}
"""Settings of Java's clients that are accepted and change nothing, each with the reason."""

_OAUTH_INSTEAD: Final = (
    "no Java class runs here. For OAuth take the client 'confluent' with "
    "'kafka.sasl.mechanism' OAUTHBEARER, 'kafka.sasl.oauthbearer.method' oidc, and "
    "'kafka.sasl.oauthbearer.client.id', '.client.secret', '.scope' and '.token.endpoint.url'"
)
_MSK_INSTEAD: Final = (
    "no Java class runs here. For AWS MSK IAM take the client 'kafka-python' with the package "
    "'botocore', 'kafka.sasl.mechanism' AWS_MSK_IAM and no 'kafka.sasl.jaas.config'"
)
_NO_JVM_CLASS: Final = "no Java class runs here"

REFUSED: Final[Mapping[str, str]] = {
    "bootstrap.controllers": "a read asks brokers; set 'kafka.bootstrap.servers'",
    "config.providers": f"{_NO_JVM_CLASS}; give the values themselves",
    "key.serializer": f"{_NO_JVM_CLASS}; keys are bytes",
    "value.serializer": f"{_NO_JVM_CLASS}; values are bytes",
    "metric.reporters": f"{_NO_JVM_CLASS}; Spark shows the query's metrics",
    "sasl.client.callback.handler.class": _NO_JVM_CLASS,
    "sasl.login.callback.handler.class": _NO_JVM_CLASS,
    "sasl.login.class": f"{_NO_JVM_CLASS}; the login is made of 'kafka.sasl.jaas.config'",
    "sasl.oauthbearer.jwt.retriever.class": _OAUTH_INSTEAD,
    "sasl.oauthbearer.jwt.validator.class": _OAUTH_INSTEAD,
    "security.providers": f"{_NO_JVM_CLASS}; TLS is OpenSSL's",
    "ssl.engine.factory.class": f"{_NO_JVM_CLASS}; set 'kafka.ssl.truststore.*' and "
    "'kafka.ssl.keystore.*'",
    "ssl.provider": "it names a provider inside of a JVM, and TLS is OpenSSL's here; leave it out",
}
"""Settings that would need a JVM, each with what to do instead."""

_HARMLESS: Final[Mapping[str, str]] = {
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "security.providers": "",
    "ssl.provider": "SunJSSE",
}
"""The default of a refused setting, which may be spelled out."""

_LEAST: Final[Mapping[str, int]] = {
    "connections.max.idle.ms": -1,
    "fetch.max.bytes": 0,
    "fetch.max.wait.ms": 0,
    "fetch.min.bytes": 0,
    "max.partition.fetch.bytes": 0,
    "metadata.max.age.ms": 0,
    "metadata.recovery.rebootstrap.trigger.ms": 0,
    "receive.buffer.bytes": -1,
    "reconnect.backoff.max.ms": 0,
    "reconnect.backoff.ms": 0,
    "request.timeout.ms": 0,
    "retry.backoff.max.ms": 0,
    "retry.backoff.ms": 0,
    "sasl.kerberos.min.time.before.relogin": 0,
    "send.buffer.bytes": -1,
    "socket.connection.setup.timeout.max.ms": 0,
    "socket.connection.setup.timeout.ms": 0,
}
"""The settings that are whole numbers, and the least that Java takes."""

_BOOLEANS: Final = frozenset({"check.crcs", "enable.metrics.push"})

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "metadata.recovery.strategy": ("none", "rebootstrap"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}
"""The settings that are choices, which Java reads in any case."""

_SASL: Final = frozenset(
    {
        "sasl.jaas.config",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.plain.password",
        "sasl.plain.username",
        "sasl.username",
    }
)
_TLS: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
_MODERN: Final = frozenset({TLS_1_2, TLS_1_3})
_LEGACY: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
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
    versions: frozenset[str] = _MODERN
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


def read_java_settings(settings: Mapping[str, str]) -> JavaSettings:
    """Read ``kafka.*`` settings, without their prefix, and gather what is wrong with them."""
    problems: list[str] = []
    others: dict[str, str] = {}
    for name, value in sorted(settings.items()):
        try:
            if _is_translated(name, value):
                others[name] = _checked(name, value)
        except ValueError as error:
            problems.append(str(error))
    _order_backoffs(others)
    protocol = others.pop("security.protocol", "PLAINTEXT")
    login = _read(_login, settings, problems) if protocol.startswith("SASL") else None
    tls = _read(_tls, settings, problems) if protocol.endswith("SSL") else None
    return JavaSettings(others, protocol, login, tls, tuple(problems))


def _read(
    reader: Callable[[Mapping[str, str]], T], settings: Mapping[str, str], problems: list[str]
) -> T | None:
    try:
        return reader(settings)
    except ValueError as error:
        problems.append(str(error))
        return None


def not_known(name: str, client: str) -> str:
    """Say that no client knows a setting."""
    return f"Option '{PREFIX}{name}' is not known to the client '{client}'"


def whole_number(value: str, least: int, most: int) -> int:
    """Bring a number to the nearest one that a client takes."""
    return max(least, min(most, int(value)))


def _is_translated(name: str, value: str) -> bool:
    if name in REFUSED and value not in ("", _HARMLESS.get(name, "")):
        raise ValueError(f"Option '{PREFIX}{name}' is not supported: {_instead(name, value)}")
    return not (
        name in WITHOUT_EFFECT
        or name in REFUSED
        or name in _SASL
        or name in _TLS
        # What a provider of configuration is given, which is refused itself.
        or name.startswith("config.providers.")
    )


def _instead(name: str, value: str) -> str:
    if name.endswith("callback.handler.class"):
        return _module_hint(value)
    return REFUSED[name]


def _checked(name: str, value: str) -> str:
    if name in _LEAST:
        least = _LEAST[name]
        try:
            number = integer(value)
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(
                f"Option '{PREFIX}{name}' must be a whole number from {least} on, got '{value}'"
            )
        return str(min(number, MOST_INT))
    if name in _BOOLEANS:
        try:
            return str(boolean(value)).lower()
        except ValueError:
            raise ValueError(
                f"Option '{PREFIX}{name}' must be true or false, got '{value}'"
            ) from None
    if name in _CHOICES:
        return _choice(name, value, _CHOICES[name])
    return value


def _order_backoffs(settings: dict[str, str]) -> None:
    """Do as Java does: a first wait that is given alone does not grow, and none passes the most."""
    first, most = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
    if first in settings or most in settings:
        longest = int(settings.get(most, settings.get(first, "0")))
        settings[most] = str(longest)
        settings[first] = str(min(int(settings.get(first, _FIRST_BACKOFF_MS)), longest))


_FIRST_BACKOFF_MS: Final = "50"


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    known = ", ".join(choices)
    raise ValueError(f"Option '{PREFIX}{name}' must be one of {known}, got '{value}'")


# --- SASL ---------------------------------------------------------------------------------------

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_SHADED: Final = "kafkashaded."
"""What some platforms put before the names of Kafka's classes."""

_MECHANISMS: Final[Mapping[str, tuple[str, ...]]] = {
    _PLAIN_MODULE: ("PLAIN",),
    _SCRAM_MODULE: ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    _KERBEROS_MODULE: ("GSSAPI",),
}
_WITH_PASSWORD: Final = frozenset(
    mechanism for module in (_PLAIN_MODULE, _SCRAM_MODULE) for mechanism in _MECHANISMS[module]
)
_JAAS: Final = "Option 'kafka.sasl.jaas.config'"


def _login(settings: Mapping[str, str]) -> Login:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    mechanism = mechanism.upper()
    service_name = settings.get("sasl.kerberos.service.name", "")
    if settings.get("sasl.jaas.config"):
        return _jaas_login(settings["sasl.jaas.config"], mechanism, service_name)
    username = settings.get("sasl.username") or settings.get("sasl.plain.username", "")
    password = settings.get("sasl.password") or settings.get("sasl.plain.password", "")
    if mechanism in _WITH_PASSWORD and not (username and password):
        raise ValueError(
            f"Option 'kafka.sasl.mechanism' {mechanism} needs a user name and a password in "
            "'kafka.sasl.jaas.config'; a JVM's file of logins is not read here"
        )
    return Login(
        mechanism,
        username,
        Secret(password),
        service_name,
        settings.get("sasl.kerberos.keytab", ""),
        settings.get("sasl.kerberos.principal", ""),
    )


def _jaas_login(text: str, mechanism: str, service_name: str) -> Login:
    module, options = _jaas_entry(text)
    if module not in _MECHANISMS:
        raise ValueError(
            f"{_JAAS}: the login module '{module}' is not supported: {_module_hint(module)}"
        )
    if mechanism not in _MECHANISMS[module]:
        wanted = " or ".join(_MECHANISMS[module])
        simple = module.rpartition(".")[2]
        raise ValueError(
            f"{_JAAS}: {simple} goes with 'kafka.sasl.mechanism' {wanted}, not {mechanism}"
        )
    if module == _KERBEROS_MODULE:
        return _kerberos_login(options, service_name)
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError(
            f"{_JAAS}: delegation tokens ('tokenauth') are not supported; "
            "give a user's name and password"
        )
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise ValueError(f"{_JAAS}: the login module has no {' and no '.join(missing)}")
    return Login(mechanism, options["username"], Secret(options["password"]))


def _kerberos_login(options: Mapping[str, str], service_name: str) -> Login:
    name = options.get("serviceName", "")
    if name and service_name and name != service_name:
        raise ValueError(
            f"{_JAAS}: serviceName '{name}' is not the '{service_name}' of "
            "'kafka.sasl.kerberos.service.name'"
        )
    by_keytab = options.get("useKeyTab", "").lower() == "true"
    return Login(
        "GSSAPI",
        service_name=name or service_name,
        keytab=options.get("keyTab", "") if by_keytab else "",
        principal=options.get("principal", ""),
        uses_ticket_cache=not by_keytab,
    )


def _module_hint(class_name: str) -> str:
    if "OAuthBearer" in class_name:
        return _OAUTH_INSTEAD
    if class_name.startswith("software.amazon.msk."):
        return _MSK_INSTEAD
    return f"{_NO_JVM_CLASS}; known login modules are those of PLAIN, SCRAM and Kerberos"


def _jaas_entry(text: str) -> tuple[str, Mapping[str, str]]:
    """Read one login module with its options; no message repeats what may be a password."""
    tokens = list(_jaas_tokens(text))
    words = [word for word, _ in tokens]
    if len(tokens) < 2 or words[1].lower() not in _FLAGS:
        raise ValueError(
            f"{_JAAS} must be a login module's class, one of required, requisite, sufficient "
            'and optional, and options as name="value", with a semicolon at the end'
        )
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != _END:
        name, equals, value = (*tokens[position : position + 3], _END, _END)[:3]
        if name == _EQUALS or equals != _EQUALS or value in (_EQUALS, _END):
            raise ValueError(
                f"{_JAAS}: option {(position + 1) // 3} of the login module is not of the form "
                'name="value"'
            )
        options[name[0]] = value[0]
        position += 3
    if position >= len(tokens):
        raise ValueError(f"{_JAAS} does not end with a semicolon")
    if position + 1 < len(tokens):
        raise ValueError(f"{_JAAS} must hold one login module, and there is more after it")
    return words[0].removeprefix(_SHADED), options


_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_EQUALS: Final = ("=", False)
_END: Final = (";", False)

_JAAS_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | //[^\n\r]* | /\*.*?\*/ )
  | (?P<sign> [=;] )
  | "(?P<double> (?: [^"\\\n\r] | \\. )* ) (?: " | (?=[\n\r]) | \Z )
  | '(?P<single> (?: [^'\\\n\r] | \\. )* ) (?: ' | (?=[\n\r]) | \Z )
  | (?P<word> (?: (?! //|/\* ) [^\s=;"'] )+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final[Mapping[str, str]] = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def _jaas_tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Split as Java's ``StreamTokenizer`` does; says of each token whether it was quoted."""
    position = 0
    while position < len(text):
        found = _JAAS_TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"{_JAAS} cannot be read from character {position + 1} on")
        position = found.end()
        match found.lastgroup:
            case "double" | "single":
                yield _ESCAPE.sub(_unescaped, found[found.lastgroup]), True
            case "sign" | "word":
                yield found[0], False


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


# --- TLS ----------------------------------------------------------------------------------------

_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")


def _tls(settings: Mapping[str, str]) -> Tls:
    versions = _versions(settings)
    versions, ciphers = _ciphers(settings.get("ssl.cipher.suites", ""), versions)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https")
    # An empty one is Java's way to say none, and 'none' librdkafka's.
    hostname = _choice("ssl.endpoint.identification.algorithm", algorithm or "none", _HOSTNAME)
    return Tls(
        _truststore(settings),
        _keystore(settings),
        Secret(settings.get("ssl.key.password", "")),
        hostname == "https",
        versions,
        ciphers,
    )


_HOSTNAME: Final = ("https", "none")


def _truststore(settings: Mapping[str, str]) -> Store | None:
    _store_type("truststore", settings)
    location = settings.get("ssl.truststore.location", "")
    certificates = settings.get("ssl.truststore.certificates", "")
    if location and certificates:
        raise ValueError(
            "Options 'kafka.ssl.truststore.location' and 'kafka.ssl.truststore.certificates' "
            "exclude one another"
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
            "Options 'kafka.ssl.keystore.location' and 'kafka.ssl.keystore.key' exclude one another"
        )
    if bool(key) != bool(chain):
        raise ValueError(
            "Options 'kafka.ssl.keystore.key' and 'kafka.ssl.keystore.certificate.chain' "
            "need one another"
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
    # Java keeps to it; here the content tells, as for Java's own JKS, which may be PKCS12.
    _choice(f"ssl.{kind}.type", settings.get(f"ssl.{kind}.type") or "JKS", _STORE_TYPES)


def _versions(settings: Mapping[str, str]) -> frozenset[str]:
    named = _names(settings.get("ssl.enabled.protocols", ""))
    unknown = sorted(named - _MODERN - _LEGACY)
    versions = named & _MODERN
    if unknown or (named and not versions):
        raise ValueError(
            "Option 'kafka.ssl.enabled.protocols' must name TLSv1.2, TLSv1.3 or both, "
            f"got '{settings['ssl.enabled.protocols']}'"
        )
    return versions or _MODERN


_SUITE: Final = re.compile(
    r"TLS_(?P<exchange>(?:ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA))_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>CBC|GCM)_(?P<hash>SHA|SHA256|SHA384)"
    r"|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)
_SUITES_1_3: Final = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    }
)
_SIGNAL: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"


def _ciphers(text: str, versions: frozenset[str]) -> tuple[frozenset[str], str]:
    """Give the versions that remain, and the suites of TLS 1.2 as OpenSSL names them."""
    if not any(name.startswith(("TLS_", "SSL_")) for name in _names(text)):
        # None, or a list in OpenSSL's own words.
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
            f"Option 'kafka.ssl.cipher.suites': the suite '{name}' is not supported; take those "
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
    """What is in the file of a store; its content tells, and not its name or its type."""

    PEM = "PEM"
    PKCS12 = "PKCS12"


def store_format(store: Store, content: bytes) -> StoreFormat:
    """Recognise a store.

    :raises ValueError: if only Java reads it, with the command that converts it.
    """
    if content[:4] in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        source, target = store.location, f"{store.location.rpartition('.')[0] or 'store'}.p12"
        raise ValueError(
            f"Option '{store.option}': '{source}' is a JKS store, which only Java reads. "
            "Convert it, and name the new file instead: keytool -importkeystore "
            f"-srckeystore {shlex.quote(source)} -destkeystore {shlex.quote(target)} "
            "-deststoretype PKCS12"
        )
    if b"-----BEGIN " in content:
        return StoreFormat.PEM
    if content[:1] == b"\x30":
        return StoreFormat.PKCS12
    raise ValueError(f"Option '{store.option}': '{store.location}' is neither PKCS12 nor PEM")


_PEM_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+(.*?)-+END \1-+", re.DOTALL)


def pem(name: str, text: str) -> str:
    """Bring PEM to its canonical lines: Java takes any space where a line should end.

    :raises ValueError: if there is none, naming the setting.
    """
    blocks = "".join(_pem_lines(*found) for found in _PEM_BLOCK.findall(text))
    if not blocks:
        raise ValueError(f"Option '{PREFIX}{name}' must be PEM, as '-----BEGIN ...'")
    return blocks


def _pem_lines(label: str, body: str) -> str:
    # Headers, as of an old encrypted key, are lines of their own.
    if ":" in body:
        content: Iterable[str] = body.strip().splitlines()
    else:
        base64 = "".join(body.split())
        content = (base64[start : start + 64] for start in range(0, len(base64), 64))
    return "\n".join((f"-----BEGIN {label}-----", *content, f"-----END {label}-----", ""))
