"""The ``kafka.*`` options: settings of Kafka's Java clients, read as Java reads them.

Users of the JVM connector bring these options along. The adapters translate the result for their
clients. No message and no ``repr`` contains a secret: only values that are numbers or choices are
shown.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ..security.login import read_login
from ..security.oauth import OAUTHBEARER
from ..security.secrets import Secret, is_secret
from ..security.tls import read_tls
from .option import INT32_MAX, PREFIX, boolean, did_you_mean, server_list
from .servers import server_address
from .settings_table import (
    ALL_REPLICAS,
    API_TIMEOUT_MS,
    BOOTSTRAP_SERVERS,
    BY_NAME,
    CALLBACK_HANDLERS,
    DEFAULT_API_TIMEOUT_MS,
    ISOLATION_LEVEL,
    KAFKA_PYTHON,
    KAFKA_PYTHON_NAMES,
    SETTINGS,
    UNIFORM_STICKY,
    Ignored,
    ProducerField,
    Refused,
    Setting,
)
from .source_table import TOKEN_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ..security.login import Login
    from ..security.tls import Tls
    from ..values.registry import RegistryOptions
    from ..values.value_options import ValueOptions
    from .option import Reading


def kafka_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the ``kafka.*`` options without their prefix; ``given`` has lower-case names.

    kafka-python's underscores become dots in the settings that Java's clients have. Tools that show
    variables of a traceback show the ``repr`` of a secret.
    """
    return {
        _in_dots(name): Secret(value.strip()) if is_secret(name) else value.strip()
        for name, value in _without_prefix(given)
    }


def spelling_problems(given: Mapping[str, str]) -> list[str]:
    """Return which settings ``given`` has in two spellings."""
    spellings = Counter(_in_dots(name) for name, _ in _without_prefix(given))
    return [
        f"Option '{PREFIX}{name}' is set twice, with dots and with underscores: set it once"
        for name, count in sorted(spellings.items())
        if count > 1
    ]


