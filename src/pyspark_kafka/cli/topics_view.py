"""Topics as a table, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from ..domain.text import excerpt
from .lag_view import duration
from .output import new_table, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

    from ..domain.cluster.topics import PartitionSummary, TopicDescription, TopicSummary

UNKNOWN: Final = "-"
_MAX_LEADERS: Final = 6


def topic_list(
    topics: Sequence[TopicSummary], *, by_partition: bool = False
) -> Iterator[Table | Text]:
    """Yield a table with a row for each topic or each partition, and the totals below it."""
    if topics:
        yield _partition_table(topics) if by_partition else _table(topics)
    partitions = sum(len(topic.partitions) for topic in topics)
    yield Text(f"{quantity(len(topics), 'topic')}, {quantity(partitions, 'partition')}")
    degraded = sum(topic.under_replicated for topic in topics)
    if degraded:
        text = f"{quantity(degraded, 'partition')} without a leader or with replicas behind"
        yield Text(text, "red")


def size(number: int | None) -> str:
    """Return a number of bytes in its largest decimal unit, with two digits or more."""
    if number is None:
        return UNKNOWN
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= factor:
            value = number / factor
            return f"{value:,.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{number} B"


def _table(topics: Iterable[TopicSummary]) -> Table:
    table = new_table(
        ["topic"], "partitions", "records <=", "size", "retention", "replicas", "leaders"
    )
    for topic in topics:
        table.add_row(
            Text(excerpt(topic.name)),
            f"{len(topic.partitions):,}",
            _number(topic.offsets),
            size(topic.size),
            _retention(topic.description),
            _replicas(topic),
            _leaders(topic),
        )
    return table


def _partition_table(topics: Iterable[TopicSummary]) -> Table:
    table = new_table(
        ["topic"], "partition", "earliest", "latest", "records <=", "size", "leader", "in sync"
    )
    for topic in topics:
        for each in topic.partitions:
            table.add_row(Text(excerpt(topic.name)), *_partition_cells(each))
    return table


def _partition_cells(partition: PartitionSummary) -> tuple[str | Text, ...]:
    described = partition.description
    in_sync = f"{len(described.in_sync)}/{len(described.replicas)}"
    return (
        str(partition.number),
        _number(partition.earliest),
        _number(partition.latest),
        _number(partition.offsets),
        size(described.size),
        Text("none", "red") if described.leader is None else str(described.leader),
        Text(in_sync, "" if described.in_sync >= described.replicas else "red"),
    )


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _retention(topic: TopicDescription) -> str:
    policy = topic.cleanup_policy
    if policy is None:
        return UNKNOWN
    if "delete" not in policy:
        return policy
    limits = []
    if topic.retention_ms is not None and topic.retention_ms >= 0:
        limits.append(duration(topic.retention_ms / 1_000))
    if topic.retention_bytes is not None and topic.retention_bytes >= 0:
        limits.append(size(topic.retention_bytes))
    kept = ", ".join(limits) or "unlimited"
    return f"{kept}, compact" if "compact" in policy else kept


def _replicas(topic: TopicSummary) -> Text:
    if topic.under_replicated:
        return Text(f"{topic.replication_factor} ({topic.under_replicated} behind)", "red")
    return Text(str(topic.replication_factor))


def _leaders(topic: TopicSummary) -> Text:
    leaders = sorted(topic.leaders)
    shown = ",".join(map(str, leaders[:_MAX_LEADERS]))
    more = f" + {len(leaders) - _MAX_LEADERS}" if len(leaders) > _MAX_LEADERS else ""
    return Text(f"{shown}{more}" or "none", "" if leaders else "red")
