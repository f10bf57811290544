"""The rules of the JVM connector, and those documented differences that this source has.

They are written down once more, from the connector's behaviour, so that a mistake in the product is
not made twice. The differences are: a first batch without ``metadataPath`` ends where it starts in
partitions that start at their end (decision 0040), and a plan of a batch that is used again
(decision 0002).
"""

import math
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from pyspark_kafka.domain.topic_partition import TopicPartition

from .kafka import Kafka, Log, View
from .query import COMMITTED, EARLIEST, FALLBACK, LATEST, Bound, Offsets, Query


class RefusedError(Exception):
    """The query must fail with an error of this class."""

    def __init__(self, name: str, *others: str) -> None:
        super().__init__(name)
        self.name = name
        self.names = {name, *others}
        """The query may fail with any of these, if more than one thing is wrong."""


def subscribed(query: Query, view: View) -> frozenset[TopicPartition]:
    """Return the partitions that a query reads."""
    if query.strategy == "assign":
        return frozenset(part for part in view if part in query.reads)
    if query.strategy == "subscribePattern":
        pattern = str(query.reads[0])
        return frozenset(part for part in view if re.search(pattern, part.topic))
    if not {part.topic for part in view} >= {*query.reads}:
        raise RefusedError("UnknownTopicError")
    return frozenset(part for part in view if part.topic in query.reads)


class Start(NamedTuple):
    """Where a stream starts, and the partitions that start at their end."""

    offsets: dict[TopicPartition, int]
    at_end: frozenset[TopicPartition]


def initial(query: Query, kafka: Kafka, view: View) -> Start:
    """Return where a stream starts."""
    parts = subscribed(query, view)
    given = dict(query.start.each)
    if query.start.every is None and given.keys() != parts:
        name = "TimestampsMismatchError" if query.start.is_time else "StreamOffsetsMismatchError"
        raise RefusedError(name)
    found = {part: _start(query, kafka, part, view[part]) for part in parts}
    at_end = frozenset(part for part, offset in found.items() if offset == LATEST)
    return Start({part: resolve(offset, view[part]) for part, offset in found.items()}, at_end)


def _start(query: Query, kafka: Kafka, part: TopicPartition, log: Log) -> int:
    if query.start.every == COMMITTED:
        return _committed(query, part)
    number = _number(query.start, part)
    if not query.start.is_time:
        return number
    match = kafka.first_since(part, log, number)
    if match is None and query.needs_match:
        raise RefusedError("NoOffsetForTimestampError")
    return LATEST if match is None else match


def _committed(query: Query, part: TopicPartition) -> int:
    words = {"earliest": EARLIEST, "latest": LATEST, None: None}
    offset = dict(query.start.each).get(part, words[query[FALLBACK]])
    if offset is None:
        raise RefusedError("NoCommittedOffsetError")
    return offset


def start_again(query: Query, kafka: Kafka, part: TopicPartition, log: Log, end: int) -> int:
    """Return where a first batch starts in a partition whose start was not kept.

    It is not after the logged end: what could have moved it there came later.
    """
    if query.start.is_time:
        match = kafka.first_since(part, log, _number(query.start, part))
        return end if match is None else min(match, end)
    number = _start(query, kafka, part, log)
    is_unknown = query.start.every == COMMITTED and end < number <= log.end
    return end if number == LATEST or is_unknown else resolve(number, log)


def _number(bound: Bound, part: TopicPartition) -> int:
    return dict(bound.each)[part] if bound.every is None else bound.every


def resolve(offset: int, log: Log) -> int:
    return {EARLIEST: log.start, LATEST: log.end}.get(offset, offset)


