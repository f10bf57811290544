"""What the operator of a Spark installation forbids, and what queries may set with permission."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from ..errors import DisallowedOptionError, OptionPolicyError
from ..kafka_settings import BOOTSTRAP_SERVERS, PREFIX
from ..kafka_settings.login import jaas_entry
from ..kafka_settings.restricted import (
    JAAS_OPTIONS,
    OWN_SETTINGS,
    RESTRICTED,
    AllowList,
    Restricted,
)
from ..kafka_settings.table import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
            # No client can read it, and says so.
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
    return (
        f"Option '{PREFIX}{name}' is none of the settings that every query may set with the client "
        f"'{client}'. Ask the operator of Spark to list '{name}' in {AllowList.OPTIONS.variable}"
    )
