"""The operator's rules: settings that are forbidden, and settings that need permission.

Queries come from people who may run SQL and nothing else. ``RESTRICTED`` has what a setting could
do beyond its query: load code, run a command, or read a file or a URL with the rights of Spark's
processes. Stores and certificates of TLS are not in it: as in Java, a query names the files of its
login.
"""

from __future__ import annotations

import enum
import ipaddress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from ..errors import DisallowedOptionError, OptionPolicyError, OptionsError
from ..options.option import PREFIX, REGISTRY_PREFIX, did_you_mean
from ..options.settings_table import BOOTSTRAP_SERVERS, BY_NAME, CALLBACK_HANDLERS
from .login import jaas_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..options.client_settings import ClientOptions
    from ..values.registry import RegistryOptions


@final
class AllowList(enum.Enum):
    """An operator's list; the value describes its entries."""

    OPTIONS = "option"
    MODULES = "module"
    FILES = "file"
    URLS = "URL"

    @property
    def variable(self) -> str:
        """The environment variable that holds it, separated by commas."""
        return f"PYSPARK_KAFKA_ALLOWED_{self.name}"

    @property
    def spark_setting(self) -> str:
        """The setting of Spark's application that holds it."""
        return f"spark.pyspark_kafka.allowed{self.name.title()}"


@final
@dataclass(frozen=True, slots=True)
class Restricted:
    """A setting that the operator has to allow: by its name, or by its value in another list.

    ``effect`` completes "it ...". ``separator`` separates several values. ``harmless`` are values
    that everyone may set.
    """

    name: str
    effect: str
    by: AllowList = AllowList.OPTIONS
    separator: str = ""
    harmless: frozenset[str] = frozenset({""})

    def values(self, text: str) -> list[str]:
        """Return the single values of a setting."""
        parts = text.split(self.separator) if self.separator else [text]
        return [part.strip() for part in parts if part.strip() not in self.harmless]


_READS: Final = "reads a file and uses its content in requests"

RESTRICTED: Final[tuple[Restricted, ...]] = (
    Restricted("https.ca.location", "reads a file", AllowList.FILES),
    Restricted("offset.store.method", "writes files", harmless=frozenset({"", "broker", "none"})),
    Restricted("offset.store.path", "writes a file", AllowList.FILES),
    Restricted("partitioner.class", "imports a Python module", AllowList.MODULES),
    Restricted("plugin.library.paths", "loads native code", AllowList.FILES, ";"),
    Restricted(
        "sasl.kerberos.kinit.cmd",
        "runs a command",
        AllowList.FILES,
        # The commands that Java's client and librdkafka run by default.
        harmless=frozenset({"", "/usr/bin/kinit", "kinit"}),
    ),
    *(Restricted(name, "imports a Python module", AllowList.MODULES) for name in CALLBACK_HANDLERS),
    Restricted("sasl.oauthbearer.assertion.file", _READS, AllowList.FILES),
    Restricted("sasl.oauthbearer.assertion.jwt.template.file", _READS, AllowList.FILES),
    Restricted("sasl.oauthbearer.assertion.private.key.file", _READS, AllowList.FILES),
    Restricted(
        "sasl.oauthbearer.metadata.authentication.type",
        "logs in as the machine, with its cloud's metadata service",
        harmless=frozenset({"", "none"}),
    ),
    Restricted("sasl.oauthbearer.token.endpoint.url", "sends requests to a URL", AllowList.URLS),
    Restricted("ssl.engine.id", "loads native code"),
    Restricted("ssl.engine.location", "loads native code", AllowList.FILES),
    Restricted("ssl.providers", "loads native code"),
)
"""Checked for every client, since Java's and librdkafka's names of them are the same."""

JAAS_OPTIONS: Final[Mapping[str, str]] = {
    "oauth.ssl.truststore.location": "https.ca.location",
    "oauth.token.endpoint.uri": "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location": "https.ca.location",
}
"""Options of login modules in ``sasl.jaas.config``, and the setting that does the same."""

_LIBRDKAFKA: Final = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable
    batch.num.messages broker.address.family broker.address.ttl broker.version.fallback
    compression.codec compression.level consume.callback.max.messages coordinator.query.interval.ms
    debug enable.auto.offset.store enable.partition.eof enable.ssl.certificate.verification
    fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    group.protocol.type log.connection.close log.thread.name log_level max.in.flight
    message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms partitioner
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages receive.message.max.bytes
    reconnect.backoff.jitter.ms request.required.acks sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.crl.location
    ssl.curves.list ssl.key.location ssl.key.pem ssl.sigalgs.list statistics.interval.ms
    sticky.partitioning.linger.ms topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
"""

OWN_SETTINGS: Final[Mapping[str, frozenset[str]]] = {"confluent": frozenset(_LIBRDKAFKA.split())}
"""The settings that Java's clients do not have and every query may set, by the client.

