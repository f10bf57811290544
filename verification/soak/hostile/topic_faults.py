"""Faults of the topic of numbers: it is compacted, its records are deleted, it is created again."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..ledger import SOURCE
from .arena import Arena
from .fault import Faults
from .topic_settings import topic_configured

TOPIC_FAULTS: Final = Faults()

OWN_THREADS: Final = "queries in threads"
"""Offered by an arena whose queries report when they change to a new topic."""

TOLERANCE: Final = "queries that tolerate a loss"
"""Offered by an arena whose queries continue behind a loss of data."""

CLEANING: Final = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "500",
}
"""The settings of brokers that compact and delete records soon."""

_SEGMENTS: Final = {"segment.ms": "500"}
_COMPACTED: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", **_SEGMENTS}
_DELETED: Final = {"retention.ms": "1000", **_SEGMENTS}
_CHECKPOINT: Final = "cleaner-offset-checkpoint"
_MAX_PAUSE_S: Final = 2.0


@TOPIC_FAULTS.add("compaction", begins_first=True)
def compact(arena: Arena) -> Iterator[None]:
    """The topic is compacted, which removes every second number."""
    before = _cleaned(arena)
    with (
        arena.ledger.producer.compacting(),
        topic_configured(arena.cluster, SOURCE, _COMPACTED, arena.await_event),
    ):
        arena.await_event(lambda: _cleaned(arena) != before, "compaction")
        arena.note("the topic is compacted")
        yield


@TOPIC_FAULTS.add("retention", "KAFKA_DATA_LOSS", needs=frozenset({TOLERANCE}), begins_first=True)
def retain_briefly(arena: Arena) -> Iterator[None]:
    """Segments are deleted after a second, also those that some query has not read."""
    producer, before = arena.ledger.producer, _first_segments(arena)
    _tolerate_loss(arena)
    with producer.deleting():
        with topic_configured(arena.cluster, SOURCE, _DELETED, arena.await_event):
            arena.await_event(lambda: _first_segments(arena) != before, "deletion of segments")
            arena.note("segments are deleted")
            yield
        # Each broker deletes by its own segments: from here on, they agree.
        ends = producer.ends()
        arena.cluster.delete_records({(SOURCE, one): end for one, end in ends.items()})
        producer.begin_at(ends)
    arena.note(f"records before {ends} are deleted")


@TOPIC_FAULTS.add(
    "topic created again",
    "KAFKA_DATA_LOSS",
    "KAFKA_TOPIC_RECREATED",
    needs=frozenset({OWN_THREADS}),
    joins_others=False,
)
def recreate(arena: Arena) -> Iterator[None]:
    """The topic is deleted and created again while its ranges are read.

    All numbers were read before. Others are written once all queries have gone over to the empty
    topic: where a query tolerates a loss, it continues at the end that it sees first.
    """
    producer = arena.ledger.producer
    _tolerate_loss(arena)
    with producer.deleting(), producer.paused():
        arena.ledger.await_all(time.monotonic() + arena.event_s, lambda: None)
        arena.cluster.delete_topic(SOURCE)
        arena.note("topic deleted")
        arena.run_for(arena.chance.uniform(0.0, _MAX_PAUSE_S))
        arena.ledger.create_source_again(producer.partitions)
        arena.note("topic created again")
        arena.await_event(
            lambda: all(query.has_gone_over() for query in arena.queries), "new beginning"
        )
        arena.note("all queries are at its beginning")
    yield


def _tolerate_loss(arena: Arena) -> None:
    for query in arena.queries:
        query.tolerates_loss = True


def _cleaned(arena: Arena) -> set[str]:
    """Return up to which offsets brokers have compacted partitions of the topic, as lines."""
    paths = [node.data / _CHECKPOINT for node in arena.cluster._nodes]
    texts = [path.read_text() for path in paths if path.exists()]
    return {line for text in texts for line in text.splitlines() if line.startswith(f"{SOURCE} ")}


def _first_segments(arena: Arena) -> set[Path]:
    logs = [log for node in arena.cluster._nodes for log in node.data.glob(f"{SOURCE}-*")]
    return {min(segments) for log in logs if (segments := list(log.glob("*.log")))}
