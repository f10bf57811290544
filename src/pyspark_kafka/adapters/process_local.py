"""Values that belong to the process that created them.

Clients do not survive a fork: librdkafka's threads stay in the parent
(confluentinc/librdkafka#2374), event loops and connections are shared with it. Spark's worker
daemon forks.
"""

from __future__ import annotations

import os
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")

_inherited: Final[list[object]] = []
"""The parent's values: a client without references would close itself, in the child as well."""


@final
class ProcessLocal(Generic[T]):
    """Holds a value that exists only in the process that set it."""

    __slots__ = ("_process", "_value")

    def __init__(self, value: T | None = None) -> None:
        self._value = value
        self._process = os.getpid()

    def get(self) -> T | None:
        """Return this process's value; ``None`` if it has none."""
        if self._process != os.getpid():
            _inherited.append(self._value)
            self._value, self._process = None, os.getpid()
        return self._value

    def set(self, value: T) -> T:
        """Set and return this process's value."""
        self.pop()
        self._value = value
        return value

    def pop(self) -> T | None:
        """Remove and return this process's value; ``None`` if it has none."""
        value, self._value = self.get(), None
        return value
