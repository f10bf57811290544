"""One pass over the options that were given."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..kafka_settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .option import Option, QueryKind

T = TypeVar("T")


def lower(raw: Mapping[str, str]) -> dict[str, str]:
    """Give the options by their names as they are looked up."""
    return {name.lower(): value for name, value in raw.items()}


def ignored(
    raw: Mapping[str, str],
    query: QueryKind,
    ours: Sequence[Option[Any]],
    theirs: Sequence[Option[Any]],
) -> list[str]:
    """Name what was given and is not looked at: another kind of query's, or the other side's.

    Whoever reads and writes with the same options has those of both sides on either.
    """
    given = lower(raw)
    keys = {option.key for option in ours}
    unused = [option for option in ours if query not in option.queries]
    unused += [option for option in theirs if option.key not in keys]
    return [option.name for option in unused if option.key in given]


@dataclass(slots=True)
class Reading:
    """Options, by their names in lower case, and what was found to be wrong with them."""

    given: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    def read(self, option: Option[T]) -> T:
        """Give an option's value, or its default where it is left out or cannot be read."""
        text = self.given.get(option.key)
        if text is None:
            return option.default
        try:
            return option.parse(text)
        except ValueError as error:
            self.problems.append(str(error))
            return option.default

    def refuse_unknown(self, ours: Sequence[Option[Any]], passed: Iterable[str]) -> None:
        """Complain of what is neither ours, nor among the keys passed over, nor Kafka's own."""
        known = {option.key: option.name for option in ours}
        for name in sorted(self.given.keys() - known.keys() - set(passed)):
            if not name.startswith(PREFIX):
                close = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean '{known[close[0]]}'?" if close else ""
                self.problems.append(f"Option '{name}' is not known.{hint}")
