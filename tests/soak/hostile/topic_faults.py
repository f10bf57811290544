"""Faults of the topic of numbers: it is compacted, its records are deleted, it is created again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka.admin import ConfigResource, ConfigResourceType

from pyspark_kafka.brokers.admin import admin_client

from ..ledger import SOURCE
from .fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .arena import Arena

OWN_THREADS: Final = "queries in threads"
"""What an arena offers whose queries go on behind a loss of data."""

CLEANING: Final = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "500",
}
"""What brokers need so that compaction and retention are soon at work."""

_SEGMENTS: Final = {"segment.ms": "500"}
_COMPACTED: Final = {**_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
_DELETED: Final = {**_SEGMENTS, "retention.ms": "1000"}
_CHECKPOINT: Final = "cleaner-offset-checkpoint"
_ADMIN_S: Final = 30.0
_LAST_S: Final = 1.0
"""How long brokers may go on with what they were told to end."""

_MAX_PAUSE_S: Final = 2.0


@contextmanager
def compact(arena: Arena) -> Iterator[None]:
    """The topic is compacted, which removes every second number."""
    before = _cleaned(arena)
    with arena.ledger.producer.compacting():
        with _configured(arena, _COMPACTED):
            arena.await_event(lambda: _cleaned(arena) != before, "compaction")
            arena.note("the topic is compacted")
            yield
        arena.run_for(_LAST_S)


@contextmanager
def retain_briefly(arena: Arena) -> Iterator[None]:
    """Segments are deleted after a second, also those that some query has not read."""
    producer, before = arena.ledger.producer, _first_segments(arena)
    _tolerate_loss(arena)
    with producer.deleting():
        with _configured(arena, _DELETED):
            arena.await_event(lambda: _first_segments(arena) != before, "deletion of segments")
            arena.note("segments are deleted")
            yield
        arena.run_for(_LAST_S)
        # Each broker deletes by its own segments: from here on, they agree.
        ends = producer.ends()
        arena.cluster.delete_records({(SOURCE, one): end for one, end in ends.items()})
        producer.begin_at(ends)
    arena.note(f"records before {ends} are deleted")


@contextmanager
def recreate(arena: Arena) -> Iterator[None]:
    """The topic is deleted and created again while its ranges are read.

    Numbers are written again once all queries have gone over to the empty topic: where a query
    tolerates the loss, it goes on at the end that it sees first.
    """
    producer = arena.ledger.producer
    _tolerate_loss(arena)
    with producer.deleting(), producer.paused():
        arena.cluster.delete_topic(SOURCE)
        arena.note("topic deleted")
        arena.run_for(arena.chance.uniform(0.0, _MAX_PAUSE_S))
        arena.ledger.create_source_again()
        arena.note("topic created again")
        arena.await_event(
            lambda: all(query.has_gone_over() for query in arena.queries), "new beginning"
        )
        arena.note("all queries are at its beginning")
    yield


def _tolerate_loss(arena: Arena) -> None:
    for query in arena.queries:
        query.tolerates_loss = True


@contextmanager
def _configured(arena: Arena, config: Mapping[str, str]) -> Iterator[None]:
    """Set settings of the topic until the block ends."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, SOURCE, config)]
    try:
        with _admin(arena) as admin:
            # A request that times out may be carried out, too.
            admin.alter_configs(resources, incremental=True)
        yield
    finally:
        with _admin(arena) as admin:
            admin.reset_configs(resources, incremental=True)


def _admin(arena: Arena) -> AbstractContextManager[Any]:
    return admin_client(arena.cluster.bootstrap_servers, "the topic", _ADMIN_S)


def _cleaned(arena: Arena) -> set[str]:
    """Return up to which offsets brokers have compacted partitions of the topic, as lines."""
    paths = [node.data / _CHECKPOINT for node in arena.cluster._nodes]
    texts = [path.read_text() for path in paths if path.exists()]
    return {line for text in texts for line in text.splitlines() if line.startswith(f"{SOURCE} ")}


def _first_segments(arena: Arena) -> set[Path]:
    """Return the first segment of each partition of the topic on each broker."""
    logs = [log for node in arena.cluster._nodes for log in node.data.glob(f"{SOURCE}-*")]
    return {min(segments) for log in logs if (segments := list(log.glob("*.log")))}


_LOSS: Final = frozenset({"KAFKA_DATA_LOSS"})
_NEEDS: Final = frozenset({OWN_THREADS})

TOPIC_FAULTS: Final = (
    Fault("compaction", compact, begins_first=True),
    Fault("retention", retain_briefly, _LOSS, _NEEDS, begins_first=True),
    Fault(
        "topic created again",
        recreate,
        _LOSS | {"KAFKA_TOPIC_RECREATED"},
        _NEEDS,
        joins_others=False,
    ),
)
