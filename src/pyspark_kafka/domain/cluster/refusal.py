"""Refused logins and TLS handshakes, which must not be repeated at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

from ..security.errors import REFUSED_LOGIN_S, AuthenticationError

if TYPE_CHECKING:
    from ..errors import PysparkKafkaError

_TLS_REMEMBERED_S: Final = 1.0
"""Long enough for a call to end that tries again at once."""


@final
class Refusal:
    """The last refusal of all connections of an adapter. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self._error: PysparkKafkaError | None = None
        self._until = -math.inf

    def remember(self, error: PysparkKafkaError, now: float) -> None:
        """Refuse further connections with this error for some time."""
        is_login = isinstance(error, AuthenticationError)
        self._error = error
        self._until = now + (REFUSED_LOGIN_S if is_login else _TLS_REMEMBERED_S)

    def at(self, now: float) -> PysparkKafkaError | None:
        """Return why no connection may be made now; ``None`` if one may."""
        return self._error if now < self._until else None
