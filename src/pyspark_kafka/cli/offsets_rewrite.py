"""``pyspark-kafka offsets rewrite`` and ``undo``."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..bootstrap.tools import offset_checkpoint_at
from ..domain.errors import NoCheckpointError, OptionsError
from ..domain.json_text import utc_text
from .offsets_view import Offsets, offset_pairs, print_offsets
from .output import ending_with_the_pipe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..domain.checkpoints.offset_rewrite import ResumePoint
    from ..domain.checkpoints.storage_path import StoragePath


def run_rewrite(
    given: argparse.Namespace, path: StoragePath, others: Callable[[Offsets], Offsets]
) -> int:
    """Change the offsets of a checkpoint, and return the exit status.

    ``others`` returns the new offsets of partitions.

    :raises PysparkKafkaError: if the query may be running, the offsets cannot be determined or
        used, or the checkpoint cannot be read or written.
    """
    checkpoint = offset_checkpoint_at(path)
    before = checkpoint.read()
    if not given.query_is_stopped:
        checkpoint.require_stopped(before)
    ours = dict(before.offsets)
    after = before.moved_to(others(ours))
    return _change(
        given,
        path,
        (before, after),
        lambda: checkpoint.change(before, after),
        is_undoable=True,
    )


def run_undo(given: argparse.Namespace, path: StoragePath) -> int:
    """Undo the last rewrite of a checkpoint, and return the exit status.

    :raises PysparkKafkaError: if the query may be running, there is no rewrite to undo, or the
        checkpoint cannot be read or written.
    """
    checkpoint = offset_checkpoint_at(path)
    found = checkpoint.backup()
    if found is None:
        problem = "There is no rewrite to undo. Check that the path is the query's checkpoint"
        raise NoCheckpointError(str(path), problem)
    number, backup = found
    before = checkpoint.read()
    if not given.query_is_stopped:
        checkpoint.require_stopped(before)
    after = checkpoint.point_of_undo(before, backup)
    return _change(
        given,
        path,
        (before, after),
        lambda: checkpoint.undo(before, number, backup),
        # Another backup exists only if the query has run since.
        is_undoable=after != backup.before,
    )


def _change(
    given: argparse.Namespace,
    path: StoragePath,
    points: tuple[ResumePoint, ResumePoint],
    apply: Callable[[], None],
    *,
    is_undoable: bool,
) -> int:
    """Show a change, ask, and carry it out."""
    before, after = points
    if not given.json:
        with ending_with_the_pipe():
            _show(path, before, after)
    is_needed = before.has_unread_batch or after.has_unread_batch or before.offsets != after.offsets
    is_wanted = is_needed and not given.dry_run and _is_confirmed(given)
    if is_wanted:
        apply()
    with ending_with_the_pipe():
        if given.json:
            _print_json(path, before, after, is_done=is_wanted)
        elif is_wanted:
            undo = f" To undo it: pyspark-kafka offsets undo {path}" if is_undoable else ""
            print(f"Done.{undo}")
        else:
            print("Nothing was written.")
    return 0


def _show(path: StoragePath, before: ResumePoint, after: ResumePoint) -> None:
    head = [("checkpoint", str(path)), ("committed", f"batch {before.batch_id:,}")]
    if before.has_unread_batch and not after.has_unread_batch:
        head.append(("planned", f"batch {before.batch_id + 1:,}, which is dropped"))
    if after.has_unread_batch and not before.has_unread_batch:
        head.append(("planned", f"batch {before.batch_id + 1:,}, which is restored"))
    print_offsets(head, offset_pairs(before.offsets, after.offsets), "now", "new")


def _print_json(
    path: StoragePath, before: ResumePoint, after: ResumePoint, *, is_done: bool
) -> None:
    pairs = offset_pairs(before.offsets, after.offsets)
    answer = {
        "time": utc_text(datetime.now(UTC)),
        "checkpoint": str(path),
        "committedBatch": before.batch_id,
        "dropsPlannedBatch": before.has_unread_batch and not after.has_unread_batch,
        "partitions": [pair.to_dict("old", "new") for pair in pairs],
        "written": is_done,
    }
    print(json.dumps(answer))


def _is_confirmed(given: argparse.Namespace) -> bool:
    """Ask on a terminal, unless the command line confirms.

    :raises OptionsError: if there is none.
    """
    if given.yes:
        return True
    if given.json or sys.stdin is None or not sys.stdin.isatty():
        raise OptionsError(["There is no terminal to ask on: confirm the change with --yes"])
    print("Change the offsets? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
