"""Stories of rounds in which executors are lost while they write a micro-batch."""

import random
from dataclasses import dataclass
from typing import Final, Self

from .driver import QueryPlan
from .stage_faults import Script, Step

KINDS: Final = (
    "no executor",
    "one executor",
    "two executors",
    "twin of a finished task",
    "twin between rows",
    "twin that ends first",
    "twin killed",
    "killed beside its twin",
)
"""Which executors are lost when; twins write a partition in two attempts of the stage."""

_QUERIES: Final = (
    *(QueryPlan("kafka-python", "exactly-once"),) * 5,
    QueryPlan("kafka-python", "at-least-once"),
    QueryPlan("confluent", "at-least-once"),
)
"""Each as often as it is to be chosen."""

_AT_COMMIT: Final = ("", "", "broker killed", "broker killed", "failure", "driver killed")

_TOO_LONG_S: Final = 12
SHORT_TIMEOUT_MS: Final = 6_000


@dataclass(frozen=True, slots=True)
class Story:
    """The plan of a round; ``step`` is of partition 1, ``second_step`` of partition 2."""

    kind: str
    step: str = Step.BETWEEN.name
    second_step: str = Step.BETWEEN.name
    client: str = "kafka-python"
    guarantee: str = "exactly-once"
    batch_id: int = 0
    speculates: bool = False
    max_failures: int = 4
    at_commit: str = ""
    broker: int = 0
    late_partition: int | None = None
    """One whose task takes longer than the transactions of others may."""
    has_metadata_path: bool = False

    @classmethod
    def of(cls, seed: int, number: int) -> Self:
        chance = random.Random(f"{seed}/{number}")  # noqa: S311
        kinds = random.Random(seed).sample(KINDS, len(KINDS))  # noqa: S311
        kind = kinds[number % len(kinds)]
        query = chance.choice(_QUERIES)
        is_late = query.is_exactly_once and chance.random() < (0.6 if "no " in kind else 0.15)
        # A short timeout would end the transactions that a driver cannot commit in time.
        at_commit = chance.choice(_AT_COMMIT) if query.is_exactly_once and not is_late else ""
        return cls(
            kind,
            chance.choice(list(Step)).name,
            chance.choice(list(Step)).name,
            query.client,
            query.guarantee,
            batch_id=chance.randrange(2),
            speculates=chance.random() < 0.3,
            max_failures=chance.choice((1, 4, 4, 4)),
            at_commit=at_commit,
            broker=chance.randrange(3),
            late_partition=chance.choice((0, 3)) if is_late else None,
            has_metadata_path=chance.random() < 0.4,
        )

    @property
    def plan(self) -> QueryPlan:
        return QueryPlan(self.client, self.guarantee)

    @property
    def has_twins(self) -> bool:
        """Whether a partition is written by several attempts of the stage, whatever else is."""
        return "twin" in self.kind and self.max_failures > 1 and not self.speculates

    def script(self) -> Script:
        """Return what tasks do at their steps.

        The second task of partition 1 keeps the stage running until twins have written.
        """
        lost = {f"1-0 {self.step}": ["await 2-0 FIRST", "kill"]}
        second = self.second_step
        scripts: dict[str, Script] = {
            "no executor": {},
            "one executor": lost,
            "two executors": {**lost, f"2-0 {second}": ["await 1-0 KILLED", "kill"]},
            "twin of a finished task": {
                **lost,
                f"2-0 {second}": ["await 2-1 FIRST"],
                "2-1 FIRST": ["await 2-0 LAST", "sleep 1"],
                "1-1 FIRST": ["await 2-1 LAST", "sleep 1"],
            },
            "twin between rows": {
                **lost,
                "2-0 BETWEEN": ["await 2-1 BETWEEN"],
                "2-1 BETWEEN": ["await 2-0 LAST", "sleep 1"],
                "1-1 FIRST": ["await 2-1 LAST", "sleep 1"],
            },
            "twin that ends first": {
                **lost,
                f"2-0 {second}": ["await 2-1 LAST", "sleep 1"],
                "1-1 FIRST": ["await 2-0 LAST", "sleep 1"],
            },
            "twin killed": {
                **lost,
                "2-0 BETWEEN": ["await 2-1 KILLED"],
                f"2-1 {second}": ["kill"],
                "1-1 FIRST": ["await 2-1 KILLED", "sleep 1"],
            },
            "killed beside its twin": {
                **lost,
                f"2-0 {second}": ["await 2-1 BETWEEN", "kill"],
                "2-1 BETWEEN": ["await 2-0 KILLED", "sleep 1"],
                "1-1 FIRST": ["await 2-0 KILLED", "sleep 1"],
            },
        }
        late = {f"{self.late_partition}-0 FIRST": [f"sleep {_TOO_LONG_S}"]}
        return {**scripts[self.kind], **(late if self.late_partition is not None else {})}
