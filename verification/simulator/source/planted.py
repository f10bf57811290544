"""Faults that are planted in the product, and that the simulator has to find."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark_kafka.adapters.spark.batch_reader import KafkaBatchReader
from pyspark_kafka.adapters.spark.stream_reader import MicroBatchReader, OlderStreamReader
from pyspark_kafka.application.reading import offsets, stream
from pyspark_kafka.application.reading.batch_binding import BatchBinding
from pyspark_kafka.application.reading.first_batch import FirstBatch
from pyspark_kafka.application.reading.offsets import InitialOffsets
from pyspark_kafka.application.reading.planner import KafkaBatch, RangePlanner
from pyspark_kafka.application.reading.range_read import RangeRead
from pyspark_kafka.application.reading.stream import KafkaMicroBatchStream, ProgressReports
from pyspark_kafka.domain.partition_offsets import LATEST, PartitionOffsets
from pyspark_kafka.domain.reading import admission, ranges
from pyspark_kafka.domain.reading.admission import TriggerDelay
from pyspark_kafka.domain.reading.batch_tasks import BatchTask
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..engine.simulator import Change

_REAL: Final[Mapping[str, Any]] = {
    "partitions": KafkaBatchReader.partitions,
    "start_of_added": RangePlanner.start_of_added,
    "decide": TriggerDelay.decide,
    "latest_offset": KafkaMicroBatchStream.latest_offset,
    "split": ranges._split,
    "done": ProgressReports.done,
}


def _nothing(*_: object) -> None:
    """Do nothing."""


def _push_filters(self: Any, filters: Any) -> Any:
    self._only = {each.value for each in filters}
    return ()


def _filtered_partitions(self: Any) -> Any:
    only: Any = getattr(self, "_only", None)
    planned = _REAL["partitions"](self)
    for each in () if only is None else planned:
        task = each.value
        parts = tuple(part for part in task.parts if part.partition.partition in only)
        each.value = BatchTask(parts)
    return planned


def _latest_of_added(self: Any, start: Any, current: Any) -> Any:
    added = _REAL["start_of_added"](self, start, current)
    return self._offset_reader.resolve_open(PartitionOffsets(dict.fromkeys(added, LATEST)))


def _ranges_without_check(_: Any, begin: Any, end: Any) -> Any:
    for part, until in end.items():
        if begin.get(part, until) < until:
            yield OffsetRange(part, begin[part], until)


def _equal_shares(limit: int, begin: Any, until: PartitionOffsets) -> PartitionOffsets:
    share = math.ceil(limit / max(1, len(until)))
    return until.merge({part: min(until[part], at + share) for part, at in begin.items()})


def _never_wait_long_enough(
    self: Any, now_ms: int, min_rows: int, _: int, latest: Any, current: Any
) -> Any:
    return _REAL["decide"](self, now_ms, min_rows, 1 << 60, latest, current)


def _commit_too_early(self: Any, start: Any, limit: Any) -> Any:
    end = _REAL["latest_offset"](self, start, limit)
    self._progress.done(end, None)
    return end


def _skip_in_silence(_: Any, rest: Any, __: int, ___: int, ____: Exception) -> Any:
    return rest.starting_at(rest.until_offset)


def _find_each_time(self: Any) -> Any:
    stored = self._read()
    self._offsets = self._store(self._find()) if stored is None else stored
    return self._offsets


def _split_without_the_last(offset_range: Any, parts: int) -> Any:
    found = _REAL["split"](offset_range, parts)
    return found[:-1] if len(found) > 2 else found


def _commit_initial_offsets(self: Any, end: Any, latest: Any, **_: bool) -> None:
    _REAL["done"](self, end, latest)


_reported: Final[Callable[[Any, Any], None]] = lambda self, loss: self._events.data_lost(loss)  # noqa: E731

PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "a first batch that runs again starts where the options lead now": (
        Change(FirstBatch, "start_as_of", lambda _, start, __: start),
        Change(FirstBatch, "end", lambda _, __, end: end),
    ),
    "a first batch at the end may end before it starts": (
        Change(FirstBatch, "_starts_at_end", lambda *_: False),
    ),
    "pushed filters of the last use apply to every use": (
        Change(KafkaBatchReader, "pushFilters", _push_filters),
        Change(KafkaBatchReader, "partitions", _filtered_partitions),
    ),
    "a kept plan has the bounds of its first use": (
        Change(
            KafkaBatch, "plan_tasks", lambda self: [(one,) for one in self.plan_input_partitions()]
        ),
        Change(BatchBinding, "bind", lambda _, task: task),
    ),
    "a kept plan has the partitions of its first use": (
        Change(BatchBinding, "_added", lambda *_: ()),
    ),
    "new partitions start at their end": (
        Change(RangePlanner, "start_of_added", _latest_of_added),
    ),
    "a share of a limit is rounded to nothing": (Change(admission, "_whole_offsets", math.floor),),
    "shares of a limit do not depend on the backlog": (
        Change(stream, "rate_limit", _equal_shares),
    ),
    "offsets are not compared with a log that is shorter": (
        Change(RangePlanner, "_ranges", _ranges_without_check),
    ),
    "an answer of a broker that lags is believed": (
        Change(offsets, "_inconsistency", lambda *_: ""),
    ),
    "a group whose offset was never reached has moved": (
        Change(FirstBatch, "_is_in_log", property(lambda _: True)),
    ),
    "a batch of large records does not advance": (
        Change(stream, "rate_limit_bytes", lambda _, begin, *__: PartitionOffsets(begin)),
    ),
    "partitions that are gone are forgotten": (Change(RangePlanner, "report_deleted", _nothing),),
    "losses in planning are never errors": (Change(RangePlanner, "report", _reported),),
    "deleted records are skipped in silence": (Change(RangeRead, "_after_loss", _skip_in_silence),),
    "the end of available now is taken anew for each batch": (
        Change(
            KafkaMicroBatchStream,
            "_fetch_latest",
            lambda self, start: self._offset_reader.latest(start),
        ),
    ),
    "a batch waits for enough records for ever": (
        Change(TriggerDelay, "decide", _never_wait_long_enough),
    ),
    "initial offsets are determined at each question": (
        Change(InitialOffsets, "get", _find_each_time),
    ),
    "stored initial offsets are not read": (Change(InitialOffsets, "_read", _nothing),),
    "a group gets offsets of batches that have not run": (
        Change(KafkaMicroBatchStream, "latest_offset", _commit_too_early),
    ),
    "a group gets initial offsets": (Change(ProgressReports, "done", _commit_initial_offsets),),
    "the last part of a split range is lost": (Change(ranges, "_split", _split_without_the_last),),
    "a reader of Spark 4.0 does not remember where the query continues": (
        Change(OlderStreamReader, "partitions", MicroBatchReader.partitions),
    ),
}


FOUND_BY: Final[Mapping[str, int]] = {
    "a first batch that runs again starts where the options lead now": 57,
    "a first batch at the end may end before it starts": 251,
    "pushed filters of the last use apply to every use": 23,
    "a kept plan has the bounds of its first use": 7,
    "a kept plan has the partitions of its first use": 1200,
    "new partitions start at their end": 1,
    "a share of a limit is rounded to nothing": 16,
    "shares of a limit do not depend on the backlog": 16,
    "offsets are not compared with a log that is shorter": 29,
    "an answer of a broker that lags is believed": 12,
    "a group whose offset was never reached has moved": 410,
    "a batch of large records does not advance": 4,
    "partitions that are gone are forgotten": 201,
    "losses in planning are never errors": 36,
    "deleted records are skipped in silence": 12,
    "the end of available now is taken anew for each batch": 211,
    "a batch waits for enough records for ever": 70,
    "initial offsets are determined at each question": 12,
    "stored initial offsets are not read": 1,
    "a group gets offsets of batches that have not run": 1,
    "a group gets initial offsets": 251,
    "the last part of a split range is lost": 6,
    "a reader of Spark 4.0 does not remember where the query continues": 20,
}
"""The seeds of schedules that find them."""
