"""The query of a schedule: what it reads, from where, and with which limits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self, TypeAlias

from pyspark_kafka.domain.topic_partition import TopicPartition

from .faults import SourceSettings, Trigger, Version
from .kafka import FIRST_MS, Kafka, View

LATEST: Final = -1
EARLIEST: Final = -2
COMMITTED: Final = -3
"""Stands for a group's offsets, which ``Bound.each`` has then."""

GROUP_ID: Final = "starts"
FALLBACK: Final = "startingOffsetsGroupFallback"

Offsets: TypeAlias = Mapping[TopicPartition, int]

_COLUMNS: Final = {f"include{name}": "false" for name in ("Key", "Timestamp", "TimestampType")}
"""Columns that no oracle looks at."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a query starts or ends: one number for all partitions, or one for each.

    They are times, or offsets; -1 is the latest and -2 the earliest.
    """

    is_time: bool
    every: int | None = None
    each: tuple[tuple[TopicPartition, int], ...] = ()

    def with_prefix(self, prefix: str) -> Self:
        return replace(self, each=tuple((_of_prefix(part, prefix), at) for part, at in self.each))

    def options(self, side: str) -> dict[str, str]:
        if self.is_time and self.every is not None:
            return {f"{side}Timestamp": str(self.every)}
        if self.every == COMMITTED:
            return {f"{side}Offsets": "group", "kafka.group.id": GROUP_ID}
        if self.every is not None:
            return {f"{side}Offsets": {LATEST: "latest", EARLIEST: "earliest"}[self.every]}
        return {f"{side}Offsets{'ByTimestamp' * self.is_time}": by_topic(dict(self.each))}


@dataclass(frozen=True, slots=True)
class Query:
    """The model's own form of the options; ``options`` is what users give."""

    strategy: str
    reads: tuple[str | TopicPartition, ...]
    start: Bound
    end: Bound
    others: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str | None:
        return dict(self.others).get(name)

    def number(self, name: str) -> int | None:
        text = self[name]
        return None if text is None else int(text)

    @property
    def fails_on_data_loss(self) -> bool:
        return self["failOnDataLoss"] != "false"

    @property
    def needs_match(self) -> bool:
        return self["startingOffsetsByTimestampStrategy"] != "latest"

    @property
    def committed_only(self) -> bool:
        return self["kafka.isolation.level"] == "read_committed"

    @property
    def keeps_start(self) -> bool:
        return self["metadataPath"] is not None

    def with_prefix(self, prefix: str) -> Self:
        """Return the same query of topics whose names begin with a prefix."""
        return replace(
            self,
            reads=tuple(_with_prefix(each, prefix) for each in self.reads),
            start=self.start.with_prefix(prefix),
            end=self.end.with_prefix(prefix),
        )

    def given(self, **others: str) -> Self:
        return replace(self, others=tuple(sorted({**dict(self.others), **others}.items())))

    def options(self, *, is_batch: bool) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": "memory",
            "client": "memory",
            **self._subscription(),
            **self.start.options("starting"),
            **(self.end.options("ending") if is_batch else {}),
            **dict(self.others),
            **_COLUMNS,
        }

    def _subscription(self) -> dict[str, str]:
        if self.strategy != "assign":
            return {self.strategy: ",".join(map(str, self.reads))}
        numbers: dict[str, list[int]] = {}
        for part in self.reads:
            assert isinstance(part, TopicPartition)
            numbers.setdefault(part.topic, []).append(part.partition)
        return {"assign": json.dumps(numbers)}


def _of_prefix(part: TopicPartition, prefix: str) -> TopicPartition:
    return TopicPartition(prefix + part.topic, part.partition)


def _with_prefix(name: str | TopicPartition, prefix: str) -> str | TopicPartition:
    if isinstance(name, TopicPartition):
        return _of_prefix(name, prefix)
    return f"^{prefix}{name[1:]}" if name.startswith("^") else prefix + name


def by_topic(offsets: Offsets) -> str:
    topics: dict[str, dict[str, int]] = {}
    for part, offset in sorted(offsets.items()):
        topics.setdefault(part.topic, {})[str(part.partition)] = offset
    return json.dumps(topics)


