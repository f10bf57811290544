"""The offsets of a continuous query's group, and the seal that excludes queries from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

_RUN: Final = "[!-~]{1,99}"
_FORM: Final = re.compile(
    r"pyspark-kafka: (?:taken over by batch (?P<batch>[0-9]{1,19})"
    rf"(?:, run (?P<also>{_RUN}) ended)?|run (?P<run>{_RUN}) ended)"
)


@final
@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset, and the text that was committed with it."""

    offset: int
    metadata: str = ""


@final
@dataclass(frozen=True, slots=True)
class GroupSeal:
    """The runs of a continuous query that may no longer commit offsets of its group.

    These are a run that was stopped, and all runs that began before a micro-batch query took over
    with a batch. Whoever takes over first fences the producer of each partition, and then commits
    the seal with its offset. A task fences as well, and then reads the group: it either finds the
    seal or is fenced itself.
    """

    batch_id: int | None = None
    run_id: str | None = None

    def __str__(self) -> str:
        batch = None if self.batch_id is None else f"taken over by batch {self.batch_id}"
        run = None if self.run_id is None else f"run {self.run_id} ended"
        return f"pyspark-kafka: {', '.join(filter(None, (batch, run)))}"

    @classmethod
    def of(cls, committed: GroupOffset) -> GroupSeal:
        """Return the seal in the text of an offset; one that excludes nothing if it has none."""
        found = _FORM.fullmatch(committed.metadata)
        if found is None:
            return cls()
        batch: str | None = found["batch"]
        return cls(None if batch is None else int(batch), found["run"] or found["also"])

    @property
    def is_of_batch(self) -> bool:
        """Whether its offset is where a batch took over, and no run has ended since."""
        return self.batch_id is not None and self.run_id is None

    def beside(self, found: GroupSeal) -> GroupSeal:
        """Return the seal that replaces one that was found: it excludes what either does."""
        batches = [each.batch_id for each in (self, found) if each.batch_id is not None]
        return GroupSeal(max(batches, default=None), self.run_id or found.run_id)

    def reason(self, run_id: str, first_epoch: int) -> str | None:
        """Return why a run that began with an epoch is excluded; ``None`` if it is not."""
        if self.batch_id is not None and first_epoch < self.batch_id:
            return f"a micro-batch query took over the checkpoint with batch {self.batch_id}"
        if self.run_id is not None and self.run_id == run_id:
            return "its driver stopped the query"
        return None
