"""Offsets by partition, in the JSON form of Spark's checkpoints."""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping
from itertools import chain, groupby
from types import MappingProxyType
from typing import Final, final

from .json_text import is_integer, partition_number, read_json, read_json_object
from .options.option import INT64_MAX
from .text import excerpt
from .topic_partition import TopicPartition, is_topic_name

LATEST: Final = -1
"""In options, the offset after the last record (Spark's ``KafkaOffsetRangeLimit.LATEST``)."""

EARLIEST: Final = -2
"""In options, the first offset that the broker holds (``KafkaOffsetRangeLimit.EARLIEST``)."""

EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


@final
class PartitionOffsets(Mapping[TopicPartition, int]):
    """An immutable mapping of partitions to offsets, each the offset of the *next* record.

    Its JSON has the form of Spark's ``JsonUtils.partitionOffsets``, which the JVM connector writes
    into checkpoints: ``{"topic":{"0":23}}``, topics and partitions in order.
    """

    __slots__ = ("_offsets",)
    _offsets: Mapping[TopicPartition, int]

    def __init__(
        self, offsets: Mapping[TopicPartition, int] | Iterable[tuple[TopicPartition, int]] = ()
    ) -> None:
        """Copy ``offsets``.

        :raises ValueError: if an offset is below ``EARLIEST`` (-2) or beyond 64 bits.
        """
        ordered = dict(sorted(dict(offsets).items()))
        for partition, offset in ordered.items():
            if not EARLIEST <= offset <= INT64_MAX:
                raise ValueError(f"not an offset: {offset} for {partition}")
        object.__setattr__(self, "_offsets", MappingProxyType(ordered))

    @classmethod
    def from_dict(cls, topics: Mapping[str, Mapping[str, int]]) -> PartitionOffsets:
        """Build from ``{"topic": {"0": 23}}``.

        :raises ValueError: if it has any other shape.
        """
        offsets: dict[TopicPartition, int] = {}
        for topic, partitions in topics.items():
            for number, offset in partitions.items():
                if not is_integer(offset):
                    raise ValueError(f"not an offset: {offset!r}")
                offsets[TopicPartition(topic, partition_number(number))] = offset
        return cls(offsets)

    @classmethod
    def from_json(cls, text: str) -> PartitionOffsets:
        """Parse ``{"topic":{"0":23}}``.

        :raises ValueError: with the message of Spark's ``JsonUtils``, if it has any other shape.
        """
        topics = read_json_object(text, EXAMPLE)
        try:
            return cls.from_dict(topics)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"Expected e.g. {EXAMPLE}, got {text}") from error

    @classmethod
    def from_checkpoint(cls, text: str) -> PartitionOffsets:
        """Parse offsets that are read back; raise as ``from_checkpoint_object``."""
        try:
            content = read_json(text)
        except ValueError as error:
            raise ValueError(f"Expected e.g. {EXAMPLE}, got {excerpt(text)}") from error
        return cls.from_checkpoint_object(content)

    @classmethod
    def from_checkpoint_object(cls, content: object) -> PartitionOffsets:
        """Build from the parsed JSON of a checkpoint, which is not trusted.

        :raises ValueError: if it has another shape, or has a name that no topic has, or an offset
            that no record has, such as ``LATEST``.
        """
        if not isinstance(content, dict):
            raise ValueError(f"Expected e.g. {EXAMPLE}, got {excerpt(json.dumps(content))}")  # noqa: TRY004
        try:
            offsets = cls.from_dict(content)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f"Expected e.g. {EXAMPLE}, got {excerpt(json.dumps(content))}"
            ) from error
        for topic, items in groupby(offsets.items(), _topic):
            if not is_topic_name(topic):
                raise ValueError(f"no topic can have the name '{excerpt(topic)}'")
            for partition, offset in items:
                if offset < 0:
                    raise ValueError(f"the offset of {partition} is negative: {offset}")
        return offsets

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return ``{"topic": {"0": 23}}``, topics and partitions in order."""
        return {
            topic: {str(partition.partition): offset for partition, offset in group}
            for topic, group in groupby(self.items(), _topic)
        }

    def to_json(self) -> str:
        """Return the JSON of Spark's checkpoints."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)

    def merge(self, newer: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Return these offsets updated with ``newer``."""
        return PartitionOffsets(dict(chain(self.items(), newer.items()))) if newer else self

    def restrict(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return only the offsets of ``partitions``."""
        wanted = set(partitions)
        return PartitionOffsets(
            (partition, offset) for partition, offset in self.items() if partition in wanted
        )

    def keys(self) -> KeysView[TopicPartition]:
        """Return a view of the partitions, in order."""
        return self._offsets.keys()

    def items(self) -> ItemsView[TopicPartition, int]:
        """Return a view of the partitions and their offsets, in order."""
        return self._offsets.items()

    def __getitem__(self, partition: TopicPartition) -> int:
        return self._offsets[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PartitionOffsets is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"PartitionOffsets is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionOffsets):
            return self._offsets == other._offsets
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(tuple(self._offsets.items()))

    def __reduce__(self) -> tuple[type[PartitionOffsets], tuple[dict[TopicPartition, int]]]:
        return PartitionOffsets, (dict(self._offsets),)

    def __repr__(self) -> str:
        return f"PartitionOffsets({self.to_json()})"


def _topic(item: tuple[TopicPartition, int]) -> str:
    return item[0].topic
