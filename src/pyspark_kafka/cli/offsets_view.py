"""Offsets of checkpoints as tables, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ..domain.partition_offsets import PartitionOffsets
from .output import new_list, new_table, print_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..domain.topic_partition import TopicPartition

Offsets: TypeAlias = dict[str, PartitionOffsets]
"""By source."""

MAX_ROWS: Final = 200
"""The lines for partitions of a table; JSON has all."""


class OffsetPair(NamedTuple):
    """Two offsets of a partition of a source; ``None`` if it has none."""

    source: str
    partition: TopicPartition
    first: int | None
    second: int | None

    @property
    def difference(self) -> int | None:
        """The second offset minus the first, if there are both."""
        if self.first is None or self.second is None:
            return None
        return self.second - self.first

    def to_dict(self, first: str, second: str) -> dict[str, object]:
        """Return the pair for JSON; the arguments name its offsets."""
        return {
            "source": self.source,
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            first: self.first,
            second: self.second,
            "difference": self.difference,
        }


def offset_pairs(
    first: Mapping[str, PartitionOffsets], second: Mapping[str, PartitionOffsets]
) -> list[OffsetPair]:
    """Return the offsets of all partitions in either of two, by source."""
    none = PartitionOffsets()
    pairs: list[OffsetPair] = []
    for source in sorted(first.keys() | second.keys()):
        ours, theirs = first.get(source, none), second.get(source, none)
        pairs += [
            OffsetPair(source, partition, ours.get(partition), theirs.get(partition))
            for partition in ours.merge(theirs)
        ]
    return pairs


def print_offsets(
    head: Sequence[tuple[str, str]], pairs: Sequence[OffsetPair], first: str, second: str
) -> None:
    """Print lines with a name, and a table of offsets."""
    from rich.text import Text

    lines = new_list()
    for name, text in head:
        lines.add_row(name, Text(text))
    has_sources = len({pair.source for pair in pairs}) > 1
    names = ("source", "topic") if has_sources else ("topic",)
    table = new_table(names, "partition", first, second, "difference")
    for pair in pairs[:MAX_ROWS]:
        cells = [pair.source, *_cells(pair)] if has_sources else _cells(pair)
        table.add_row(*map(Text, cells))
    hidden = len(pairs) - MAX_ROWS
    more = [Text(f"and {hidden:,} more partitions: --json shows all")] if hidden > 0 else []
    print_whole(lines, table, *more)


def _cells(pair: OffsetPair) -> tuple[str, ...]:
    difference = "" if pair.difference is None else f"{pair.difference:+,}"
    return (
        pair.partition.topic,
        str(pair.partition.partition),
        _number(pair.first),
        _number(pair.second),
        difference.replace("+0", "0") if pair.difference == 0 else difference,
    )


def _number(offset: int | None) -> str:
    return "none" if offset is None else f"{offset:,}"
