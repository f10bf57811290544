"""The kinds of faults, and those that a schedule may have."""

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self

from pyspark_kafka.domain.writing.transaction import LANES

from ..engine.settings import Settings


class Fault(enum.Enum):
    """A kind of fault; the values are the words of a story."""

    SLOW = "takes long"
    STALL = "its process stands still"
    LOST_REQUEST = "fails without effect"
    LOST_ANSWER = "takes effect, and fails"
    LATE = "fails, and takes effect later"
    TWICE = "takes effect twice"
    WORKER_DIES = "its Python process dies"
    DRIVER_DIES = "the driver dies"
    ORPHANS = "goes on without its driver"
    SPECULATION = "gets a twin"
    LOST_EXECUTOR = "an executor is lost: the stage runs again"
    CANCELLED = "is cancelled"
    OPERATOR = "an operator fences a transactional id"
    LATE_TIMEOUT = "the coordinator is late with a time-out"
    LONG_PAUSE = "nobody starts the query for days"
    SKEW = "clocks differ"
    SUSPENDED_DRIVER = "the driver is suspended"
    CHANGED_MODE = "the query continues in the other mode"
    ADDED_PARTITION = "the input gets a partition"
    OLD_METADATA = "a driver learns of new partitions late"
    SLOW_FUNCTION = "the function stands still"
    TWO_DRIVERS = "a second driver is started"
    RESTORED = "an older checkpoint is restored"
    DELETED_LOG = "the sink's log is deleted"
    COPIED = "the checkpoint is copied, and runs, too"
    REWRITTEN = "the offsets are rewritten"
    NEW_CHECKPOINT = "the checkpoint is deleted, and 'metadataPath' is not"


_PEOPLE: Final[tuple[Fault, ...]] = (
    Fault.TWO_DRIVERS,
    Fault.RESTORED,
    Fault.DELETED_LOG,
    Fault.COPIED,
    Fault.NEW_CHECKPOINT,
    Fault.REWRITTEN,
)
_CONTINUOUS_PEOPLE: Final = (Fault.TWO_DRIVERS, Fault.COPIED, Fault.DELETED_LOG)
_MODES: Final = (Fault.CHANGED_MODE, Fault.SUSPENDED_DRIVER)
_OTHERS: Final[tuple[Fault, ...]] = tuple(
    kind
    for kind in Fault
    if kind not in (*_PEOPLE, *_MODES, Fault.SLOW_FUNCTION, Fault.OLD_METADATA)
)
_STRAYS: Final = (
    (Fault.STALL, Fault.ORPHANS),
    (Fault.STALL, Fault.ORPHANS, Fault.LOST_REQUEST),
)
"""Tasks stand still, and continue after their query has stopped."""

_LATE: Final[tuple[tuple[Fault, ...], ...]] = (
    (),
    (Fault.ADDED_PARTITION,),
    (Fault.SLOW_FUNCTION,),
    (Fault.DRIVER_DIES,),
)
"""Few faults beside late drivers, where several have to be late in a row."""

_CALLS: Final = (
    "begin",
    "describe",
    "find",
    "commit",
    "abort",
    "write",
    "add",
    "get",
    "latest",
)
_CONTINUOUS_CALLS: Final = ("offset", "committed", "end", "seal", "hear", "report", *_CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings(Settings):
    """The sizes of a schedule."""

    partitions: int
    records: int
    """Of each partition, at most."""

    batch_records: int
    """Of each partition in a micro-batch, at most."""

    is_log_in_checkpoint: bool
    is_checkpoint_readable: bool
    timeout_ms: int
    marker_ms: int
    """How long transactions need until their markers are written."""

    work_ms: int
    """How long a task computes before each of its writes, at most."""

    max_failures: int
    first_attempt: int
    lanes: int
    """``LANES``: with one, attempts meet in ids more often."""

    retained: int
    """How many batches Spark keeps in its logs."""

    begins_continuously: bool
    """Whether the query is a continuous one at first."""

    @property
    def has_continuous(self) -> bool:
        return self.begins_continuously or Fault.CHANGED_MODE in self.kinds

    @classmethod
    def of(cls, seed: int) -> Self:
        random = Random(seed)  # noqa: S311
        kinds = set(random.sample(_OTHERS, random.choice((0, 1, 1, 2, 2, 3, 3, 4))))
        modes = random.choice(((), (), *((each,) for each in _MODES), _MODES, _MODES))
        has_continuous = Fault.CHANGED_MODE in modes or random.random() < 0.1
        people = _CONTINUOUS_PEOPLE if has_continuous else _PEOPLE
        if random.random() < (0.1 if modes else 0.4):
            kinds.add(random.choice(people))
        kinds.update(modes)
        if has_continuous and random.random() < 0.5:
            kinds.add(Fault.SLOW_FUNCTION)
        focus = random.choice(_CONTINUOUS_CALLS if has_continuous else _CALLS)
        rate = random.choice((0.005, 0.02, 0.08))
        if has_continuous and random.random() < 0.3:
            kinds.update(random.choice(_STRAYS))
            focus, rate = random.choice(("offset", "end")), 0.08
        if modes == _MODES and random.random() < 0.3:
            kinds = {*modes, *random.choice(_LATE)}
        if Fault.ADDED_PARTITION in kinds and random.random() < 0.5:
            kinds.add(Fault.OLD_METADATA)
        is_in_checkpoint = random.random() < 0.6
        made = cls(
            seed=seed,
            kinds=frozenset(kinds),
            rate=rate,
            focus=focus,
            partitions=random.randint(1, 4),
            records=random.choice((1, 1, 2, 2, 3, 4)),
            batch_records=random.choice((1, 1, 2)),
            is_log_in_checkpoint=is_in_checkpoint,
            is_checkpoint_readable=random.random() < 0.5 or has_continuous,
            timeout_ms=random.choice((60_000, 60_000, 900_000)),
            marker_ms=random.choice((0, 0, 3_000)),
            work_ms=random.choice((50, 1_000, 20_000, 100_000)),
            max_failures=random.randint(1, 4),
            first_attempt=random.choice((0, 0, LANES - 1)),
            lanes=random.choice((LANES, LANES, 1)),
            retained=random.choice((2, 100)),
            begins_continuously=has_continuous and random.random() < 0.5,
        )
        if Fault.LATE in kinds and random.random() < 0.3:
            # An entry that is late names transactions that were aborted, and fenced since.
            return replace(made, kinds=made.kinds | {Fault.OPERATOR}, focus="add")
        return made

    def smaller(self) -> list[Self]:
        less = (
            replace(self, records=max(1, self.records - 1)),
            replace(self, partitions=max(1, self.partitions - 1)),
            replace(self, work_ms=50),
        )
        # Without slots, ``super()`` would be enough: the class is made twice.
        return [*Settings.smaller(self), *(each for each in less if each != self)]
