"""When the responses to the requests of one connection should be complete."""

from __future__ import annotations

import math
from collections import deque
from typing import Final, final

_GRACE_PART: Final = 0.1
"""The least part of a time-out that is left for a response whose first part has come."""

_AWAY_S: Final = 1.5
"""A caller that waits looks more often."""


@final
class ResponseTimes:
    """The time-outs of requests whose responses come in order.

    The caller may have other things to do between its looks at the connection: what came meanwhile
    is not late. Times are of one monotonic clock.
    """

    def __init__(self, timeout_s: float) -> None:
        """Take how long the whole response to a request may take to come."""
        self._timeout_s = timeout_s
        self._sent: deque[float] = deque()
        self._looked_at = -math.inf
        self._grace_until = -math.inf
        self.has_begun = False
        """Whether a part of a response has come."""

    @property
    def is_awaited(self) -> bool:
        """Whether a request has no complete response yet."""
        return bool(self._sent)

    def sent(self, now: float) -> None:
        """Note a request."""
        self._sent.append(now)

    def look(self, now: float) -> None:
        """Note a look at the connection: what has begun to come before may take some more time."""
        if self.has_begun and now - self._looked_at > _AWAY_S:
            self._grant(now)
        self._looked_at = now

    def begin(self, now: float) -> None:
        """Note that a part of a response has come."""
        if not self.has_begun:
            self._grant(now)
        self.has_begun = True

    def complete(self) -> None:
        """Note that the response to the oldest request is complete."""
        self.has_begun = False
        if self._sent:
            self._sent.popleft()

    def seconds_left(self, now: float) -> float:
        """Return how long the response to the oldest request may still take, at least 0."""
        if not self._sent:
            return math.inf
        return max(0.0, max(self._sent[0] + self._timeout_s, self._grace_until) - now)

    def _grant(self, now: float) -> None:
        self._grace_until = now + _GRACE_PART * self._timeout_s
