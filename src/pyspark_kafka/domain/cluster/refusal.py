"""Refused logins and TLS handshakes, which must not be repeated at once."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, final

from ..security.errors import REFUSED_LOGIN_S, AuthenticationError

if TYPE_CHECKING:
    from ..errors import PysparkKafkaError

_TLS_REMEMBERED_S: Final = 1.0
"""Long enough for a call that retries at once to end."""


@final
class Refusals:
    """The last refusals of connections, by login. Times are of one clock, in seconds.

    An adapter has one login, whose key is empty. Keys of several logins are digests of them, so
    that no password is kept.
    """

    def __init__(self) -> None:
        self._refusals: dict[bytes, tuple[PysparkKafkaError, float]] = {}

    def remember(self, error: PysparkKafkaError, now: float, login: bytes = b"") -> None:
        """Refuse further connections with this error for some time."""
        is_login = isinstance(error, AuthenticationError)
        until = now + (REFUSED_LOGIN_S if is_login else _TLS_REMEMBERED_S)
        # Other threads read the old one.
        kept = {each: one for each, one in self._refusals.items() if one[1] > now}
        self._refusals = {**kept, login: (copy.copy(error), until)}

    def at(self, now: float, login: bytes = b"") -> PysparkKafkaError | None:
        """Return why no connection may be made now; ``None`` if one may."""
        error, until = self._refusals.get(login, (None, now))
        # Several threads may raise it, and each adds its own traceback.
        return copy.copy(error) if now < until else None
