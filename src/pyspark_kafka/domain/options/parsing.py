"""From the texts that a user gave to the options of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OptionsError
from ..kafka_settings import GROUP_ID, PREFIX, kafka_settings, refused_settings
from ..offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OffsetLimit,
    OnMissingCommit,
    OnNoMatch,
    StartingOffsets,
)
from ..projection import Projection
from ..read_limits import default_read_limit
from ..storage_path import StoragePath
from ..subscription import Assign, Subscribe, SubscribePattern, Subscription
from . import sink_table, table
from .batch_ends import ending_problems, mismatches, starting_problems
from .option import Option, QueryKind
from .reading import Reading, ignored, lower
from .source_options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..read_limits import ReadLimit


def parse_source_options(raw: Mapping[str, str], query: QueryKind) -> SourceOptions:
    """Read the options of a batch or streaming query.

    :raises OptionsError: with everything that is wrong, in the order in which the JVM connector
        would come upon it, unknown options last.
    """
    reading = _SourceReading(lower(raw))
    if query is QueryKind.BATCH:
        starting, ending = reading.batch_ends()
    else:
        reading.refuse_ending()
    subscription = reading.subscription()
    min_partitions = reading.read(table.MIN_PARTITIONS)
    max_records = reading.read(table.MAX_RECORDS_PER_PARTITION)
    settings = kafka_settings(reading.given)
    reading.problems += refused_settings(settings)
    read_limit = reading.read_limit()
    if query is QueryKind.BATCH:
        # KafkaSourceProvider.checkOffsetLimitValidity, which comes after all other checks.
        reading.problems += [] if ending_problems(ending) else mismatches(starting, ending)
    else:
        # Offsets of a stream are read when it starts, after everything was validated.
        starting, ending = reading.starting(Latest()), Latest()
    metadata_path = reading.metadata_path()
    commit_to_group = reading.read(table.COMMIT_OFFSETS_TO_GROUP)
    fail_on_data_loss = reading.read(table.FAIL_ON_DATA_LOSS)
    projection = reading.projection()
    poll_timeout_ms = reading.read(table.POLL_TIMEOUT_MS)
    fetch_attempts = reading.read(table.FETCH_ATTEMPTS)
    fetch_retry_interval_ms = reading.read(table.FETCH_RETRY_INTERVAL_MS)
    metadata_ttl_ms = reading.read(table.METADATA_TTL_MS)
    push_filters = reading.read(table.PUSH_FILTERS)
    reading.refuse_unknown(table.TABLE, (option.key for option in sink_table.TABLE))
    if reading.problems or subscription is None:
        raise OptionsError(reading.problems)
    return SourceOptions(
        client=reading.read(table.CLIENT),
        subscription=subscription,
        starting_offsets=starting,
        ending_offsets=Latest() if isinstance(ending, Earliest) else ending,
        fail_on_data_loss=fail_on_data_loss,
        projection=projection,
        read_limit=read_limit,
        min_partitions=min_partitions,
        max_records_per_partition=max_records,
        poll_timeout_ms=poll_timeout_ms,
        fetch_attempts=fetch_attempts,
        fetch_retry_interval_ms=fetch_retry_interval_ms,
        metadata_ttl_ms=metadata_ttl_ms,
        push_filters=push_filters,
        metadata_path=metadata_path,
        commit_offsets_to_group=commit_to_group,
        kafka=tuple(sorted(settings.items())),
    )


def parse_projection(raw: Mapping[str, str]) -> Projection:
    """Read the choice of columns alone: the schema is asked for before the kind of query is known.

    :raises OptionsError: if an option is neither true nor false, or no column is left.
    """
    reading = _SourceReading(lower(raw))
    projection = reading.projection()
    if reading.problems:
        raise OptionsError(reading.problems)
    return projection


def with_any_topic(raw: Mapping[str, str]) -> dict[str, str]:
    """Name any topic where none is named, for whoever learns of topics elsewhere."""
    named = lower(raw).keys() & {option.key for option in table.STRATEGIES}
    return dict(raw) if named else {**raw, table.SUBSCRIBE.name: "any"}


def ignored_options(raw: Mapping[str, str], query: QueryKind) -> list[str]:
    """Name the options that were given and that a read of this kind does not look at."""
    return ignored(raw, query, table.TABLE, sink_table.TABLE)


class _SourceReading(Reading):
    """One pass over the options of a source."""

    __slots__ = ()

    def batch_ends(self) -> tuple[StartingOffsets, OffsetLimit]:
        # KafkaSourceProvider.validateBatchOptions
        starting = self.starting(Earliest())
        self.problems += starting_problems(starting)
        ending = self.ending()
        self.problems += ending_problems(ending)
        return starting, ending

    def starting(self, default: StartingOffsets) -> StartingOffsets:
        # KafkaSourceProvider.getKafkaOffsetRangeLimit
        no_match = self.read(table.STARTING_STRATEGY)
        if table.STARTING_TIMESTAMP.key in self.given:
            return GlobalTimestamp(self.read(table.STARTING_TIMESTAMP) or 0, no_match)
        if table.STARTING_OFFSETS_BY_TIMESTAMP.key in self.given:
            return ByTimestamp(self.read(table.STARTING_OFFSETS_BY_TIMESTAMP), no_match)
        limit = self.read(table.STARTING_OFFSETS) or default
        fallback = self.read(table.STARTING_GROUP_FALLBACK)
        return self._of_group(fallback) if isinstance(limit, CommittedOffsets) else limit

    def _of_group(self, fallback: OnMissingCommit) -> CommittedOffsets:
        options = (f"{PREFIX}{GROUP_ID}", table.COMMIT_OFFSETS_TO_GROUP.key)
        group = next(filter(None, (self.given.get(name, "").strip() for name in options)), "")
        if not group:
            self.problems.append(
                "startingOffsets 'group' needs a consumer group: set 'kafka.group.id', or "
                "'commitOffsetsToGroup' in a stream"
            )
        return CommittedOffsets(group, fallback)

    def ending(self) -> OffsetLimit:
        if table.ENDING_TIMESTAMP.key in self.given:
            return GlobalTimestamp(self.read(table.ENDING_TIMESTAMP) or 0, OnNoMatch.LATEST)
        if table.ENDING_OFFSETS_BY_TIMESTAMP.key in self.given:
            return ByTimestamp(self.read(table.ENDING_OFFSETS_BY_TIMESTAMP), OnNoMatch.LATEST)
        return self.read(table.ENDING_OFFSETS) or Latest()

    def refuse_ending(self) -> None:
        # KafkaSourceProvider.validateStreamOptions, which lets endingTimestamp pass.
        if table.ENDING_OFFSETS.key in self.given:
            self.problems.append("ending offset not valid in streaming queries")
        if table.ENDING_OFFSETS_BY_TIMESTAMP.key in self.given:
            self.problems.append("ending timestamp not valid in streaming queries")

    def subscription(self) -> Subscription | None:
        # KafkaSourceProvider.validateGeneralOptions
        chosen = [option for option in table.STRATEGIES if option.key in self.given]
        if len(chosen) != 1:
            self.problems.append(_not_one_strategy(len(chosen)))
            return None
        option = chosen[0]
        try:
            return _subscription(option, self.given[option.key])
        except ValueError as error:
            self.problems.append(str(error))
            return None

    def read_limit(self) -> ReadLimit:
        least = self.read(table.MIN_OFFSETS_PER_TRIGGER)
        most = self.read(table.MAX_OFFSETS_PER_TRIGGER)
        delay_ms = self.read(table.MAX_TRIGGER_DELAY_MS)
        most_bytes = self.read(table.MAX_BYTES_PER_TRIGGER)
        if least is not None and most is not None and least > most:
            self.problems.append(
                f"The value of minOffsetPerTrigger({least}) is higher than the "
                f"maxOffsetsPerTrigger({most})."
            )
        return default_read_limit(least, most, delay_ms, most_bytes)

    def metadata_path(self) -> StoragePath | None:
        url = self.read(table.METADATA_PATH)
        options = self.read(table.METADATA_STORAGE_OPTIONS)
        if url is None:
            return None
        try:
            return StoragePath(url, options)
        except ValueError:
            self.problems.append("metadataPath must name a directory")
            return None

    def projection(self) -> Projection:
        included = {column: self.read(option) for column, option in table.INCLUDED.items()}
        columns = tuple(column for column, wanted in included.items() if wanted)
        if not columns:
            self.problems.append("the options leave no column to read")
        return Projection(columns or tuple(included))


def _not_one_strategy(chosen: int) -> str:
    start = "Only one" if chosen else "One"
    verb = "can" if chosen else "must"
    names = ", ".join(option.key for option in table.STRATEGIES)
    return (
        f"{start} of the following options {verb} be specified for Kafka source: {names}. "
        "See the docs for more details."
    )


def _subscription(option: Option[str | None], text: str) -> Subscription:
    tail = f"as specified value for option '{option.name}' is '{text}'"
    trimmed = text.strip()
    if option is table.ASSIGN:
        if not trimmed.startswith("{"):
            raise ValueError(f"No topicpartitions to assign {tail}")
        return Assign.from_json(trimmed)
    if option is table.SUBSCRIBE:
        if not trimmed.replace(",", "").strip():
            raise ValueError(f"No topics to subscribe to {tail}")
        return Subscribe.from_text(trimmed)
    if not trimmed:
        raise ValueError(f"Pattern to subscribe is empty {tail}")
    return SubscribePattern(trimmed)
