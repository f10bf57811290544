"""Reading all settings of a client as Java's does, and collecting the problems."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, final

from ..option_values import did_you_mean
from .login import read_login
from .options import server_problems
from .setting import PREFIX, Ignored
from .table import BOOTSTRAP_SERVERS, BY_NAME
from .tls import read_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .values import Login, Tls

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class JavaSettings:
    """Settings as Java reads them; ``others`` are those that a client translates one by one."""

    others: Mapping[str, str] = field(repr=False)
    protocol: str
    login: Login | None
    tls: Tls | None
    problems: tuple[str, ...]

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


def read_java_settings(settings: Mapping[str, str]) -> JavaSettings:
    """Read ``kafka.*`` settings, without their prefix, and collect the problems."""
    problems = server_problems(settings.get(BOOTSTRAP_SERVERS, ""))
    others: dict[str, str] = {}
    for name, value in sorted(settings.items()):
        try:
            others |= _translated(name, value)
        except ValueError as error:
            problems.append(str(error))
    _order_backoffs(others)
    protocol = others.pop("security.protocol", "PLAINTEXT")
    login = _read(read_login, settings, problems) if protocol.startswith("SASL") else None
    tls = _read(read_tls, settings, problems) if protocol.endswith("SSL") else None
    return JavaSettings(others, protocol, login, tls, tuple(problems))


def _read(
    reader: Callable[[Mapping[str, str]], T], settings: Mapping[str, str], problems: list[str]
) -> T | None:
    try:
        return reader(settings)
    except ValueError as error:
        problems.append(str(error))
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
    """Do as Java: the backoff is at most its maximum, and alone it is the maximum as well."""
    name, max_name = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
    if name in settings or max_name in settings:
        maximum = int(settings[max_name if max_name in settings else name])
        settings[max_name] = str(maximum)
        settings[name] = str(min(int(settings.get(name, _DEFAULT_BACKOFF_MS)), maximum))


_DEFAULT_BACKOFF_MS: Final = "50"


def not_known(name: str, client: str) -> str:
    """Return the problem of a setting that neither Java's client nor this one has."""
    javas = {known: f"{PREFIX}{known}" for known in BY_NAME}
    hint = "" if name in javas else did_you_mean(name, javas)
    return f"Option '{PREFIX}{name}' is not known to the client '{client}'.{hint}"
