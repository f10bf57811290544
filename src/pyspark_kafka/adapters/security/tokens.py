"""Tokens of logins: how long each is of use, and functions that return them."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from typing import Final, TypeAlias, final

from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...domain.security.oauth import (
    OAUTHBEARER,
    PROVIDER_NAMES,
    TokenFunction,
    is_extension,
)
from ...ports.clock import Deadline, epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from ..named_functions import checked_function, entry_points_named, named_function
from ..process_local import ProcessLocal

log = logging.getLogger("pyspark_kafka.tokens")

USED_PART: Final = 0.8
"""How much of a token's life it is used, as by Java's ``sasl.login.refresh.window.factor``."""

PAUSE_MS: Final = 10_000
"""How long no token is requested after a failure, as by ``sasl.login.retry.backoff.max.ms``."""

REFUSALS: Final = frozenset(range(400, 500)) - {408, 425, 429}
"""The statuses of HTTP by which an issuer refuses a token. Any other failure may pass: a time-out,
a server that is busy or fails, and a proxy's answer."""

_PASSED: Final = Deadline(-math.inf)

_NoTokenError: TypeAlias = AuthenticationError | TokenUnavailableError


@final
@dataclass(slots=True)
class _Held:
    """The state of one process: the last token or its error, and how long that is kept."""

    lock: Lock = field(default_factory=Lock)
    outcome: Token | _NoTokenError | None = None
    until_ms: int = 0
    deadline: Deadline = _PASSED
    """The same on a monotonic clock: an hour that is taken back must not keep a token."""


@final
class RenewedTokens(TokenProvider):
    """Keeps another provider's token for most of its life; one thread at a time asks it.

    If a renewal fails, the token is used to its end. A failure is kept for some seconds, so that
    many connections do not lock an account.
    """

    def __init__(self, provider: TokenProvider, clock: Callable[[], int] = epoch_ms) -> None:
        """Take the provider, and a clock of milliseconds since the epoch."""
        self._provider = provider
        self._clock = clock
        # A child process would inherit the lock as it is during a request.
        self._local = ProcessLocal(_Held())

    def token(self) -> Token:
        held = self._local.get() or self._local.set(_Held())
        with held.lock:
            outcome = held.outcome
            is_over = held.deadline.has_passed or self._clock() >= held.until_ms
            if outcome is None or is_over:
                outcome = held.outcome = self._renewed(held)
        if isinstance(outcome, Token):
            return outcome
        raise outcome.with_traceback(None)

    def forget(self, token: Token | None = None) -> None:
        """Request another token next time: a broker refused this one, or else any that is kept."""
        held = self._local.get()
        if held is not None and isinstance(held.outcome, Token) and token in (None, held.outcome):
            held.outcome = None

    def _renewed(self, held: _Held) -> Token | _NoTokenError:
        try:
            token = self._provider.token()
        except (AuthenticationError, TokenUnavailableError) as error:
            return self._after(error, held)
        now = self._clock()
        self._keep(held, now, now + int(USED_PART * (token.expires_ms - now)))
        return token

    def _after(self, error: _NoTokenError, held: _Held) -> Token | _NoTokenError:
        now, token = self._clock(), held.outcome
        self._keep(held, now, now + PAUSE_MS)
        if not isinstance(token, Token) or token.expires_ms <= now:
            return error
        log.warning("A token is not renewed yet: %s", error)
        self._keep(held, now, min(held.until_ms, token.expires_ms))
        return token

    def _keep(self, held: _Held, now_ms: int, until_ms: int) -> None:
        held.until_ms = until_ms
        held.deadline = Deadline.after((until_ms - now_ms) / 1_000)


GROUP: Final = "pyspark_kafka.token_providers"
_OPTION: Final = "Option 'tokenProvider'"

BEARER: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750, section 2.1."""

_MAX_MS: Final = 2**63
"""librdkafka's times are integers of 64 bits."""


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
            # The function may raise anything, and so may the functions that it calls.
            raise TokenUnavailableError(f"'{self._name}'", one_line(error)) from error
        if not isinstance(found, Token):
            raise self._error(
                f"it returned {type(found).__name__}, "
                "not pyspark_kafka.ports.security.token_provider.Token"
            )
        problem = _problem(found)
        if problem:
            raise self._error(f"it returned a token {problem}")
        if found.expires_ms <= epoch_ms():
            reason = "its token has expired already; check the clock, and that 'expires_ms' is in "
            raise TokenUnavailableError(f"'{self._name}'", f"{reason}milliseconds")
        return replace(found, expires_ms=int(found.expires_ms))

    def _error(self, reason: str) -> AuthenticationError:
        return AuthenticationError(f"'{self._name}'", OAUTHBEARER, "", reason)


def _problem(token: Token) -> str:
    """Return why no client can send a token, empty if they can."""
    # A function of a user may have put anything there.
    fields: tuple[object, ...] = (token.value, token.expires_ms, token.principal)
    value, expires_ms, principal = fields
    if not isinstance(value, str) or not BEARER.fullmatch(value):
        return "whose value has characters that bearer tokens do not have"
    if not isinstance(expires_ms, int | float) or not 0 <= expires_ms < _MAX_MS:
        return "whose 'expires_ms' is no time in milliseconds"
    if not isinstance(principal, str) or not principal.isprintable():
        return "whose principal is not a printable text"
    if not all(is_extension(str(name), str(value)) for name, value in token.extensions):
        return "with an extension that brokers do not accept"
    return ""


def _function(name: str) -> Callable[[], object]:
    try:
        if ":" in name:
            return named_function(name)
        return checked_function(name, _entry_point(name).load)
    except ValueError as error:
        raise ValueError(f"{_OPTION}: {error}") from error


def _entry_point(name: str) -> EntryPoint:
    found = entry_points_named(GROUP, name)
    if len(found) != 1:
        known = ", ".join(sorted({*PROVIDER_NAMES, *entry_points(group=GROUP).names}))
        # The name may be a token that was set here by mistake.
        count = f"{len(found)} providers have" if found else "no provider has"
        raise ValueError(f"{count} the given name. Known names are {known}.")
    return found[0]


_MAX_TEXT: Final = 300


def readable(text: str, max_text: int = _MAX_TEXT) -> str:
    """Return another server's message, in one line of limited length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= max_text else f"{line[:max_text]}…"


def one_line(error: Exception) -> str:
    """Return an error of a library, with its class."""
    return readable(f"{type(error).__name__}: {error}")