Left out, in addition to callbacks: what this library sets itself (``enabled_events``,
``log.queue``), second names of what it checks (``metadata.broker.list``), what hides topics
(``topic.blacklist``), and ``internal.termination.signal``. A client that is not listed here decides
itself.
"""


_JAAS: Final = "sasl.jaas.config"
_ALSO_SET_BY: Final = {
    "sasl.login.callback.handler.class": "tokenProvider' or "
    f"'{PREFIX}sasl.login.callback.handler.class"
}
"""The names of a setting that an option of this library sets, too."""

_RESTRICTED: Final = {setting.name: setting for setting in RESTRICTED}


@final
@dataclass(frozen=True, slots=True)
class OptionPolicy:
    """The operator's rules for options, which apply to every query.

    ``disallowed`` has pairs: a setting of Kafka without its prefix, and the place that lists it.
    ``allowed`` has the entries of the operator's lists. With ``trusts_author`` everything is
    allowed that is not disallowed.
    """

    disallowed: tuple[tuple[str, str], ...] = ()
    allowed: frozenset[tuple[AllowList, str]] = frozenset()
    trusts_author: bool = False

    def check(self, settings: Iterable[str]) -> None:
        """Check the names of a query's settings of Kafka, without their prefix.

        :raises DisallowedOptionError: naming all that the operator forbids.
        """
        self._check(settings, PREFIX)

    def check_options(self, names: Iterable[str]) -> None:
        """Check the names of options without the prefix ``kafka.``, such as a registry's settings.

        :raises DisallowedOptionError: naming all that the operator forbids.
        """
        self._check(names, "")

    def problems(self, settings: Mapping[str, str], client: str) -> list[str]:
        """Return a line for each setting of Kafka that needs the operator, and is not allowed."""
        if self.trusts_author:
            return []
        found: list[str] = []
        for name in sorted(settings):
            found += self._problems(name, settings[name], client)
        return found

    def module_problem(self, option: str, module: str) -> str | None:
        """Return why a query must not import a Python module, if it must not.

        A package that the operator lists has its modules allowed, too.
        """
        parts = module.split(".")
        packages = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if self.trusts_author or any(self._has(AllowList.MODULES, each) for each in packages):
            return None
        return _refusal(
            option, "imports a Python module", f"the module '{module}'", AllowList.MODULES
        )

    def file_problem(self, option: str, path: str, effect: str = "reads a file") -> str | None:
        """Return why a query must not use a file, if it must not; ``effect`` completes "it ...".

        Paths are compared as texts, as Java's ``ConfigurationUtils`` does.
        """
        if self.trusts_author or self._has(AllowList.FILES, path):
            return None
        return _refusal(option, effect, "the file", AllowList.FILES)

    def url_problem(self, option: str, url: str) -> str | None:
        """Return why a query must not send requests to a URL, if it must not.

        URLs are compared as texts, as Java's ``ConfigurationUtils`` does. No message has the URL,
        which may contain a password.
        """
        if self.trusts_author:
            return None
        if not _is_protected(url):
            return f"Option '{option}' must be a URL of https, or of http on this machine"
        if self._has(AllowList.URLS, url):
            return None
        return _refusal(option, "sends requests to a URL", "the URL", AllowList.URLS)

    def __or__(self, other: OptionPolicy) -> OptionPolicy:
        """Return a policy that forbids what either does, and allows the rest that either does."""
        return OptionPolicy(
            (*other.disallowed, *self.disallowed),
            self.allowed | other.allowed,
            self.trusts_author or other.trusts_author,
        )

    def _check(self, names: Iterable[str], prefix: str) -> None:
        places = dict(self.disallowed)
        found = {name: places.get(_canonical(name)) for name in sorted(names)}
        forbidden = {name: place for name, place in found.items() if place is not None}
        if forbidden:
            raise DisallowedOptionError(forbidden, prefix)

    def _problems(self, name: str, value: str, client: str) -> Iterator[str]:
        key = _canonical(name)
        if key in _RESTRICTED:
            # One line is enough for several values.
            option = _ALSO_SET_BY.get(key, f"{PREFIX}{key}")
            yield from islice(self._value_problems(key, option, value), 1)
        elif key == _JAAS:
            yield from self._jaas_problems(value)
        elif not (_is_listed(key, client) or self._has(AllowList.OPTIONS, key)):
            yield _not_listed(name, client)

    def _jaas_problems(self, text: str) -> Iterator[str]:
        try:
            _, options = jaas_entry(text)
        except ValueError:
            # No client can read the text, and each reports that itself.
            return
        for name in sorted(options.keys() & JAAS_OPTIONS.keys()):
            yield from self._value_problems(JAAS_OPTIONS[name], f"{PREFIX}{_JAAS}", options[name])

    def _value_problems(self, name: str, option: str, text: str) -> Iterator[str]:
        if self._has(AllowList.OPTIONS, name):
            return
        setting = _RESTRICTED[name]
        for value in setting.values(text):
            problem = self._value_problem(setting, option, value)
            if problem:
                yield problem

    def _value_problem(self, setting: Restricted, option: str, value: str) -> str | None:
        match setting.by:
            case AllowList.FILES:
                return self.file_problem(option, value, setting.effect)
            case AllowList.URLS:
                return self.url_problem(option, value)
            case AllowList.MODULES if ":" in value:
                return self.module_problem(option, value.partition(":")[0])
            case AllowList.MODULES:
                return None
            case _:
                return _refusal(option, setting.effect, f"'{setting.name}'", AllowList.OPTIONS)

    def _has(self, entries: AllowList, entry: str) -> bool:
        return (entries, entry) in self.allowed


DEFAULT_POLICY: Final = OptionPolicy()
"""The policy without any list: what needs the operator's permission is refused."""

