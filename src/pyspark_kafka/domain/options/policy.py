"""What the operator of a Spark installation forbids queries to set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..errors import DisallowedOptionError, OptionPolicyError
from ..kafka_settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable


@final
@dataclass(frozen=True, slots=True)
class OptionPolicy:
    """The operator's rules for options, which apply to every query.

    ``disallowed`` has pairs: a setting of Kafka without its prefix, and the place that lists it.
    """

    disallowed: tuple[tuple[str, str], ...] = ()

    def check(self, settings: Iterable[str]) -> None:
        """Check the names of a query's settings of Kafka, without their prefix.

        :raises DisallowedOptionError: naming all that the operator forbids.
        """
        places = dict(self.disallowed)
        found = {name: places.get(_canonical(name)) for name in sorted(settings)}
        forbidden = {name: place for name, place in found.items() if place is not None}
        if forbidden:
            raise DisallowedOptionError(forbidden)

    def __or__(self, other: OptionPolicy) -> OptionPolicy:
        """Return a policy that forbids what either does."""
        return OptionPolicy((*other.disallowed, *self.disallowed))


UNRESTRICTED: Final = OptionPolicy()


def disallowing(names: str, place: str) -> OptionPolicy:
    """Return the policy that forbids the settings of a list, separated by commas.

    ``place`` is where the operator wrote it, for messages.

    :raises OptionPolicyError: if a name has the prefix ``kafka.``, and would match no setting.
    """
    listed = [name for name in map(_canonical, names.split(",")) if name]
    for name in listed:
        if name.startswith(PREFIX):
            raise OptionPolicyError(place, name)
    return OptionPolicy(tuple((name, place) for name in listed))


def _canonical(name: str) -> str:
    # kafka-python has underscores for dots, and takes Java's settings by such names as well.
    return name.strip().lower().replace("_", ".")
