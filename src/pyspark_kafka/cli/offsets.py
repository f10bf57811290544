"""``pyspark-kafka offsets``: show, compare, export and change the offsets of a checkpoint."""

from __future__ import annotations

import argparse
import json
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ..domain.checkpoints.storage_path import StoragePath
from ..domain.partition_offsets import PartitionOffsets
from ..domain.reading.offset_limits import (
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
    Specific,
    StartingOffsets,
    parse_offset_limit,
)
from ..domain.text import excerpt
from ..ports.clock import epoch_ms
from .arguments import (
    STORAGE_FILE,
    Commands,
    Connection,
    add_command,
    add_connection,
    add_storage_options,
    content,
    milliseconds,
    public_url,
    storage_options,
)
from .lag import batch_json
from .offsets_view import Offsets, offset_pairs, print_offsets
from .output import ending_with_the_pipe, logs_redirected_to, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..domain.checkpoints.checkpoint_log import CheckpointedBatch

_SUMMARY: Final = "show, compare, export and change the offsets of a query's checkpoint"

_SHOW: Final = """\
Show the last committed and the planned batch of a checkpoint, and their offsets.

The offsets from one to the other are the input of the planned batch. With
exactly-once delivery, 'sink' is the state of the last batch that was written:
a prepared one is visible in part, or about to be.
"""

_DIFF: Final = """\
Compare the offsets of a checkpoint with others: in Kafka (earliest, latest, a
time), of a consumer group, of a file, or of another checkpoint.
"""

_EXPORT: Final = """\
Print the offsets of a checkpoint as JSON for the option 'startingOffsets'.
"""

_REWRITE: Final = """\
Change the offsets at which a stopped query resumes.

The command shows what it will do, and asks. It keeps a backup, which
'pyspark-kafka offsets undo' restores. If it is killed, the query resumes at the
old or at the new offsets.

It refuses while the query may be running: if its last batch began less than a
minute ago, or is planned and not committed.
"""

_UNDO: Final = """\
Undo the last 'pyspark-kafka offsets rewrite' of a checkpoint.

If the query has not run since, its files are restored. Otherwise it resumes at
the offsets before the rewrite.
"""

_TARGET: Final = (
    "earliest, latest, a time such as 2026-01-31T12:00:00Z, group:NAME, checkpoint:URL, or JSON as "
    "for the option 'startingOffsets', or a file of it, which may leave out partitions"
)

_WORDS: Final[Mapping[str, Target]] = {"earliest": Earliest(), "latest": Latest()}
_GROUP: Final = "group:"
_CHECKPOINT: Final = "checkpoint:"

Target: TypeAlias = StartingOffsets | StoragePath
"""Offsets in Kafka, or offsets of another checkpoint."""


def add_offsets(commands: Commands) -> None:
    """Add the command ``offsets`` and its subcommands."""
    all_of_them = commands.add_parser(
        "offsets", help=_SUMMARY, description=f"{_SUMMARY.capitalize()}."
    )
    actions = all_of_them.add_subparsers(required=True, metavar="command")
    show = add_command(actions, "show", "show the offsets", _SHOW, run_show)
    _add_checkpoint(show)
    _add_json(show)
    diff = add_command(actions, "diff", "compare the offsets", _DIFF, run_diff)
    _add_checkpoint(diff)
    diff.add_argument(
        "--with",
        dest="target",
        metavar="OFFSETS",
        type=_target,
        default=Latest(),
        help=f"{_TARGET} (default: latest)",
    )
    _add_kafka(diff)
    _add_json(diff)
    export = add_command(actions, "export", "print the offsets", _EXPORT, run_export)
    _add_checkpoint(export)
    export.add_argument(
        "--source",
        metavar="NAME",
        help="the Kafka source, as 'pyspark-kafka offsets show' names it (default: all)",
    )
    rewrite = add_command(actions, "rewrite", "change the offsets", _REWRITE, _run_rewrite)
    _add_checkpoint(rewrite)
    rewrite.add_argument(
        "--to", dest="target", metavar="OFFSETS", type=_target, required=True, help=_TARGET
    )
    _add_kafka(rewrite)
    _add_change(rewrite)
    undo = add_command(actions, "undo", "undo the last rewrite", _UNDO, _run_undo)
    _add_checkpoint(undo)
    _add_change(undo)


def _add_checkpoint(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        type=public_url(STORAGE_FILE),
        help="the query's checkpointLocation: a directory, or a URL such as s3a://bucket/path",
    )
    add_storage_options(command)


def _add_kafka(command: argparse.ArgumentParser) -> None:
    add_connection(command, is_required=False)


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_change(command: argparse.ArgumentParser) -> None:
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument(
        "--dry-run", action="store_true", help="show the change, and write nothing"
    )
    command.add_argument(
        "--query-is-stopped",
        action="store_true",
        help="do not look for signs that the query runs: you know that it is stopped",
    )
    _add_json(command)


def _target(text: str) -> Target:
    """Parse the offsets that a command names."""
    if word := _WORDS.get(text.lower()):
        return word
    if text.startswith(_GROUP):
        return CommittedOffsets(text.removeprefix(_GROUP))
    if text.startswith(_CHECKPOINT):
        return StoragePath(public_url(STORAGE_FILE)(text.removeprefix(_CHECKPOINT)))
    if text.lstrip().startswith("{"):
        return _specific(text, text)
    with suppress(OSError):  # The name is too long for a file.
        if Path(text).is_file():
            return _specific(text, content(text))
    try:
        return GlobalTimestamp(milliseconds(text), OnNoMatch.LATEST)
    except argparse.ArgumentTypeError:
        problem = f"'{excerpt(text)}' is not a file, and not one of {_TARGET}"
        raise argparse.ArgumentTypeError(problem) from None


