"""Checks each answer of one driver's reader by the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark_kafka.domain.checkpoints.entries import read_initial_offsets
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.available_now import AvailableNowError
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.outcome import ViolationError
from . import losses, model
from .checkpoint import Checkpoint, Json, parsed
from .faults import Version
from .losses import Loss, losses_of
from .query import EARLIEST

if TYPE_CHECKING:
    from .kafka import Log, View
    from .query import Offsets, Query
    from .tasks import Row
    from .use_cases import SimulatedUseCases
    from .world import World

REFUSALS: Final = (
    "StreamOffsetsMismatchError",
    "TimestampsMismatchError",
    "NoOffsetForTimestampError",
    "NoCommittedOffsetError",
)
_INJECTED: Final = ("BrokerUnreachableError", "KafkaRequestError", "StorageError")


class Plan:
    """Checks a driver, exactly if nothing happened to the topics during a call."""

    def __init__(
        self, world: World, query: Query, checkpoint: Checkpoint, use_cases: SimulatedUseCases
    ) -> None:
        self.stops_at_first_latest = False
        self._world = world
        self._query = query
        self._checkpoint = checkpoint
        self._use_cases = use_cases
        self._prefetched: dict[TopicPartition, int] | None = None
        self._is_prefetched = False
        self._last_ms: int | None = None
        self._is_delay_known = True
        self._refusal: str | None = None
        self._at_end: frozenset[TopicPartition] | None = None
        self._own_end: Json | None = None
        """The last end that this driver returned."""
        self._planned: tuple[Offsets, list[Loss]] = ({}, [])
        self._rows: dict[int, list[bytes]] = {}

    # --- initial offsets ---

    @contextmanager
    def initial(self) -> Iterator[Callable[[Json], None]]:
        stored, found = self._stored(), self._events.found
        with self._watch(REFUSALS if stored is None else ()) as (view, answers, is_exact):
            yield answers.append
        [content] = answers
        if stored is not None or found is not None:
            known = dict(stored or found or {})
            self._require("initial offsets", parsed(content), known)
        elif is_exact():
            self._check_initial(view, parsed(content))

    def _check_initial(self, view: View, content: Offsets) -> None:
        try:
            start = self._model_start(view)
        except model.RefusedError as refused:
            self._refusal = refused.name
            self._require("initial offsets", content, {})
        else:
            self._refusal = None
            self._at_end = start.at_end
            self._require("initial offsets", content, start.offsets)

    def _model_start(self, view: View) -> model.Start:
        start = model.initial(self._query, self._world.kafka, view)
        return start._replace(offsets=self._reset(start.offsets, view))

    def _reset(self, start: Offsets, view: View) -> dict[TopicPartition, int]:
        """Return a start whose given offsets are those of the log: the V1 source's."""
        given = dict(self._query.start.each)
        is_own = self._world.settings.version is Version.OWN_ENGINE
        is_reset = is_own and self._query.start.every is None and not self._query.start.is_time
        return {
            part: view[part].start
            if is_reset and given.get(part, -1) >= 0 and not self._is_held(offset, view[part])
            else offset
            for part, offset in start.items()
        }

    def _is_held(self, offset: int, log: Log) -> bool:
        return log.start <= offset and (offset <= log.end or self._query.committed_only)

    # --- the end of a batch ---

    @contextmanager
    def latest(self, start: Json | None, *, is_all: bool) -> Iterator[Callable[[Json], None]]:
        had_found, stored = self._events.found, self._stored()
        with self._watch(self._latest_errors(start, stored)) as (view, answers, is_exact):
            yield answers.append
        [content] = answers
        begin = parsed(start) if start is not None else None
        found, is_certain = self._events.found, is_exact()
        if is_certain and had_found is None and stored is None and found is not None:
            self._check_initial(view, found)
        if begin is None:
            begin = dict(stored or found or {})
            # Another driver's initial offsets may come to be stored during the call.
            is_certain = is_certain and (found is not None or stored == self._stored())
        self._check_end(begin, parsed(content), view, is_all=is_all, is_exact=is_certain)
        self._own_end = content or None

    def _latest_errors(self, start: Json | None, stored: Offsets | None) -> Sequence[str]:
        """Return the errors of options that do not match: only a new query may have them."""
        return REFUSALS if not start and stored is None else ()

    def _check_end(
        self, begin: Offsets, end: Offsets, view: View, *, is_all: bool, is_exact: bool
    ) -> None:
        if not is_exact:
            self._check_end_roughly(begin, end, view)
            self._is_delay_known = self._query.number("minOffsetsPerTrigger") is None
            if self.stops_at_first_latest and not self._is_prefetched:
                self._is_prefetched = True
            return
        try:
            expected = self._end(begin, view, is_all=is_all)
        except model.RefusedError as refused:
            raise ViolationError("no error", f"{refused.name} is missing") from None
        if expected is not None and self._query["maxBytesPerTrigger"] is not None and not is_all:
            self._check_cut(begin, end, expected, view)
        elif expected is not None:
            self._require("end of a batch", end, expected)

    def _check_cut(self, begin: Offsets, end: Offsets, whole: Offsets, view: View) -> None:
        """Check a batch that ends sooner than ``whole``, since its records are large."""
        start = {part: begin.get(part, view[part].start) for part in whole if part in view}
        self._require("partitions at the end of a batch", sorted(end), sorted(whole))
        for part, at in start.items():
            if not min(at, whole[part]) <= end[part] <= whole[part]:
                raise ViolationError("a batch ends elsewhere", f"{part}: {end[part]}, from {at}")
        if end == start and any(whole[part] > at for part, at in start.items()):
            raise ViolationError("a batch without progress", _text(dict(end)))

    def _check_end_roughly(self, begin: Offsets, end: Offsets, before: View) -> None:
        """Check what holds even if records and partitions were added meanwhile."""
        after, ids = self._view(), self._checkpoint.ids
        for part, log in after.items():
            is_same = part in before and before[part].topic_id == log.topic_id
            if not is_same or ids.get(part) != log.topic_id or part not in begin:
                continue
            if part not in end and not self._world.oracle.was_replaced(part):
                raise ViolationError("a partition is forgotten", str(part))
            if begin[part] <= before[part].end and end.get(part, begin[part]) < begin[part]:
                raise ViolationError("a batch ends before it starts", f"{part}: {end[part]}")

    def _end(self, begin: Offsets, view: View, *, is_all: bool) -> Offsets | None:
        """Return the end of the next batch, or ``None`` if it cannot be known."""
        query = self._query
        if self.stops_at_first_latest and self._is_prefetched:
            latest = self._prefetched
        else:
            latest = {part: view[part].end for part in model.subscribed(query, view)}
            self._prefetched, self._is_prefetched = latest, True
        if latest is None or not self._is_delay_known:
            return None
        return self._first(begin, self._limited(begin, latest, view, is_all=is_all), view)

    def _limited(
        self, begin: Offsets, latest: Offsets, view: View, *, is_all: bool
    ) -> Offsets | None:
        query = self._query
        if not latest:
            return begin
        if is_all:
            return latest
        now_ms = self._use_cases.clock.read_ms
        waited_ms = 10**9 if self._last_ms is None else now_ms - self._last_ms
        if model.is_delayed(query, waited_ms, begin, latest):
            return begin
        self._last_ms = now_ms
        limit = query.number("maxOffsetsPerTrigger")
        if limit is None:
            return latest
        added = {part: view[part].start for part in latest.keys() - begin.keys() if part in view}
        return model.limited(limit, {**begin, **added}, latest)

    def _first(self, begin: Offsets, end: Offsets | None, view: View) -> Offsets | None:
        """Return the end of the batch, if it is the first one and its start is not kept."""
        found = self._events.found
        is_first = self._own_end is None and found is not None and dict(found) == dict(begin)
        if end is None or not is_first or self._query.keeps_start:
            return end
        if self._at_end is None:
            return None
        kept = {
            part: begin[part] if part in self._at_end else offset
            for part, offset in end.items()
            if part in begin
        }
        return kept or {part: view[part].start for part in end}

    # --- the tasks of a batch ---

    @contextmanager
    def tasks(
        self, batch_id: int, start: Json, end: Json
    ) -> Iterator[Callable[[Sequence[OffsetRange]], None]]:
        reported = len(self._events.losses)
        until, is_again = parsed(end), end != self._own_end and batch_id == 0
        try:
            with self._watch(()) as (view, answers, is_exact):
                yield answers.append
        except DataLossError as error:
            if is_exact():
                self._check_planning(
                    self._begin(parsed(start), until, view, is_again=is_again),
                    until,
                    view,
                    losses_of(error),
                    is_error=True,
                )
            raise
        except AvailableNowError:
            if is_exact() and self._prefetched == {
                part: log.end for part, log in view.items() if part in until
            }:
                raise ViolationError("an error", "nothing has changed since the start") from None
            raise
        [ranges] = answers
        begin = self._begin(parsed(start), until, view, is_again=is_again)
        found = self._events.losses[reported:]
        if is_exact():
            self._check_planning(begin, until, view, found, is_error=False)
            self._check_ranges(begin, until, view, ranges)
        self._planned = (until, found)

    def _begin(self, start: Offsets, end: Offsets, view: View, *, is_again: bool) -> Offsets | None:
        """Return where a batch starts, or ``None`` if it cannot be known."""
        if not is_again:
            return start
        if self._query.keeps_start:
            # A start that was stored for an older topic may be within the new one.
            was_replaced = self._world.oracle.was_replaced
            held = {part for part, log in view.items() if start.get(part, 0) <= log.end}
            return None if any(map(was_replaced, end.keys() & held)) else start
        is_time, replaced = self._query.start.is_time, self._world.oracle.was_replaced
        if is_time and any(map(replaced, end)):
            return None
        if not end.keys() <= view.keys() or not self._names(end):
            return None
        found = {
            part: model.start_again(self._query, self._world.kafka, part, view[part], until)
            for part, until in end.items()
        }
        known = self._events.found or {}
        found |= {part: known[part] for part in found if self._was_found_before(part, known, view)}
        return found if self._is_refused(view) else self._reset(found, view)

    def _was_found_before(self, part: TopicPartition, known: Offsets, view: View) -> bool:
        """Return whether a driver looked for a start before records or the topic were deleted."""
        start = self._query.start
        if part not in known:
            return False
        is_earliest = dict(start.each).get(part, start.every) == EARLIEST
        if (start.is_time or is_earliest) and known[part] < view[part].start:
            return True
        return is_earliest and self._world.oracle.was_replaced(part)

    def _is_refused(self, view: View) -> bool:
        try:
            model.initial(self._query, self._world.kafka, view)
        except model.RefusedError:
            return True
        return False

    def _names(self, end: Offsets) -> bool:
        start = self._query.start
        return start.every is not None or end.keys() <= dict(start.each).keys()

    def _check_planning(
        self,
        begin: Offsets | None,
        end: Offsets,
        view: View,
        reported: Sequence[Loss],
        *,
        is_error: bool,
    ) -> None:
        if begin is None or any(loss.condition == losses.UNKNOWN_START for loss in reported):
            return
        expected = model.planning_losses(begin, end, view)
        found = {(loss.condition, loss.partition) for loss in reported}
        if is_error and not found <= expected:
            raise ViolationError("a false report of a loss", f"{found} instead of {expected}")
        if not is_error and found != expected:
            raise ViolationError("losses in planning", f"{_text(found)} not {_text(expected)}")
        if not is_error and expected and self._query.fails_on_data_loss:
            raise ViolationError("a loss is no error", _text(expected))

    def _check_ranges(
        self, begin: Offsets | None, end: Offsets, view: View, ranges: Sequence[OffsetRange]
    ) -> None:
        """Check that the tasks have all offsets of the batch, each once, and none too many."""
        planned: dict[TopicPartition, list[tuple[int, int]]] = {}
        for one in ranges:
            planned.setdefault(one.partition, []).append((one.from_offset, one.until_offset))
        largest = self._query.number("maxRecordsPerPartition") or math.inf
        for part, until in end.items():
            parts = sorted(planned.pop(part, []))
            if any(size - at > largest for at, size in parts):
                raise ViolationError("a task reads too much", f"{part}: {parts}")
            if begin is None:
                continue
            at = begin[part] if part in begin else view[part].start if part in view else until
            for first, last in parts:
                self._require(f"start of a task's range of {part}", first, at)
                at = last
            self._require(f"end of the last range of {part}", at, max(at, until))
        if planned:
            raise ViolationError("tasks read what is not in the batch", str(planned))

    # --- rows, and the logs ---

    @contextmanager
    def rows(self, batch_id: int) -> Iterator[Callable[[Sequence[Row]], None]]:
        end, found = self._planned
        ids = {part: self._world.kafka.topic_id(part) for part in end}
        answers: list[Sequence[Row]] = []
        try:
            with self._watch(("UnknownTopicError", "TaskDiedError")):
                yield answers.append
        except DataLossError as error:
            self._world.oracle.check_loss(losses_of(error), failed=self._query)
            raise
        first = self._world.oracle.first or {}
        start = self._checkpoint.end(batch_id - 1) if batch_id else first
        [rows] = answers
        self._world.tell("rows", f"of batch {batch_id}", len(rows))
        self._world.oracle.check_rows(
            rows,
            start or {},
            end,
            ids,
            [*found, *self._events.losses],
            may_skip_deleted=batch_id == 0 and not self._query.keeps_start,
        )
        self._rows[batch_id] = [row.value for row in rows]

    def log_offsets(self, batch_id: int, end: Json) -> bool:
        """Log the end of a batch, unless another driver has done so."""
        if batch_id in self._checkpoint.offsets:
            return False
        self._checkpoint.offsets[batch_id] = end
        self._checkpoint.ids = {part: log.topic_id for part, log in self._view().items()}
        if batch_id == 0:
            stored = self._stored()
            self._world.oracle.first = dict(stored or self._events.found or {})
            self._world.oracle.first_bound = self._query.start
        return True

    def log_commit(self, batch_id: int) -> bool:
        if batch_id in self._checkpoint.commits:
            return False
        self._checkpoint.commits.add(batch_id)
        self._world.oracle.committed(self._rows.get(batch_id, ()))
        return True

    def is_done(self) -> bool:
        """Return whether the query has read all that there is."""
        view = self._view()
        end = self._checkpoint.end(self._checkpoint.committed) or {}
        latest = {part: view[part].end for part in model.subscribed(self._query, view)}
        return not latest or end == latest

    # --- parts ---

    @property
    def _events(self) -> Any:
        return self._use_cases.events

    def _view(self) -> View:
        return self._world.kafka.view(committed_only=self._query.committed_only)

    def _stored(self) -> PartitionOffsets | None:
        content = self._checkpoint.metadata.get(0) if self._query.keeps_start else None
        return None if content is None else read_initial_offsets(content)

    @contextmanager
    def _watch(
        self, allowed: Sequence[str]
    ) -> Iterator[tuple[View, list[Any], Callable[[], bool]]]:
        """Yield the topics before a call, a list for its answer, and whether they are the same."""
        world, calls = self._world, self._use_cases.calls
        before, injected, view = world.changes, calls.injected, self._view()
        stale = world.stale

        def is_exact() -> bool:
            return world.changes == before

        try:
            yield view, [], is_exact
        except (DataLossError, AvailableNowError) as error:
            if isinstance(error, DataLossError):
                world.oracle.check_loss(losses_of(error), failed=self._query)
            raise
        except PysparkKafkaError as error:
            name = type(error).__name__
            if name in allowed or (name in _INJECTED and calls.injected > injected):
                raise
            # Together, refusals and answers of brokers that lag may use up all attempts.
            is_late = world.stale > stale and calls.injected > injected
            if name == "UnknownTopicError" and (is_late or self._is_topic_missing(view, before)):
                raise
            raise ViolationError("an error without a cause", f"{name}: {error}") from error

    def _is_topic_missing(self, before: View, changes: tuple[int, int]) -> bool:
        is_gone = False
        for view in (before, self._view()):
            try:
                model.subscribed(self._query, view)
            except model.RefusedError:
                is_gone = True
        return is_gone or (self._world.changes != changes and bool(self._world.kafka.deleted))

    def _require(self, name: str, found: object, expected: object) -> None:
        if found != expected:
            raise ViolationError(f"a wrong {name}", f"{_text(found)} instead of {_text(expected)}")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{part}: {offset}" for part, offset in sorted(value.items())) or "none"
    if isinstance(value, set):
        return ", ".join(" ".join(map(str, each)) for each in sorted(value)) or "none"
    return str(value)
