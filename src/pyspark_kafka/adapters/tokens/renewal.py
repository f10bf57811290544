"""Keeping tokens until most of their life has passed."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...ports.clock import epoch_ms
from ...ports.deadline import Deadline
from ...ports.security.token_provider import Token, TokenProvider
from ..process_local import ProcessLocal

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("pyspark_kafka.tokens")

USED_PART: Final = 0.8
"""How much of a token's life it is used, as by Java's ``sasl.login.refresh.window.factor``."""

PAUSE_MS: Final = 10_000
"""How long nothing is requested after a failure, as by ``sasl.login.retry.backoff.max.ms``."""


_PASSED: Final = Deadline(-math.inf)

_NoTokenError: TypeAlias = AuthenticationError | TokenUnavailableError


@final
@dataclass(slots=True)
class _Held:
    """What one process has: the last token, or why there is none, and until when it stays."""

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
        """Take the provider, and what returns milliseconds since the epoch."""
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
