"""The offsets of a continuous query's group, and the seal that excludes queries from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

_FORM: Final = re.compile(
    r"pyspark-kafka: (?:taken over by batch (?P<batch>[0-9]{1,19})|run (?P<run>[!-~]{1,99}) ended)"
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

    These are a run that was stopped, or all runs that began before a micro-batch query took over
    with a batch. Whoever takes over first fences the producer of each partition, and then commits
    the seal with its offset. A task fences as well, and then reads the group: it either finds the
    seal or is fenced itself.
    """

    batch_id: int | None = None
    run_id: str | None = None

    def __str__(self) -> str:
        if self.batch_id is not None:
            return f"pyspark-kafka: taken over by batch {self.batch_id}"
        return f"pyspark-kafka: run {self.run_id} ended"

    @classmethod
    def of(cls, committed: GroupOffset) -> GroupSeal:
        """Return the seal in the text of an offset; one that excludes nothing if it has none."""
        found = _FORM.fullmatch(committed.metadata)
        if found is None:
            return cls()
        batch: str | None = found["batch"]
        return cls(None if batch is None else int(batch), found["run"])

    def reason(self, run_id: str, first_epoch: int) -> str | None:
        """Return why a run that began with an epoch is excluded; ``None`` if it is not."""
        if self.batch_id is not None and first_epoch < self.batch_id:
            return f"a micro-batch query took over the checkpoint with batch {self.batch_id}"
        if self.run_id is not None and self.run_id == run_id:
            return "its driver stopped the query"
        return None