def limited(limit: int, begin: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Return the end of a batch of about ``limit`` offsets."""
    backlog = {part: end - begin[part] for part, end in latest.items() if part in begin}
    backlog = {part: size for part, size in backlog.items() if size > 0}
    total = float(sum(backlog.values()))
    ends = dict(latest)
    for part, size in backlog.items():
        share = limit * (size / total)
        whole = math.ceil(share) if share < 1 else math.floor(share)
        ends[part] = min(latest[part], begin[part] + whole)
    return ends


def is_delayed(query: Query, waited_ms: int, start: Offsets, latest: Offsets) -> bool:
    """Return whether a batch waits for more records; ``waited_ms`` since the last one."""
    smallest = query.number("minOffsetsPerTrigger")
    longest_ms = int((query["maxTriggerDelay"] or "0ms").removesuffix("ms"))
    if smallest is None or waited_ms >= longest_ms:
        return False
    return sum(end - start.get(part, 0) for part, end in latest.items()) < smallest


def planning_losses(start: Offsets, end: Offsets, view: View) -> set[tuple[str, TopicPartition]]:
    """Return what is lost between a batch and the one before it."""
    losses = {("PARTITIONS_DELETED", part) for part in start.keys() - end.keys()}
    for part, until in end.items():
        log = view.get(part)
        if part in start:
            begin = start[part]
        elif log is None:
            losses.add(("INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", part))
            continue
        else:
            begin = log.start
            if begin:
                losses.add(("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", part))
        if until < begin:
            losses.add(("PARTITION_OFFSET_CHANGED", part))
    return losses


class Extent(NamedTuple):
    """The offsets that a batch query reads of a partition."""

    start: int
    end: int
    log: Log


def batch_extents(
    query: Query, kafka: Kafka, view: View, planned: Collection[TopicPartition] | None
) -> dict[TopicPartition, Extent]:
    """Return what a batch query reads; ``planned`` are the partitions of a plan that is kept."""
    parts = subscribed(query, view)
    for bound in (query.start, query.end) if planned is None else ():
        if bound.every is None and dict(bound.each).keys() != parts:
            raise RefusedError(
                "TimestampsMismatchError" if bound.is_time else "OffsetsMismatchError"
            )
        if bound is query.start:
            # Errors of starts come before those of ends.
            for part in sorted(parts):
                _start(query, kafka, part, view[part])
    if planned is not None and not parts >= {*planned}:
        raise RefusedError("UnknownTopicError")
    extents, refused = _extents(query, kafka, view, parts, planned)
    problems = sorted({each for each in map(_problem, extents.values()) if each}, reverse=True)
    if not query.fails_on_data_loss:
        problems = [each for each in problems if each != "DataLossError"]
    if refused or problems:
        raise RefusedError(*refused, *problems)
    return extents


def _problem(extent: Extent) -> str | None:
    start, end, log = extent
    if start > end:
        return "ResolvedOffsetsError"
    is_inside = start == end or (log.start <= start and end <= log.end)
    return None if is_inside else "DataLossError"


def _extents(
    query: Query,
    kafka: Kafka,
    view: View,
    parts: frozenset[TopicPartition],
    planned: Collection[TopicPartition] | None,
) -> tuple[dict[TopicPartition, Extent], list[str]]:
    """Return what is read, and refusals of a kept plan: each task asks for its partition alone."""
    extents, refusals = dict[TopicPartition, Extent](), list[str]()
    named = [dict(bound.each) for bound in (query.start, query.end) if bound.every is None]
    for part in sorted(parts):
        is_added = planned is not None and part not in planned
        if is_added and not all(part in each for each in named):
            continue
        try:
            extents[part] = _extent(query, kafka, part, view[part])
        except RefusedError as refused:
            if planned is None:
                raise
            refusals += [] if is_added else [refused.name]
    return extents, refusals


def _extent(query: Query, kafka: Kafka, part: TopicPartition, log: Log) -> Extent:
    start = resolve(_start(query, kafka, part, log), log)
    number = _number(query.end, part)
    match = kafka.first_since(part, log, number) if query.end.is_time else number
    return Extent(start, log.end if match is None else resolve(match, log), log)


def values_in(
    query: Query, kafka: Kafka, extents: Mapping[TopicPartition, Extent]
) -> frozenset[bytes]:
    """Return the visible records of a batch."""
    return frozenset(
        value
        for part, (start, end, log) in extents.items()
        for value in kafka.values.get((part, log.topic_id), ())
        if max(start, log.start) <= kafka.written[value].offset < min(end, log.end)
        and kafka.is_visible(value, committed_only=query.committed_only)
    )
