"""``pyspark-kafka offsets show``, ``export`` and ``diff``."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from ..application.checkpoints.logs import no_checkpoint
from ..application.checkpoints.offsets import UnusableOffsetsError
from ..bootstrap.tools import (
    checkpoint_state,
    offset_checkpoint_at,
    offset_targets_for,
    sink_entry,
)
from ..domain.checkpoints.storage_path import StoragePath
from ..domain.partition_offsets import PartitionOffsets
from ..ports.clock import epoch_ms
from .console import quantity
from .lag_json import batch_json
from .offsets_view import offset_pairs, print_offsets
from .process import ending_with_the_pipe, logs_redirected_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..application.checkpoints.logs import CheckpointState
    from ..domain.checkpoints.checkpoint_log import CheckpointedBatch
    from .connection import Connection
    from .offsets_arguments import (
        DiffOffsetsSettings,
        ExportOffsetsSettings,
        ShowOffsetsSettings,
        Target,
    )

Offsets = dict[str, PartitionOffsets]


def run_show(settings: ShowOffsetsSettings) -> int:
    """Show the batches of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read.
    """
    state = _state(settings.checkpoint)
    sink = sink_entry(settings.checkpoint)
    pairs = offset_pairs(_offsets_of(state.committed), _offsets_of(state.in_flight))
    with ending_with_the_pipe():
        if settings.as_json:
            answer = {
                "checkpoint": str(settings.checkpoint),
                "committedBatch": batch_json(state.committed),
                "plannedBatch": batch_json(state.in_flight),
                "sink": sink and {"batchId": sink.batch_id, "state": sink.state.value},
                "partitions": [pair.to_dict("committed", "planned") for pair in pairs],
            }
            print(json.dumps(answer))
            return 0
        head = [("checkpoint", str(settings.checkpoint))]
        head += [
            ("committed", _batch_text(state.committed)),
            ("planned", _batch_text(state.in_flight)),
        ]
        if sink is not None:
            written = f"batch {sink.batch_id} is {sink.state.value}"
            head.append(("sink", f"{written}, {quantity(len(sink.transactions), 'transaction')}"))
        print_offsets(head, pairs, "committed", "planned")
    return 0


def run_export(settings: ExportOffsetsSettings) -> int:
    """Print the committed offsets of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read, or two sources read a partition.
    """
    offsets = offset_checkpoint_at(settings.checkpoint).read().offsets
    with ending_with_the_pipe():
        print(_single(offsets, settings.source).to_json())
    return 0


def run_diff(settings: DiffOffsetsSettings) -> int:
    """Compare the committed offsets of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read, or Kafka does not answer.
    """
    ours = dict(offset_checkpoint_at(settings.checkpoint).read().offsets)
    others = other_offsets(settings.target, settings.kafka, ours)
    pairs = offset_pairs(ours, others)
    with ending_with_the_pipe():
        if settings.as_json:
            listed = [pair.to_dict("offset", "other") for pair in pairs]
            answer = {"checkpoint": str(settings.checkpoint), "partitions": listed}
            print(json.dumps(answer))
        else:
            head = [("checkpoint", str(settings.checkpoint))]
            print_offsets(head, pairs, "offset", "other")
    return 0


def other_offsets(target: Target, kafka: Connection | None, ours: Offsets) -> Offsets:
    """Return the offsets that a command names, by source, for the partitions of a checkpoint.

    :raises PysparkKafkaError: if the other checkpoint cannot be read, or Kafka does not answer.
    :raises ValueError: if the offsets are in Kafka, and no cluster is named.
    """
    if isinstance(target, StoragePath):
        return dict(offset_checkpoint_at(target).read().offsets)
    if kafka is None:
        raise ValueError("offsets of Kafka need a cluster")
    known = PartitionOffsets(pair for offsets in ours.values() for pair in offsets.items())
    if not known:
        raise UnusableOffsetsError(
            "the query has no Kafka source", "Check that it is the checkpoint of the right query"
        )
    topics = {topic: [int(each) for each in found] for topic, found in known.to_dict().items()}
    options = kafka.source_options(assign=json.dumps(topics))
    with logs_redirected_to(logging.NullHandler()), offset_targets_for(options) as targets:
        found = targets.resolve(target)
    return {source: found.restrict(offsets) for source, offsets in ours.items()}


def _state(checkpoint: StoragePath) -> CheckpointState:
    state = checkpoint_state(checkpoint)
    if state.is_empty:
        raise no_checkpoint(str(checkpoint))
    return state


def _offsets_of(batch: CheckpointedBatch | None) -> Mapping[str, PartitionOffsets]:
    return {} if batch is None else batch.offsets


def _batch_text(batch: CheckpointedBatch | None) -> str:
    from .lag_view import batch_text

    return "none" if batch is None else batch_text(batch, epoch_ms())


def _single(offsets: Mapping[str, PartitionOffsets], source: str | None) -> PartitionOffsets:
    chosen = (
        offsets if source is None else {name: offsets[name] for name in offsets if name == source}
    )
    merged = PartitionOffsets(pair for found in chosen.values() for pair in found.items())
    if not merged:
        raise UnusableOffsetsError(
            "the checkpoint has no such Kafka source",
            f"Its Kafka sources are: {', '.join(offsets) or 'none'}",
        )
    if len(merged) < sum(map(len, chosen.values())):
        raise UnusableOffsetsError(
            "several sources of the query read the same partitions",
            f"Name one of them with --source: {', '.join(offsets)}",
        )
    return merged
