"""Logins that were refused, so that a process does not try them again for a while."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ..domain.security.errors import REFUSED_LOGIN_S, AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..domain.options import SinkOptions, SourceOptions
    from ..ports.clock import Clock


_OF_LOGINS: Final = ("bootstrap.servers", "security.", "sasl.", "ssl.")

_Login: TypeAlias = frozenset[tuple[str, str]]


@final
@dataclass(frozen=True, slots=True)
class _Refusal:
    error: AuthenticationError
    until_ms: float


@final
class RefusedLogins:
    """Remembers the settings of refused logins for a time: Spark starts failed tasks again."""

    def __init__(self, clock: Clock, seconds: float = REFUSED_LOGIN_S) -> None:
        self._clock = clock
        self._seconds = seconds
        self._refusals: dict[_Login, _Refusal] = {}

    @contextmanager
    def remember(self, options: SourceOptions | SinkOptions) -> Iterator[None]:
        """Remember the login of these options if it is refused in the block.

        :raises AuthenticationError: if it was refused a short time ago.
        """
        login = _login_of(options)
        refusal = self._refusals.get(login)
        if refusal is not None and self._clock.now_ms() < refusal.until_ms:
            # Several threads may raise it, and each adds its own traceback.
            raise copy.copy(refusal.error)
        try:
            yield
        except AuthenticationError as error:
            now = self._clock.now_ms()
            until_ms = now + self._seconds * 1_000
            # Passwords that are not tried any more are not kept. Other threads read the old one.
            kept = {each: one for each, one in self._refusals.items() if one.until_ms > now}
            self._refusals = {**kept, login: _Refusal(copy.copy(error), until_ms)}
            raise


def _login_of(options: SourceOptions | SinkOptions) -> _Login:
    settings = ((name, value) for name, value in options.kafka if name.startswith(_OF_LOGINS))
    return frozenset((("client", options.client), *settings))
