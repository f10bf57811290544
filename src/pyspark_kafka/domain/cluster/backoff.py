"""Pauses between attempts to connect to a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Callable

Address: TypeAlias = tuple[str, int]
"""The host and the port of a listener."""

_JITTER: Final = 0.2
_MAX_DOUBLINGS: Final = 30


@final
@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Java's ``reconnect.backoff.*`` and ``socket.connection.setup.timeout.*``, in seconds."""

    first_s: float
    max_s: float
    setup_s: float
    max_setup_s: float


@final
@dataclass(frozen=True, slots=True)
class _Failures:
    """The failed attempts in a row."""

    count: int
    until: float
    reason: str


@final
class ReconnectBackoff:
    """When each address may be connected to again, and how long that may take.

    Both double with each failed attempt in a row, up to a limit. Times are of one monotonic clock.
    """

    def __init__(self, settings: BackoffSettings, random: Callable[[], float]) -> None:
        """Take a source of numbers from 0 to 1: a pause is up to 20 % shorter or longer."""
        self._settings = settings
        self._random = random
        self._failures: dict[Address, _Failures] = {}

    def failed(self, address: Address, now: float, reason: str) -> None:
        """Note a failed attempt."""
        earlier = self._failures.get(address)
        count = 0 if earlier is None else earlier.count
        pause_s = _doubled(self._settings.first_s, count, self._settings.max_s)
        pause_s *= 1 + _JITTER * (2 * self._random() - 1)
        self._failures[address] = _Failures(count + 1, now + pause_s, reason)

    def succeeded(self, address: Address) -> None:
        """Forget the failed attempts."""
        self._failures.pop(address, None)

    def seconds_left(self, address: Address, now: float) -> float:
        """Return how long to wait before the next attempt."""
        found = self._failures.get(address)
        return 0.0 if found is None else max(0.0, found.until - now)

    def failures(self, address: Address) -> int:
        """Return the number of failed attempts in a row."""
        found = self._failures.get(address)
        return 0 if found is None else found.count

    def reason(self, address: Address) -> str:
        """Return why the last attempt failed; ``""`` if it did not."""
        found = self._failures.get(address)
        return "" if found is None else found.reason

    def setup_s(self, address: Address) -> float:
        """Return how long the next attempt may take."""
        settings = self._settings
        limit_s = max(settings.setup_s, settings.max_setup_s)
        return _doubled(settings.setup_s, self.failures(address), limit_s)


def _doubled(first_s: float, times: int, max_s: float) -> float:
    return min(first_s * 2.0 ** min(times, _MAX_DOUBLINGS), max_s)
