"""The command line of ``pyspark-kafka offsets``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ..domain.checkpoints.storage_path import StoragePath
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
from .argument_values import (
    STORAGE_FILE,
    Commands,
    add_client,
    add_command,
    add_connection,
    add_storage_options,
    milliseconds,
    public_url,
    storage_options,
)
from .connection import Connection

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
    "earliest, latest, a time such as 2026-01-31T12:00:00Z, group:NAME, checkpoint:URL, or a file "
    "of JSON as for the option 'startingOffsets', which may leave out partitions"
)

_GROUP: Final = "group:"
_CHECKPOINT: Final = "checkpoint:"

Target = StartingOffsets | StoragePath
"""Offsets in Kafka, or of another checkpoint."""


@final
@dataclass(frozen=True, slots=True)
class ShowOffsetsSettings:
    """The checkpoint whose offsets are shown."""

    checkpoint: StoragePath
    as_json: bool = False


@final
@dataclass(frozen=True, slots=True)
class ExportOffsetsSettings:
    """The checkpoint whose offsets are exported; of all Kafka sources if ``source`` is ``None``."""

    checkpoint: StoragePath
    source: str | None = None


@final
@dataclass(frozen=True, slots=True)
class DiffOffsetsSettings:
    """The checkpoint whose offsets are compared with others."""

    checkpoint: StoragePath
    target: Target
    kafka: Connection | None
    as_json: bool = False


@final
@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """How a change is confirmed and shown."""

    is_confirmed: bool = False
    is_dry: bool = False
    query_is_stopped: bool = False
    as_json: bool = False


@final
@dataclass(frozen=True, slots=True)
class RewriteOffsetsSettings:
    """The checkpoint whose offsets are changed."""

    checkpoint: StoragePath
    target: Target
    kafka: Connection | None
    change: ChangeSettings


@final
@dataclass(frozen=True, slots=True)
class UndoRewriteSettings:
    """The checkpoint whose last rewrite is undone."""

    checkpoint: StoragePath
    change: ChangeSettings


def add_offsets(commands: Commands) -> None:
    """Add the command ``offsets`` and those below it."""
    all_of_them = commands.add_parser(
        "offsets", help=_SUMMARY, description=f"{_SUMMARY.capitalize()}."
    )
    actions = all_of_them.add_subparsers(required=True, metavar="command")
    show = add_command(actions, "show", "show the offsets", _SHOW, _show_settings)
    _add_checkpoint(show)
    _add_json(show)
    diff = add_command(actions, "diff", "compare the offsets", _DIFF, _diff_settings)
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
    export = add_command(actions, "export", "print the offsets", _EXPORT, _export_settings)
    _add_checkpoint(export)
    export.add_argument(
        "--source",
        metavar="NAME",
        help="the Kafka source, as 'pyspark-kafka offsets show' names it (default: all)",
    )
    rewrite = add_command(actions, "rewrite", "change the offsets", _REWRITE, _rewrite_settings)
    _add_checkpoint(rewrite)
    rewrite.add_argument(
        "--to", dest="target", metavar="OFFSETS", type=_target, required=True, help=_TARGET
    )
    _add_kafka(rewrite)
    _add_change(rewrite)
    undo = add_command(actions, "undo", "undo the last rewrite", _UNDO, _undo_settings)
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
    add_client(command)


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


def _show_settings(given: argparse.Namespace) -> ShowOffsetsSettings:
    return ShowOffsetsSettings(_checkpoint(given), given.json)


def _export_settings(given: argparse.Namespace) -> ExportOffsetsSettings:
    return ExportOffsetsSettings(_checkpoint(given), given.source)


def _diff_settings(given: argparse.Namespace) -> DiffOffsetsSettings:
    return DiffOffsetsSettings(_checkpoint(given), _other(given), _kafka(given), given.json)


def _rewrite_settings(given: argparse.Namespace) -> RewriteOffsetsSettings:
    checkpoint = _checkpoint(given)
    return RewriteOffsetsSettings(checkpoint, _other(given), _kafka(given), _change(given))


def _undo_settings(given: argparse.Namespace) -> UndoRewriteSettings:
    return UndoRewriteSettings(_checkpoint(given), _change(given))


def _other(given: argparse.Namespace) -> Target:
    target: Target = given.target
    if isinstance(target, StoragePath):
        return StoragePath(target.url, storage_options(given))
    if given.bootstrap_servers is None:
        given.error("the following arguments are required: --bootstrap-servers")
    return target


def _kafka(given: argparse.Namespace) -> Connection | None:
    return None if given.bootstrap_servers is None else Connection.given(given)


def _change(given: argparse.Namespace) -> ChangeSettings:
    return ChangeSettings(given.yes, given.dry_run, given.query_is_stopped, given.json)


def _checkpoint(given: argparse.Namespace) -> StoragePath:
    return StoragePath(given.checkpoint, storage_options(given))


def _target(text: str) -> Target:
    """Parse the offsets that a command names."""
    if text.lower() == "earliest":
        return Earliest()
    if text.lower() == "latest":
        return Latest()
    if text.startswith(_GROUP):
        return CommittedOffsets(text.removeprefix(_GROUP))
    if text.startswith(_CHECKPOINT):
        return StoragePath(public_url(STORAGE_FILE)(text.removeprefix(_CHECKPOINT)))
    if Path(text).is_file():
        return _file(text)
    try:
        return GlobalTimestamp(milliseconds(text), OnNoMatch.LATEST)
    except argparse.ArgumentTypeError:
        problem = f"'{text}' is neither a file nor one of {_TARGET}"
        raise argparse.ArgumentTypeError(problem) from None


def _file(name: str) -> Specific:
    try:
        found = parse_offset_limit(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"'{name}' holds no offsets: {error}") from error
    if not isinstance(found, Specific):
        raise argparse.ArgumentTypeError(f"'{name}' holds no offsets as JSON")
    return found
