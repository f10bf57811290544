"""The offsets of a subscription in Kafka, and those at which a stream starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, final

from ...domain.checkpoints.entries import (
    BATCH_ID,
    read_initial_offsets,
    write_initial_offsets,
)
from ...domain.errors import KafkaRequestError, UnknownTopicError
from ...domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from ...domain.reading.errors import (
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)
from ...domain.reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnMissingCommit,
    OnNoMatch,
    Specific,
)
from ..checkpoints.logs import parsing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.reading.offset_limits import StartingOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.checkpoints import MetadataLog
    from ...ports.clock import Clock
    from ...ports.reading import OffsetFetcher, SourceEvents

T = TypeVar("T")
M = TypeVar("M", bound="Mapping[TopicPartition, int | None]")


@final
class PartitionCache:
    """Caches partitions for ``ttl_ms`` milliseconds; a negative time disables it (SPARK-49442)."""

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._cached: frozenset[TopicPartition] | None = None
        self._since_ms = 0

    def get(self, fetch: Callable[[], frozenset[TopicPartition]]) -> frozenset[TopicPartition]:
        """Return the cached partitions, or else fetch them."""
        now_ms = self._clock.now_ms()
        if self._cached is None or now_ms - self._since_ms >= self._ttl_ms:
            self._cached, self._since_ms = fetch(), now_ms
        return self._cached

    def clear(self) -> None:
        """Clear the cache."""
        self._cached = None


@final
class KafkaOffsetReader:
    """Fetches partitions and offsets of one subscription, with the retries of the options.

    A request that a broker refuses is sent ``fetchOffset.numRetries`` times in all, every
    ``fetchOffset.retryIntervalMs``. An unreachable broker is not retried: the client has retried
    until its own timeout.
    """

    def __init__(
        self, fetcher: OffsetFetcher, options: SourceOptions, clock: Clock, events: SourceEvents
    ) -> None:
        self._fetcher = fetcher
        self._subscription = options.subscription
        self._bootstrap_servers = options.bootstrap_servers
        self._start = options.starting_offsets
        self._attempts = options.fetch_attempts
        self._interval_ms = options.fetch_retry_interval_ms
        self._clock = clock
        self._events = events
        self._cache = PartitionCache(options.metadata_ttl_ms, clock)

    def __str__(self) -> str:
        return str(self._subscription)

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the current partitions of the subscription."""
        return self._retrying(self._partitions)

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return the earliest offset of each of ``partitions`` that exists."""
        if not partitions:
            return PartitionOffsets()
        return self._retrying(lambda: self._fetcher.earliest(partitions))

    def latest(self, known: PartitionOffsets) -> PartitionOffsets:
        """Return the latest offset of every partition of the subscription.

        A response that lacks a partition of ``known``, or has a lower offset for it, may come from
        a broker that lags: the request is retried, and the response to the last attempt counts.
        """
        return self._not_behind(known, self._fetch_latest)

    def latest_of(self, known: PartitionOffsets) -> PartitionOffsets:
        """Return the latest offsets of the partitions of ``known``, asked for again as ``latest``.

        :raises UnknownTopicError: if a partition does not exist.
        """
        return self._not_behind(
            known, lambda: self._all_of(self._fetcher.latest(known.keys()), known.keys())
        )

    def resolve_open(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Replace -2 and -1 by the earliest and the latest offset.

        :raises UnknownTopicError: if a partition does not exist.
        """
        earliest = [partition for partition, offset in offsets.items() if offset == EARLIEST]
        latest = [partition for partition, offset in offsets.items() if offset == LATEST]
        if earliest:
            found = self._fetch_all(lambda: self._fetcher.earliest(earliest), earliest)
            offsets = offsets.merge(found)
        if latest:
            offsets = offsets.merge(self._fetch_all(lambda: self._fetcher.latest(latest), latest))
        return offsets

    def start_of_stream(self) -> StreamStart:
        """Return where a stream starts.

        :raises StreamOffsetsMismatchError: if ``startingOffsets`` names other partitions; otherwise
            as ``unresolved``.
        """
        partitions = self.partitions()
        check_names(self._start, partitions, "start", StreamOffsetsMismatchError)
        offsets = self._of(self._start, partitions)
        at_end = frozenset(each for each, offset in offsets.items() if offset == LATEST)
        at_start = frozenset(each for each, offset in offsets.items() if offset == EARLIEST)
        return StreamStart(self.resolve_open(offsets), at_end, at_start)

    def start_of(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return where a stream starts in those of ``partitions`` that the options still cover.

        Partitions that do not exist are left out, unless their offset is given.
        """
        match self._start:
            case Specific():
                return self._existing(self._start.of(partitions))
            case GlobalTimestamp(timestamp):
                return self._matching(dict.fromkeys(partitions, timestamp))
            case ByTimestamp(timestamps):
                return self._matching({one: time for one, time in timestamps if one in partitions})
            case CommittedOffsets(group_id):
                return self._retrying(lambda: self._fetcher.committed(group_id, partitions))
            case _:
                return self.start_of_stream().offsets

    def _existing(self, offsets: PartitionOffsets) -> PartitionOffsets:
        open_ends = {one: offset for one, offset in offsets.items() if offset < 0}
        at_end = [one for one, offset in open_ends.items() if offset == LATEST]
        found = self.earliest(open_ends.keys() - set(at_end))
        if at_end:
            found = found.merge(self._retrying(lambda: self._fetcher.latest(at_end)))
        return offsets.restrict(offsets.keys() - open_ends.keys()).merge(found)

    def unresolved(
        self,
        limit: StartingOffsets,
        position: str,
        mismatch: type[OffsetsMismatchError] = OffsetsMismatchError,
    ) -> PartitionOffsets:
        """Return the offsets of a limit; -2 and -1 stay as they are.

        ``position`` is ``start`` or ``end``, for messages.

        :raises OffsetsMismatchError: as ``check_names``.
        :raises NoOffsetForTimestampError: as ``offsets_of``.
        :raises NoCommittedOffsetError: as ``offsets_of``.
        """
        partitions = self.partitions()
        check_names(limit, partitions, position, mismatch)
        return self.offsets_of(limit, partitions)

    def offsets_of(
        self, limit: StartingOffsets, partitions: Collection[TopicPartition]
    ) -> PartitionOffsets:
        """Return the offsets of a limit for some of its partitions; -2 and -1 stay as they are.

        :raises NoOffsetForTimestampError: if a partition has no matching record, and that is an
            error by the options.
        :raises NoCommittedOffsetError: if a partition has no committed offset, and that is an error
            by the options.
        :raises UnknownTopicError: if a partition whose time is looked up does not exist.
        """
        offsets = self._of(limit, partitions)
        # Tasks must not bind the end of a timestamp later: there may be records after it.
        is_bound = isinstance(limit, GlobalTimestamp | ByTimestamp)
        return self.resolve_open(offsets) if is_bound else offsets

    def _of(
        self, limit: StartingOffsets, partitions: Collection[TopicPartition]
    ) -> PartitionOffsets:
        offsets = self.covered(limit, partitions)
        _require_covered(limit, set(partitions) - offsets.keys())
        return offsets

    def covered(
        self, limit: StartingOffsets, partitions: Collection[TopicPartition]
    ) -> PartitionOffsets:
        """Return the offsets of a limit for those of ``partitions`` that have one.

        -2 and -1 stay as they are.

        :raises UnknownTopicError: as ``offsets_of``.
        """
        if not partitions:
            return PartitionOffsets()
        match limit:
            case Earliest() | Latest():
                end = EARLIEST if isinstance(limit, Earliest) else LATEST
                return PartitionOffsets(dict.fromkeys(partitions, end))
            case Specific():
                return limit.of(partitions)
            case GlobalTimestamp(timestamp, on_no_match):
                return self._at_timestamps(dict.fromkeys(partitions, timestamp), on_no_match)
            case ByTimestamp(timestamps, on_no_match):
                times = {one: time for one, time in timestamps if one in partitions}
                return self._at_timestamps(times, on_no_match)
            case CommittedOffsets(group_id, on_missing):
                return self._committed(group_id, on_missing, partitions)

    def offsets_for_timestamps(
        self, times: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first record at or after a timestamp by partition."""
        return self._retrying(lambda: self._fetcher.for_timestamps(times))

    def close(self) -> None:
        """Close the fetcher's connections. A second call does nothing."""
        self._fetcher.close()

    def _committed(
        self, group_id: str, on_missing: OnMissingCommit, partitions: Collection[TopicPartition]
    ) -> PartitionOffsets:
        found = self._retrying(lambda: self._fetcher.committed(group_id, partitions))
        if on_missing is OnMissingCommit.ERROR:
            return found
        without = set(partitions) - found.keys()
        fallback = EARLIEST if on_missing is OnMissingCommit.EARLIEST else LATEST
        return found.merge(dict.fromkeys(without, fallback))

    def _at_timestamps(
        self, times: Mapping[TopicPartition, int], on_no_match: OnNoMatch
    ) -> PartitionOffsets:
        answers = self._fetch_all(lambda: self._fetcher.for_timestamps(times), times).items()
        found = PartitionOffsets((part, offset) for part, offset in answers if offset is not None)
        if on_no_match is OnNoMatch.ERROR:
            return found
        return found.merge(dict.fromkeys(times.keys() - found.keys(), LATEST))

    def _matching(self, times: Mapping[TopicPartition, int]) -> PartitionOffsets:
        found = self.offsets_for_timestamps(times).items()
        return PartitionOffsets((part, offset) for part, offset in found if offset is not None)

    def _fetch_all(self, fetch: Callable[[], M], partitions: Collection[TopicPartition]) -> M:
        """Fetch offsets, all of them: a -1 that stays would get into a checkpoint."""
        return self._retrying(lambda: self._all_of(fetch(), partitions))

    def _all_of(self, found: M, partitions: Collection[TopicPartition]) -> M:
        if missing := {one.topic for one in partitions if one not in found}:
            option = self._subscription.option
            raise UnknownTopicError(sorted(missing), option, self._bootstrap_servers)
        return found

    def _not_behind(
        self, known: PartitionOffsets, fetch: Callable[[], PartitionOffsets]
    ) -> PartitionOffsets:
        for attempt in range(1, self._attempts):
            offsets = self._retrying(fetch)
            problem = _inconsistency(known, offsets)
            if not problem:
                return offsets
            self._cache.clear()
            self._events.offsets_retried(attempt, self._attempts, problem)
            self._clock.sleep_ms(self._interval_ms)
        return self._retrying(fetch)

    def _partitions(self) -> frozenset[TopicPartition]:
        return self._cache.get(lambda: self._fetcher.partitions(self._subscription))

    def _fetch_latest(self) -> PartitionOffsets:
        return self._fetcher.latest(self._partitions())

    def _retrying(self, fetch: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts):
            try:
                return fetch()
            except (KafkaRequestError, UnknownTopicError) as error:
                self._cache.clear()
                self._events.offsets_retried(attempt, self._attempts, str(error))
                self._clock.sleep_ms(self._interval_ms)
        return fetch()


def check_names(
    limit: StartingOffsets,
    partitions: frozenset[TopicPartition],
    position: str,
    mismatch: type[OffsetsMismatchError] = OffsetsMismatchError,
) -> None:
    """Check that a limit names the partitions of the subscription, if it names any.

    :raises OffsetsMismatchError: ``mismatch``, if it names offsets for other partitions.
    :raises TimestampsMismatchError: if it names timestamps for other partitions.
    :raises TopicOffsetsMismatchError: if it names a topic that is not read.
    """
    match limit:
        case Specific(topics=topics):
            without = dict(topics).keys() - {partition.topic for partition in partitions}
            if without:
                raise TopicOffsetsMismatchError(without, partitions)
            # SpecificOffsetRangeLimit expands offsets of topics to partitions (SPARK-58774).
            offsets = limit.offsets.merge(limit.of(partitions))
            if offsets.keys() != partitions:
                raise mismatch(offsets.keys(), partitions)
        case ByTimestamp(timestamps):
            times = dict(timestamps)
            if times.keys() != partitions:
                raise TimestampsMismatchError(position, times.keys(), partitions)


def _require_covered(limit: StartingOffsets, without: Collection[TopicPartition]) -> None:
    if not without:
        return
    first = min(without)
    match limit:
        case CommittedOffsets(group_id):
            raise NoCommittedOffsetError(group_id, without)
        case GlobalTimestamp(timestamp):
            raise NoOffsetForTimestampError(first, timestamp)
        case ByTimestamp(timestamps):
            raise NoOffsetForTimestampError(first, dict(timestamps)[first])


def _inconsistency(known: PartitionOffsets, offsets: PartitionOffsets) -> str:
    if known == offsets:
        return ""
    missing = sorted(known.keys() - offsets.keys())
    if missing:
        return f"no latest offset for {', '.join(map(str, missing))}"
    too_low = [
        f"{partition} ends at {offsets[partition]}, before the known offset {offset}"
        for partition, offset in known.items()
        if offsets[partition] < offset
    ]
    return "; ".join(too_low)


@final
@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream starts, and the partitions that start at their latest or earliest offset."""

    offsets: PartitionOffsets
    at_end: frozenset[TopicPartition] = frozenset()
    at_start: frozenset[TopicPartition] = frozenset()


@final
class InitialOffsets:
    """The offsets at which a stream starts: Spark's ``initialPartitionOffsets``.

    They are determined once, and stored in the log if there is one. An engine asks for them until
    its first batch is committed (Spark's ``MicroBatchExecution`` more than once), and again after a
    restart: a later answer would skip the records in between.
    """

    def __init__(
        self, log: MetadataLog | None, events: SourceEvents, find: Callable[[], StreamStart]
    ) -> None:
        self._log = log
        self._events = events
        self._find = find
        self._offsets: PartitionOffsets | None = None
        self._found: StreamStart | None = None

    @property
    def are_stored(self) -> bool:
        """Whether a log keeps the offsets for the next process."""
        return self._log is not None

    @property
    def known(self) -> PartitionOffsets | None:
        """The offsets that ``get`` has returned, if any."""
        return self._offsets

    @property
    def found(self) -> PartitionOffsets | None:
        """The offsets if this process has determined them, ``None`` if it has read them."""
        return self._found.offsets if self._found else None

    @property
    def at_end(self) -> frozenset[TopicPartition]:
        """The partitions that this process has found to start at their latest offset."""
        return self._found.at_end if self._found else frozenset()

    @property
    def at_start(self) -> frozenset[TopicPartition]:
        """The partitions that this process has found to start at their earliest offset."""
        return self._found.at_start if self._found else frozenset()

    def get(self) -> PartitionOffsets:
        """Return the stored offsets, or else determine and store them.

        :raises MetadataLogError: if the log cannot be read or written.
        """
        if self._offsets is None:
            stored = self._read()
            self._offsets = self._store(self._find()) if stored is None else stored
        return self._offsets

    def _read(self) -> PartitionOffsets | None:
        content = self._log.get(BATCH_ID) if self._log is not None else None
        if content is None:
            return None
        with parsing(self._log):
            return read_initial_offsets(content)

    def _store(self, found: StreamStart) -> PartitionOffsets:
        offsets = found.offsets
        if self._log is not None and not self._log.add(BATCH_ID, write_initial_offsets(offsets)):
            # Another driver was first, and may have read records from its offsets already.
            stored = self._read()
            return offsets if stored is None else stored
        self._found = found
        self._events.initial_offsets(offsets)
        return offsets