def _without_prefix(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name.startswith(PREFIX):
            yield name.removeprefix(PREFIX), value


def _in_dots(name: str) -> str:
    dotted = name.replace("_", ".")
    return dotted if dotted in BY_NAME or dotted == BOOTSTRAP_SERVERS else name


def unprefixed(names: Iterable[str]) -> dict[str, str]:
    """Return the names of settings without their prefix, and what is wrong with each."""
    return {
        name: f"Option '{name}' is not known. Did you mean '{PREFIX}{name}'?"
        for name in sorted(names)
        if name in BY_NAME or name == BOOTSTRAP_SERVERS
    }


def consumer_problems(settings: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the settings of a read, with any client."""
    effects = [setting.read for setting in SETTINGS if setting.name in settings]
    return [
        *(effect.message for effect in effects if isinstance(effect, Refused)),
        *_problems(BY_NAME[ISOLATION_LEVEL], settings),
        *connection_problems(settings, "consumer"),
    ]


def connection_problems(settings: Mapping[str, str], role: str) -> list[str]:
    """Return what is wrong with the settings of any connection; ``role`` is the client's."""
    problems = _problems(BY_NAME[API_TIMEOUT_MS], settings)
    if not server_list(settings.get(BOOTSTRAP_SERVERS, "")):
        problems.append(
            f"Option 'kafka.bootstrap.servers' must be specified for configuring Kafka {role}"
        )
    elif "@" in settings[BOOTSTRAP_SERVERS]:
        # The servers may hold a password: neither this text nor a failing client may repeat them.
        problems.append(
            "Option 'kafka.bootstrap.servers' must be host:port, without a user: set the login in "
            "'kafka.sasl.jaas.config'"
        )
    return problems


def server_problems(servers: str) -> list[str]:
    """Return which servers Kafka's clients cannot use; other clients may read them differently.

    The problems do not repeat the servers: one may be a connection string with a key.
    """
    return [
        "Option 'kafka.bootstrap.servers' must be host:port, separated by commas: number "
        f"{number} is not"
        for number, each in enumerate(server_list(servers), 1)
        if server_address(each) is None
    ]


def _problems(setting: Setting, settings: Mapping[str, str]) -> list[str]:
    if setting.values and setting.name in settings:
        try:
            setting.values.read(setting.name, settings[setting.name])
        except ValueError as error:
            return [str(error)]
    return []


MAX_IN_FLIGHT: Final = 5
"""The requests in flight whose order a broker can restore by their sequence numbers."""


@final
@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How records are written; sizes in bytes.

    ``partitioner`` is ``None``, ``ROUND_ROBIN``, or a Python function, ``module:function``.
    ``compression_level`` is ``None`` for the codec's own default.
    """

    acks: int = ALL_REPLICAS
    is_idempotent: bool = True
    compression: str = "none"
    compression_level: int | None = None
    batch_size: int = 512 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    max_request_size: int = 1024 * 1024
    max_in_flight: int = MAX_IN_FLIGHT
    retries: int = INT32_MAX
    delivery_timeout_ms: int = 120_000
    max_block_ms: int = 10_000
    transaction_timeout_ms: int = 900_000
    ignores_keys: bool = False
    partitioner: str | None = None


def producer_settings(settings: Mapping[str, str]) -> tuple[ProducerSettings, list[str]]:
    """Return the producer's settings among ``kafka.*`` settings, and what is wrong with them."""
    effects = [setting.write for setting in SETTINGS if setting.name in settings]
    problems = [effect.message for effect in effects if isinstance(effect, Refused)]
    fields: dict[str, Any] = {}
    levels: dict[str, Any] = {}
    for name in sorted(settings.keys() & BY_NAME.keys()):
        write = BY_NAME[name].write
        if isinstance(write, ProducerField):
            try:
                value = write.values.read(name, settings[name])
            except ValueError as error:
                problems.append(str(error))
            else:
                (fields if write.name else levels)[write.name or name] = value
    fields["compression_level"] = levels.get(f"compression.{fields.get('compression')}.level")
    if settings.get("partitioner.class") == UNIFORM_STICKY:
        # KIP-794 defines the two as the same.
        fields["ignores_keys"] = True
    conflicts = idempotence_conflicts(ProducerSettings(**fields))
    if "is_idempotent" not in fields:
        # As in Kafka 3.9: a conflicting setting turns idempotence off unless it was set.
        fields["is_idempotent"] = not conflicts
    elif fields["is_idempotent"]:
        problems += conflicts
    return ProducerSettings(**fields), problems


def without_producer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a sink's client: not the producer's, and none that a read refuses."""
    return {
        name: value
        for name, value in settings.items()
        if name not in BY_NAME
        or (BY_NAME[name].write is None and not isinstance(BY_NAME[name].read, Refused))
    }


def idempotence_conflicts(settings: ProducerSettings) -> list[str]:
    """Return, in the words of Java's ``ProducerConfig``, which settings rule out idempotence."""
    problems = []
    if settings.acks != ALL_REPLICAS:
        problems.append(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot "
            "guarantee idempotence."
        )
    if not settings.retries:
        problems.append("Must set retries to non-zero when using the idempotent producer.")
    if settings.max_in_flight > MAX_IN_FLIGHT:
        problems.append(
            "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent "
            "producer."
        )
    return problems


def client_settings(reading: Reading) -> dict[str, str]:
    """Return the ``kafka.*`` options without their prefix, with the provider of tokens."""
    reading.problems += spelling_problems(reading.given)
    # A client in C would end the value there.
    reading.problems += [
        f"Option '{name}' has a NUL character (\\0). Remove it"
        for name, text in sorted(reading.given.items())
        if name.startswith(PREFIX) and "\0" in text
    ]
    settings = kafka_settings(reading.given)
    provider = reading.read(TOKEN_PROVIDER)
    if provider is None:
        return settings
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms", "")
    if mechanism.upper() != OAUTHBEARER:
        reading.problems.append(
            f"Option '{TOKEN_PROVIDER.name}' requires '{PREFIX}sasl.mechanism' {OAUTHBEARER}"
        )
    login, _ = CALLBACK_HANDLERS
    return settings | {login: provider}


T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class JavaSettings:
    """Settings as Java reads them; ``others`` are those that a client translates one by one."""

    others: Mapping[str, str] = field(repr=False)
    protocol: str
    login: Login | None
    tls: Tls | None
    wrong: tuple[tuple[str, str], ...]
    """The problems, each with the name of its setting."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of the settings."""
        return tuple(problem for _, problem in self.wrong)

    def without(self, names: Collection[str]) -> JavaSettings:
        """Return the settings without some of ``others``, and without their problems."""
        others = {name: value for name, value in self.others.items() if name not in names}
        wrong = tuple(each for each in self.wrong if each[0] not in names)
        return replace(self, others=others, wrong=wrong)

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers, ``host:port`` separated by commas."""
        return self.others[BOOTSTRAP_SERVERS]

    @property
    def timeout_ms(self) -> int:
        """The time-out of every call to a cluster, in milliseconds."""
        return int(self.others.get(API_TIMEOUT_MS, DEFAULT_API_TIMEOUT_MS))

    @property
    def principal(self) -> str | None:
        """Kafka's name of the user, such as ``User:ada``; ``None`` if only the brokers know it.

        Brokers map a Kerberos principal to its first part (``sasl.kerberos.principal.to.local
        .rules``), name a client certificate by its subject, and know whose a delegation token is.
        """
        if self.protocol == "PLAINTEXT":
            return "User:ANONYMOUS"
        if self.login is None or self.login.is_delegation_token:
            return None
        name = self.login.username or re.split("[/@]", self.login.principal)[0]
        return f"User:{name}" if name else None


def read_java_settings(settings: Mapping[str, str], client: str = "") -> JavaSettings:
    """Read ``kafka.*`` settings of a client, without their prefix, and collect the problems."""
    wrong: list[tuple[str, str]] = []
    if client == KAFKA_PYTHON:
        settings = _in_common_names(settings, wrong)
    servers = server_problems(settings.get(BOOTSTRAP_SERVERS, ""))
    wrong += ((BOOTSTRAP_SERVERS, problem) for problem in servers)
    others: dict[str, str] = {}
    for name, value in sorted(settings.items()):
        try:
            others |= _translated(name, value)
        except ValueError as error:
            wrong.append((name, str(error)))
    if BOOTSTRAP_SERVERS in others:
        others[BOOTSTRAP_SERVERS] = _without_schemes(others[BOOTSTRAP_SERVERS])
    _order_backoffs(others)
    protocol = others.pop("security.protocol", "PLAINTEXT")
    login = _read(read_login, settings, wrong) if protocol.startswith("SASL") else None
    tls = _read(read_tls, settings, wrong) if protocol.endswith("SSL") else None
    return JavaSettings(others, protocol, login, tls, tuple(wrong))


def _without_schemes(servers: str) -> str:
    """Return servers without ``SASL_SSL://`` before them, which librdkafka does not accept."""
    if "://" not in servers:
        return servers
    return ",".join(each.rpartition("://")[2] for each in server_list(servers))


_CHECK_HOSTNAME: Final = "ssl.check.hostname"
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"


_SAME: Final = "Options 'kafka.{}' and 'kafka.{}' are the same setting: set one of them"


def _in_common_names(settings: Mapping[str, str], wrong: list[tuple[str, str]]) -> dict[str, str]:
    """Return kafka-python's settings with Java's and librdkafka's names."""
    spelled: dict[str, str] = {}
    named: dict[str, str] = {}
    for given, value in settings.items():
        dotted = given.replace("_", ".")
        name = KAFKA_PYTHON_NAMES.get(dotted, dotted)
        meant = _IDENTIFICATION if name == _CHECK_HOSTNAME else name
        if (other := named.setdefault(meant, given)) != given:
            wrong.append((name, _SAME.format(other, given)))
        spelled[name] = value
    checked = spelled.pop(_CHECK_HOSTNAME, "true")
    try:
        if not boolean(checked):
            spelled[_IDENTIFICATION] = ""
    except ValueError:
        problem = f"Option '{PREFIX}{_CHECK_HOSTNAME}' must be true or false"
        wrong.append((_CHECK_HOSTNAME, problem))
    return spelled


def _read(
    reader: Callable[[Mapping[str, str]], T],
    settings: Mapping[str, str],
    wrong: list[tuple[str, str]],
) -> T | None:
    try:
        return reader(settings)
    except ValueError as error:
        wrong.append(("security.protocol", str(error)))
        return None


def _translated(name: str, value: str) -> dict[str, str]:
    setting = BY_NAME.get(name)
    if setting is None:
        # A configuration provider is refused itself, and its parameters belong to it.
        return {} if name.startswith("config.providers.") else {name: value}
    if setting.jvm and value not in ("", setting.jvm.default):
        raise ValueError(f"Option '{PREFIX}{name}' is not supported: {setting.jvm.instead}")
    if setting.jvm or setting.is_security or isinstance(setting.read, Ignored):
        return {}
    if setting.values is None:
        return {name: value}
    parsed = setting.values.read(name, value)
    return {name: str(parsed).lower() if isinstance(parsed, bool) else str(parsed)}


def _order_backoffs(settings: dict[str, str]) -> None:
    """Limit the backoff to its maximum, as Java does; alone, it is the maximum as well."""
    name, max_name = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
    if name in settings or max_name in settings:
        maximum = int(settings[max_name if max_name in settings else name])
        settings[max_name] = str(maximum)
        settings[name] = str(min(int(settings.get(name, _DEFAULT_BACKOFF_MS)), maximum))


_DEFAULT_BACKOFF_MS: Final = "50"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The client of a query, its settings, and the columns ``key`` and ``value`` with formats.

    ``kafka`` holds the settings without their prefix, and ``java`` what they mean. Neither is part
    of ``repr``, since it may contain secrets.
    """

    client: str
    kafka: tuple[tuple[str, str], ...] = field(repr=False)
    java: JavaSettings = field(init=False, repr=False, compare=False)
    values: tuple[ValueOptions, ...] = field(default=(), kw_only=True)
    registry: RegistryOptions | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "java", read_java_settings(dict(self.kafka), self.client))

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers, ``host:port`` separated by commas."""
        return self.java.bootstrap_servers

    @property
    def restricted_settings(self) -> dict[str, str]:
        """The settings that the operator's policy applies to."""
        return dict(self.kafka)


def not_known(name: str, client: str) -> str:
    """Return the problem of a setting that neither Java's client nor this one has."""
    javas = {known: f"{PREFIX}{known}" for known in BY_NAME}
    hint = "" if name in javas else did_you_mean(name, javas)
    return f"Option '{PREFIX}{name}' is not known to the client '{client}'.{hint}"