class Choice:
    """Chooses the query of a schedule."""

    def __init__(self, settings: SourceSettings, kafka: Kafka) -> None:
        self._settings = settings
        self._random = Random(~settings.seed)  # noqa: S311
        self._own = Random(settings.seed)  # noqa: S311
        """Chooses what the JVM connector has not."""
        self._view: View = kafka.view(committed_only=False)
        self._last_ms = FIRST_MS + 10 * settings.records

    def query(self) -> Query:
        strategy, reads = self._subscription()
        parts = [part for part in sorted(self._view) if strategy != "assign" or part in reads]
        is_batch = self._settings.is_batch
        words = (EARLIEST,) if is_batch else (EARLIEST, LATEST)
        start = self._bound(parts, words)
        if self._own.random() < 0.15:
            start = self._committed(parts)
        end = self._bound(parts, (LATEST,)) if is_batch else Bound(is_time=False, every=LATEST)
        if not self._is_ordered(start, end):
            end = Bound(is_time=False, every=LATEST)
        others = self._common() if is_batch else {**self._common(), **self._of_stream()}
        if start.every == COMMITTED and self._own.random() < 0.7:
            others[FALLBACK] = {EARLIEST: "earliest", LATEST: "latest"}[self._own.choice(words)]
        kept = {name: text for name, text in others.items() if name not in self._settings.dropped}
        return Query(strategy, reads, start, end, tuple(sorted(kept.items())))

    def _subscription(self) -> tuple[str, tuple[str | TopicPartition, ...]]:
        topics = sorted({part.topic for part in self._view})
        strategy = self._random.choice(("subscribe", "subscribe", "subscribePattern", "assign"))
        if strategy == "subscribe":
            return strategy, tuple(topics)
        if strategy == "subscribePattern":
            return strategy, ("^t",)
        parts = sorted(self._view)
        return strategy, tuple(self._random.sample(parts, self._random.randint(1, len(parts))))

    def _bound(self, parts: Sequence[TopicPartition], words: tuple[int, ...]) -> Bound:
        random = self._random
        kind = random.choice(("word", "word", "offsets", "time", "times"))
        if kind == "word":
            return Bound(is_time=False, every=random.choice(words))
        if kind == "offsets":
            return Bound(False, each=tuple((part, self._offset(part, words)) for part in parts))
        if kind == "time":
            return Bound(is_time=True, every=self._time())
        return Bound(is_time=True, each=tuple((part, self._time()) for part in parts))

    def _committed(self, parts: Sequence[TopicPartition]) -> Bound:
        """Return the offsets of a group, which may lack some partitions."""
        rate = self._own.choice((0.5, 1.0))
        known = [part for part in parts if self._own.random() < rate]
        ends = ((part, self._view[part].end) for part in known)
        offsets = tuple(
            (part, self._own.choice((0, self._own.randint(0, end), end, end + 2)))
            for part, end in ends
        )
        return Bound(is_time=False, every=COMMITTED, each=offsets)

    def _offset(self, part: TopicPartition, words: tuple[int, ...]) -> int:
        log = self._view[part]
        if self._random.random() < 0.3:
            return self._random.choice(words)
        beyond = 3 if self._random.random() < 0.05 else 0
        return self._random.randint(log.start, log.end) + beyond

    def _time(self) -> int:
        """Return a time between the records, or after all that are there."""
        return self._random.choice((0, self._random.randint(FIRST_MS, self._last_ms + 50)))

    def _is_ordered(self, start: Bound, end: Bound) -> bool:
        """Return whether the options can be right: the parser refuses others."""
        starts, ends = dict(start.each), dict(end.each)
        if start.every is not None or end.every is not None or start.is_time != end.is_time:
            return not (start.is_time and end.is_time and (start.every or 0) > (end.every or 0))
        return all(ends[part] < 0 or starts[part] <= ends[part] for part in starts)

    def _common(self) -> dict[str, str]:
        return self._some(
            0.4,
            {
                "failOnDataLoss": "false",
                "minPartitions": str(self._random.randint(1, 8)),
                "maxPartitions": str(self._random.randint(8, 9)),
                "maxRecordsPerPartition": str(self._random.randint(1, 8)),
                "startingOffsetsByTimestampStrategy": "latest",
                "kafka.isolation.level": "read_committed",
                "fetchOffset.numRetries": "1",
            },
        )

    def _of_stream(self) -> dict[str, str]:
        smallest = self._random.randint(1, 6)
        is_wrapped = self._settings.trigger is Trigger.WRAPPED_AVAILABLE_NOW
        found = self._some(
            0.35,
            {
                "maxOffsetsPerTrigger": str(smallest + self._random.randint(0, 5)),
                "minOffsetsPerTrigger": str(smallest),
                "metadataPath": "memory://metadata",
                "commitOffsetsToGroup": "group",
            },
        )
        if self._own.random() < 0.15:
            found["maxBytesPerTrigger"] = str(self._own.choice((1, 5, 1_000_000)))
        if is_wrapped:
            found = {name: text for name, text in found.items() if not name.endswith("Trigger")}
        found["maxTriggerDelay"] = f"{self._random.choice((100, 1_000, 5_000))}ms"
        if self._settings.version is Version.WITHOUT_LIMITS:
            found["allowLimitsWithoutTrigger"] = "true"
        return found

    def _some(self, rate: float, options: Mapping[str, str]) -> dict[str, str]:
        return {name: text for name, text in options.items() if self._random.random() < rate}
