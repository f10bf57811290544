"""Tokens of Python functions, and of entry points of other distributions."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, final

from ...domain.kafka_settings.oauth import OAUTHBEARER, PROVIDER_NAMES
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...ports.security.token_provider import Token, TokenProvider
from ..named_functions import checked_function, named_function
from .error_texts import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.kafka_settings.values import TokenFunction

GROUP: Final = "pyspark_kafka.token_providers"
_OPTION: Final = "Option 'tokenProvider'"


@final
class FunctionTokenProvider(TokenProvider):
    """Calls a function without arguments for each token; it returns a ``Token``."""

    def __init__(self, source: TokenFunction) -> None:
        """Import the function.

        :raises ValueError: if it cannot be imported, or is no function.
        """
        self._name = source.name
        self._function = _function(source.name)

    def token(self) -> Token:
        try:
            found = self._function()
        except (AuthenticationError, TokenUnavailableError):
            raise
        except Exception as error:
            # The function may raise anything, and so may what it calls.
            raise self._error(one_line(error)) from error
        if not isinstance(found, Token):
            raise self._error(
                f"it returned {type(found).__name__}, "
                "not pyspark_kafka.ports.security.token_provider.Token"
            )
        return found

    def _error(self, reason: str) -> AuthenticationError:
        return AuthenticationError(f"'{self._name}'", OAUTHBEARER, "", reason)


def _function(name: str) -> Callable[[], object]:
    try:
        if ":" in name:
            return named_function(name)
        return checked_function(name, _entry_point(name).load)
    except ValueError as error:
        raise ValueError(f"{_OPTION}: {error}") from error


def _entry_point(name: str) -> EntryPoint:
    # If a distribution is on the path twice, importlib.metadata returns equal entry points.
    found = {each.value: each for each in entry_points(group=GROUP, name=name)}
    if len(found) != 1:
        known = ", ".join(sorted({*PROVIDER_NAMES, *entry_points(group=GROUP).names}))
        raise ValueError(f"{len(found)} providers are named '{name}'. Known names are {known}.")
    return next(iter(found.values()))
