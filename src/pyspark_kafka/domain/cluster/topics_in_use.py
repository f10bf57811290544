"""The topics whose metadata are requested together."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable


@final
class TopicsInUse:
    """The topics that a client reads or writes.

    A reader uses one topic after the other, or those that it expects to use together; a writer uses
    all topics that it has used before.
    """

    def __init__(self, *, keeps_all: bool) -> None:
        """Begin without a topic."""
        self._keeps_all = keeps_all
        self._expected: frozenset[str] = frozenset()
        self.names: frozenset[str] = frozenset()
        """The names of the topics."""

    def add(self, topics: Iterable[str]) -> None:
        """Use these topics together with the others."""
        self.names = self.names.union(topics)

    def expect(self, topics: Iterable[str]) -> None:
        """Use these topics together, once one of them is used."""
        self._expected = frozenset(topics)

    def use(self, topic: str) -> None:
        """Use a topic."""
        if topic in self.names:
            return
        if self._keeps_all:
            self.add([topic])
        else:
            self.names = self._expected if topic in self._expected else frozenset({topic})
