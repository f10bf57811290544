"""Reports of lost data, as a reader of logs understands them."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.topic_partition import TopicPartition

_RANGE: Final = re.compile(
    r"(?:Skip missing records in|Could not read records in offset) \[(\d+), (\d+)\) "
    r"(?:of|for topic partition) (\S+)"
)
_ADDED: Final = re.compile(r"Added partition (\S+) starts from (\d+)")
_CHANGED: Final = re.compile(r"Partition (\S+?)(?:'s)? offset was changed from (\d+) to (\d+)")
_RESET: Final = re.compile(
    r"(?:Starting offset|startingOffsets) for (\S+) was (\d+) but consumer reset to (\d+)"
)
_SET: Final = re.compile(r"Set\((.*?)\)")

RANGE: Final = "COULD_NOT_READ_OFFSET_RANGE"
ADDED: Final = "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"
CHANGED: Final = "PARTITION_OFFSET_CHANGED"
RESET: Final = "START_OFFSET_RESET"
DELETED: Final = "PARTITIONS_DELETED"
UNKNOWN_START: Final = "FIRST_BATCH_START_UNKNOWN"


class Loss(NamedTuple):
    """A loss in one partition: of ``[start, end)``, if the report names offsets."""

    condition: str
    partition: TopicPartition
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.condition} {self.partition} [{self.start}, {self.end})"


def losses_of(error: DataLossError) -> list[Loss]:
    return parse_loss(error.sub_condition, str(error).partition("Reason: ")[2])


def parse_loss(condition: str, reason: str) -> list[Loss]:
    return list(_parse(condition, reason))


def _parse(condition: str, reason: str) -> Iterator[Loss]:
    match condition:
        case "COULD_NOT_READ_OFFSET_RANGE":
            start, end, part = _groups(_RANGE, reason)
            yield Loss(condition, _partition(part), int(start), int(end))
        case "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO":
            part, start = _groups(_ADDED, reason)
            yield Loss(condition, _partition(part), 0, int(start))
        case "PARTITION_OFFSET_CHANGED":
            part, start, end = _groups(_CHANGED, reason)
            yield Loss(condition, _partition(part), int(start), int(end))
        case "START_OFFSET_RESET":
            part, start, end = _groups(_RESET, reason)
            yield Loss(condition, _partition(part), int(start), int(end))
        case _:
            # With ``kafka.group.id``, the condition and the advice are others.
            condition = condition.removesuffix("_AND_GROUP_ID_CONFIG_PRESENT")
            (names,) = _groups(_SET, reason)
            for name in names.split(", "):
                yield Loss(condition, _partition(name))


def _groups(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"a report of a loss has other words: {text}")
    return found.groups()


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rstrip(".").rpartition("-")
    return TopicPartition(topic, int(number))


def names(losses: Iterable[Loss]) -> str:
    return ", ".join(chain(map(str, losses)))
