"""Reading all settings, and gathering what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from ..kafka_settings import PREFIX
from ..option_values import INT32_MAX, boolean, integer
from .choices import choice
from .login import module_hint, read_login
from .tables import BOOLEANS, CHOICES, HARMLESS, LEAST, REFUSED, SASL, TLS, WITHOUT_EFFECT
from .tls import read_tls
from .values import JavaSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


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


def _is_translated(name: str, value: str) -> bool:
    if name in REFUSED and value not in ("", HARMLESS.get(name, "")):
        raise ValueError(f"Option '{PREFIX}{name}' is not supported: {_instead(name, value)}")
    return not (
        name in WITHOUT_EFFECT
        or name in REFUSED
        or name in SASL
        or name in TLS
        # What a provider of configuration is given, which is refused itself.
        or name.startswith("config.providers.")
    )


def _instead(name: str, value: str) -> str:
    if name.endswith("callback.handler.class"):
        return module_hint(value)
    return REFUSED[name]


def _checked(name: str, value: str) -> str:
    if name in LEAST:
        least = LEAST[name]
        try:
            number = integer(value)
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(
                f"Option '{PREFIX}{name}' must be a whole number from {least} on, got '{value}'"
            )
        return str(min(number, INT32_MAX))
    if name in BOOLEANS:
        try:
            return str(boolean(value)).lower()
        except ValueError:
            raise ValueError(
                f"Option '{PREFIX}{name}' must be true or false, got '{value}'"
            ) from None
    if name in CHOICES:
        return choice(name, value, CHOICES[name])
    return value


def _order_backoffs(settings: dict[str, str]) -> None:
    """Do as Java does: a first wait that is given alone does not grow, and none passes the most."""
    first, most = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
    if first in settings or most in settings:
        longest = int(settings.get(most, settings.get(first, "0")))
        settings[most] = str(longest)
        settings[first] = str(min(int(settings.get(first, _FIRST_BACKOFF_MS)), longest))


_FIRST_BACKOFF_MS: Final = "50"


def not_known(name: str, client: str) -> str:
    """Say that no client knows a setting."""
    return f"Option '{PREFIX}{name}' is not known to the client '{client}'"


def whole_number(value: str, least: int, most: int) -> int:
    """Bring a number to the nearest one that a client takes."""
    return max(least, min(most, int(value)))