def _specific(name: str, json_text: str) -> Specific:
    try:
        found = parse_offset_limit(json_text)
    except ValueError as error:
        problem = f"'{excerpt(name)}' holds no offsets: {error}"
        raise argparse.ArgumentTypeError(problem) from error
    if not isinstance(found, Specific):
        raise argparse.ArgumentTypeError(f"'{excerpt(name)}' holds no offsets as JSON")
    return found


def _run_rewrite(given: argparse.Namespace) -> int:
    require_cluster(given)
    from .offsets_rewrite import run_rewrite

    return run_rewrite(given, checkpoint_of(given), partial(other_offsets, given))


def _run_undo(given: argparse.Namespace) -> int:
    from .offsets_rewrite import run_undo

    return run_undo(given, checkpoint_of(given))


def checkpoint_of(given: argparse.Namespace) -> StoragePath:
    """Return the checkpoint that a command names."""
    return StoragePath(given.checkpoint, storage_options(given))


def run_show(given: argparse.Namespace) -> int:
    """Show the batches of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read.
    """
    from ..bootstrap.tools import checkpoint_state, sink_entry

    checkpoint = checkpoint_of(given)
    state = checkpoint_state(checkpoint)
    state.require_batch(str(checkpoint))
    sink = sink_entry(checkpoint)
    pairs = offset_pairs(_offsets_of(state.committed), _offsets_of(state.in_flight))
    with ending_with_the_pipe():
        if given.json:
            answer = {
                "checkpoint": str(checkpoint),
                "committedBatch": batch_json(state.committed),
                "plannedBatch": batch_json(state.in_flight),
                "sink": sink and {"batchId": sink.batch_id, "state": sink.state.value},
                "partitions": [pair.to_dict("committed", "planned") for pair in pairs],
            }
            print(json.dumps(answer))
            return 0
        head = [("checkpoint", str(checkpoint))]
        head += [
            ("committed", _batch_text(state.committed)),
            ("planned", _batch_text(state.in_flight)),
        ]
        if sink is not None:
            written = f"batch {sink.batch_id} is {sink.state.value}"
            head.append(("sink", f"{written}, {quantity(len(sink.transactions), 'transaction')}"))
        print_offsets(head, pairs, "committed", "planned")
    return 0


def run_export(given: argparse.Namespace) -> int:
    """Print the committed offsets of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read, or two sources read a partition.
    """
    from ..bootstrap.tools import offset_checkpoint_at

    offsets = offset_checkpoint_at(checkpoint_of(given)).read().offsets
    with ending_with_the_pipe():
        print(_single(offsets, given.source).to_json())
    return 0


def run_diff(given: argparse.Namespace) -> int:
    """Compare the committed offsets of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the checkpoint cannot be read, or Kafka does not answer.
    """
    require_cluster(given)
    from ..bootstrap.tools import offset_checkpoint_at

    checkpoint = checkpoint_of(given)
    ours = dict(offset_checkpoint_at(checkpoint).read().offsets)
    others = other_offsets(given, ours)
    pairs = offset_pairs(ours, others)
    with ending_with_the_pipe():
        if given.json:
            listed = [pair.to_dict("offset", "other") for pair in pairs]
            answer = {"checkpoint": str(checkpoint), "partitions": listed}
            print(json.dumps(answer))
        else:
            head = [("checkpoint", str(checkpoint))]
            print_offsets(head, pairs, "offset", "other")
    return 0


def require_cluster(given: argparse.Namespace) -> None:
    """End with an error unless a cluster is named, or the offsets are those of a checkpoint."""
    if given.bootstrap_servers is None and not isinstance(given.target, StoragePath):
        given.error("the following arguments are required: --bootstrap-servers")


def other_offsets(given: argparse.Namespace, ours: Offsets) -> Offsets:
    """Return the offsets that a command names, by source, for the partitions of a checkpoint.

    :raises PysparkKafkaError: if the other checkpoint cannot be read, or Kafka does not answer.
    """
    from ..application.checkpoints.offsets import UnusableOffsetsError
    from ..bootstrap.tools import offset_checkpoint_at, offset_targets_for

    target: Target = given.target
    if isinstance(target, StoragePath):
        other = StoragePath(target.url, storage_options(given))
        return dict(offset_checkpoint_at(other).read().offsets)
    known = PartitionOffsets(pair for offsets in ours.values() for pair in offsets.items())
    if not known:
        raise UnusableOffsetsError(
            "the query has no Kafka source", "Check that it is the checkpoint of the right query"
        )
    topics = {topic: [int(each) for each in found] for topic, found in known.to_dict().items()}
    options = Connection.given(given).source_options(assign=json.dumps(topics))
    with logs_redirected_to(logging.NullHandler()), offset_targets_for(options) as targets:
        found = targets.resolve(target)
    return {source: found.restrict(offsets) for source, offsets in ours.items()}


def _offsets_of(batch: CheckpointedBatch | None) -> Mapping[str, PartitionOffsets]:
    return {} if batch is None else batch.offsets


def _batch_text(batch: CheckpointedBatch | None) -> str:
    from .lag_view import batch_text

    return "none" if batch is None else batch_text(batch, epoch_ms())


def _single(offsets: Mapping[str, PartitionOffsets], source: str | None) -> PartitionOffsets:
    from ..application.checkpoints.offsets import UnusableOffsetsError

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
