"""Reading options from their texts, and collecting the problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..kafka_settings import PREFIX
from ..option_values import did_you_mean
from ..values.registry import PREFIX as REGISTRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .option import Option, QueryKind

T = TypeVar("T")


def lower(raw: Mapping[str, str]) -> dict[str, str]:
    """Return the options by their names in lower case."""
    return {name.lower(): value for name, value in raw.items()}


def ignored(
    raw: Mapping[str, str],
    query: QueryKind,
    own: Sequence[Option[Any]],
    others: Sequence[Option[Any]],
) -> list[str]:
    """Return the names of given options that only another kind of query or the other side has."""
    given = lower(raw)
    keys = {option.key for option in own}
    unused = [option for option in own if query not in option.queries]
    unused += [option for option in others if option.key not in keys]
    return [option.name for option in unused if option.key in given]


@dataclass(slots=True)
class Reading:
    """The given options by their names in lower case, what was read of them, and the problems."""

    given: Mapping[str, str]
    problems: list[str] = field(default_factory=list)
    _values: dict[str, Any] = field(default_factory=dict)

    def read(self, option: Option[T]) -> T:
        """Return an option's value, or its default if it is not given or cannot be parsed."""
        if option.key not in self._values:
            self._values[option.key] = self._parse(option)
        value: T = self._values[option.key]
        return value

    def _parse(self, option: Option[T]) -> T:
        text = self.given.get(option.key)
        if text is None:
            return option.default
        try:
            return option.parse(text)
        except ValueError as error:
            self.add_problem(option, error)
            return option.default

    def add_problem(self, option: Option[Any], error: ValueError) -> None:
        """Add what is wrong with an option, with its name: Java's errors have none."""
        text = str(error)
        named = option.key in text.lower()
        self.problems.append(text if named else f"Option '{option.name}': {text}")

    def read_fields(self, table: Iterable[Option[Any]]) -> dict[str, Any]:
        """Return the values of all options that fill a field, by the fields' names."""
        return {option.field: self.read(option) for option in table if option.field}

    def refuse_unknown(self, own: Sequence[Option[Any]], accepted: Iterable[str]) -> None:
        """Add a problem for each name that is not in ``own`` or ``accepted``.

        The settings of Kafka and of schema registries have checks of their own.
        """
        known = {option.key: option.name for option in own}
        for name in sorted(self.given.keys() - known.keys() - set(accepted)):
            if not name.startswith((PREFIX, REGISTRY_PREFIX)):
                self.problems.append(f"Option '{name}' is not known.{did_you_mean(name, known)}")
