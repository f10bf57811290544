"""The kinds of faults, and those that a schedule may have."""

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self

from ..engine.settings import Settings


class Fault(enum.Enum):
    """A kind of fault; the values are the words of a story."""

    SLOW = "takes long"
    LOST_REQUEST = "fails without effect"
    LOST_ANSWER = "takes effect, and fails"
    REFUSED = "is refused for a moment"
    STALE = "is answered by a broker that lags"
    TASK_DIES = "its Python process dies"
    DRIVER_DIES = "the driver dies"
    TWO_DRIVERS = "the driver only seems to be dead"
    SPECULATION = "gets a twin"
    ADDED_PARTITIONS = "partitions are added"
    RETENTION = "old records are deleted"
    DELETED = "a topic is deleted"
    RECREATED = "a topic is created again"
    NEW_TOPIC = "a topic is created"
    TRANSACTIONS = "a producer begins a transaction"


class Version(enum.Enum):
    """The interfaces that a source has had."""

    WITHOUT_LIMITS = "4.0"
    WITH_LIMITS = "4.2"
    OWN_ENGINE = "own engine"


class Trigger(enum.Enum):
    """When a query plans batches."""

    PROCESSING_TIME = "processing time"
    ONCE = "once"
    AVAILABLE_NOW = "available now"
    WRAPPED_AVAILABLE_NOW = "available now, wrapped by Spark"
    """``spark.sql.streaming.triggerAvailableNowWrapper.enabled``."""


TOPICS_CHANGE: Final = (
    Fault.ADDED_PARTITIONS,
    Fault.RETENTION,
    Fault.DELETED,
    Fault.RECREATED,
    Fault.NEW_TOPIC,
    Fault.TRANSACTIONS,
)
_CALLS: Final = (
    "partitions",
    "earliest",
    "latest",
    "for_timestamps",
    "commit_group",
    "fetch",
    "add",
    "get",
    "initialOffset",
    "latestOffset",
    "plan",
    "commit",
    "log offsets",
    "log commit",
    "task",
)
_TRIGGERS: Final = {
    Version.WITHOUT_LIMITS: (*Trigger,),
    Version.WITH_LIMITS: (Trigger.PROCESSING_TIME, Trigger.ONCE, Trigger.AVAILABLE_NOW),
    Version.OWN_ENGINE: (Trigger.PROCESSING_TIME, Trigger.AVAILABLE_NOW),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings(Settings):
    """The sizes of a schedule."""

    is_batch: bool
    version: Version
    trigger: Trigger
    topics: int
    partitions: int
    records: int
    """Records in the topics before the query begins."""

    changes: int
    """How often something happens to the topics while the query runs."""

    pause_ms: int
    """The longest time between two of them."""

    runs: int
    """How often the query is started before faults stop; the number of actions in a batch."""

    fetch_records: int
    dropped: frozenset[str] = frozenset()
    """Options that the query has without being given them."""

    @classmethod
    def of(cls, seed: int) -> Self:
        random = Random(seed)  # noqa: S311
        kinds = random.sample([*Fault], random.choice((0, 1, 1, 2, 2, 3, 3, 4, 6)))
        is_batch = random.random() < 0.3
        version = random.choice([*Version])
        return cls(
            seed=seed,
            kinds=frozenset(kinds),
            rate=random.choice((0.005, 0.02, 0.08)),
            focus=random.choice(_CALLS),
            is_batch=is_batch,
            version=version,
            trigger=random.choice(_TRIGGERS[version]),
            topics=random.choice((1, 1, 2)),
            partitions=random.choice((1, 1, 2, 3)),
            records=random.choice((0, 3, 8, 20)),
            changes=random.randint(0, 12),
            pause_ms=random.choice((30, 200, 1_000)),
            runs=random.randint(1, 5),
            fetch_records=random.choice((1, 3, 1_000)),
        )

    def smaller(self) -> list[Self]:
        less = (
            replace(self, changes=self.changes // 2),
            replace(self, changes=max(0, self.changes - 1)),
            replace(self, runs=max(1, self.runs - 1)),
            replace(self, records=self.records // 2),
            replace(self, topics=1),
            replace(self, partitions=max(1, self.partitions - 1)),
            replace(self, fetch_records=1_000),
            *(replace(self, dropped=self.dropped | {name}) for name in OPTIONAL),
        )
        # Without slots, ``super()`` would be enough: the class is made twice.
        return [*Settings.smaller(self), *(each for each in less if each != self)]


OPTIONAL: Final = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "maxRecordsPerPartition",
    "minPartitions",
    "maxPartitions",
    "metadataPath",
    "commitOffsetsToGroup",
    "startingOffsetsByTimestampStrategy",
    "fetchOffset.numRetries",
    "kafka.isolation.level",
)