UNRESTRICTED: Final = OptionPolicy(trusts_author=True)
"""For options that a program sets itself: its author may do all that they do anyway."""


def disallowing(names: str, place: str) -> OptionPolicy:
    """Return the policy that forbids the settings of a list, separated by commas.

    ``place`` is where the operator wrote it, for messages.

    :raises OptionPolicyError: if a name has the prefix ``kafka.``, and would match no setting.
    """
    listed = _names(names, place)
    return OptionPolicy(tuple((name, place) for name in listed))


def allowing(entries: AllowList, text: str, place: str) -> OptionPolicy:
    """Return the policy that allows the entries of a list, separated by commas.

    ``place`` is where the operator wrote it, for messages.

    :raises OptionPolicyError: if an entry is of another kind, and would allow nothing.
    """
    if entries is AllowList.OPTIONS:
        listed = _names(text, place)
    else:
        listed = [entry.strip() for entry in text.split(",") if entry.strip()]
        is_valid, rule = _RULES[entries]
        for entry in listed:
            if not is_valid(entry):
                raise OptionPolicyError(place, entry, rule)
    return OptionPolicy(allowed=frozenset((entries, entry) for entry in listed))


def _names(text: str, place: str) -> list[str]:
    listed = [name for name in map(_canonical, text.split(",")) if name]
    for name in listed:
        if name.startswith(PREFIX):
            raise OptionPolicyError(place, name)
    return listed


def _canonical(name: str) -> str:
    # kafka-python has underscores for dots, and takes Java's settings by such names as well.
    return name.strip().lower().replace("_", ".")


def _is_listed(key: str, client: str) -> bool:
    own = _OWN_SETTINGS.get(client)
    if own is None or key in own or key in BY_NAME or key == BOOTSTRAP_SERVERS:
        return True
    # The parameters of a configuration provider are refused with the provider.
    return key.startswith("config.providers.")


_OWN_SETTINGS: Final = {
    client: frozenset(map(_canonical, names)) for client, names in OWN_SETTINGS.items()
}


def _is_module(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _is_protected(url: str) -> bool:
    """Return whether what is sent to a URL cannot be read on its way."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    match parts.scheme.lower():
        case "https":
            return bool(host)
        case "http":
            return host == "localhost" or _is_loopback(host)
        case "file":
            # Java's clients read tokens from files by such URLs.
            return not host
        case _:
            return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_RULES: Final = {
    AllowList.MODULES: (_is_module, "Modules must be names as in 'import package.module'."),
    AllowList.FILES: (lambda path: path.startswith("/"), "Files must be absolute paths."),
    AllowList.URLS: (_is_protected, "URLs must be of https, or of http on this machine."),
}


def _refusal(option: str, effect: str, what: str, entries: AllowList) -> str:
    return (
        f"Option '{option}' is refused, because it {effect}. Ask the operator of Spark to list "
        f"{what} in {entries.variable}"
    )


def _not_listed(name: str, client: str) -> str:
    hint = did_you_mean(name, {known: f"{PREFIX}{known}" for known in BY_NAME})
    return (
        f"Option '{PREFIX}{name}' is not a setting that every query may set with the client "
        f"'{client}'.{hint} Ask the operator of Spark to list '{name}' in "
        f"{AllowList.OPTIONS.variable}"
    )


_EXECUTORS: Final = "for executors, too ('spark.executorEnv.*')"


def check_parsed(options: ClientOptions, policy: OptionPolicy) -> None:
    """Check options by the policy of this process, wherever they were parsed.

    :raises DisallowedOptionError: if the policy forbids one.
    :raises OptionsError: if one needs the operator's permission.
    """
    settings = options.restricted_settings
    policy.check(settings)
    if options.registry is not None:
        policy.check_options([f"{REGISTRY_PREFIX}url", *_registry_names(options.registry)])
    problems = policy.problems(settings, options.client)
    if problems:
        raise OptionsError([f"{problem}, {_EXECUTORS}" for problem in problems])


def _registry_names(registry: RegistryOptions) -> list[str]:
    return [f"{REGISTRY_PREFIX}{name}" for name, _ in registry.settings]
