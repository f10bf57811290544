"""The sources that tests compare, and functions that compare what they return."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pytest

from ..spark import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")


class Source(NamedTuple):
    """A source, the client with which ours reads, and options that only this one has."""

    format: str
    client: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def given(self, **options: str) -> Source:
        return self._replace(options=(*self.options, *options.items()))

    def __str__(self) -> str:
        own = (f"-{name}-{value}" for name, value in self.options)
        return f"{self.client or self.format}{''.join(own)}"


def with_client(client: str) -> Source:
    return Source(queries.OURS, client)


JVM = Source(queries.PEER)
OURS = tuple(with_client(client) for client in ("confluent", "kafka-python"))
ONE_CLIENT = (*OURS[1:], JVM)
"""For what is decided before any client is asked, or from offsets that contract suites check."""

ONE_TASK = {"maxPartitions": "1"}
"""One task reads all partitions, which changes nothing of what a query reads and logs."""

ANY_TASKS = (OURS[1], OURS[1].given(**ONE_TASK), JVM)
"""For rate limits, with a task for each partition and with one for all."""

BOTH_CLIENTS = (OURS[0].given(**ONE_TASK), OURS[1], JVM)
"""One of them has a task for each partition, and the other one for all."""


def for_each(sources: Iterable[Source], action: Callable[[Source], T]) -> dict[Source, T]:
    """Return what an action answers for each source, after it was tried for all of them.

    :raises BaseExceptionGroup: with the errors of all, if it failed for any.
    """
    answers: dict[Source, T] = {}
    errors: list[BaseException] = []
    for source in sources:
        try:
            answers[source] = action(source)
        # The failure of an assertion, or of pytest.raises, does not end the others' turn either.
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
            error.add_note(f"with {source}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup("not all sources did it", errors)
    return answers


def agreed(answers: Mapping[Source, T]) -> T:
    assert len(answers) > 1
    *_, answer = answers.values()
    assert answers == dict.fromkeys(answers, answer)
    return answer


def assert_same_words(errors: Mapping[Source, Exception], theirs: str) -> None:
    """Assert that a message of the JVM connector is in all the other errors.

    Scala's sets and maps have no order; ours are sorted.
    """
    for source, error in errors.items():
        assert source.format == JVM.format or sorted_sets(theirs) in sorted_sets(str(error))


def assert_words(errors: Mapping[Source, Exception], words: str) -> None:
    texts = {str(source): str(error) for source, error in errors.items()}
    assert all(words in text for text in texts.values()), texts


def sorted_sets(text: str) -> str:
    """Return a text with the entries of each set in order."""

    def in_order(found: re.Match[str]) -> str:
        kind, entries = found.groups()
        return f"{kind}({', '.join(sorted(entries.split(', ')))})"

    return re.sub(r"(?:Hash)?(Set|Map)\(([^()]*)\)", in_order, text)
