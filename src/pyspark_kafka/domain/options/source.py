"""The options of a source: their values, and the parser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from ..checkpoints.storage_path import StoragePath
from ..errors import OptionsError
from ..partition_offsets import EARLIEST, LATEST
from ..reading.admission import default_read_limit
from ..reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OffsetLimit,
    OnMissingCommit,
    OnNoMatch,
    Specific,
    StartingOffsets,
)
from ..reading.ranges import TaskLimits
from ..reading.record_limits import RecordLimits
from ..reading.records import Projection
from ..security.policy import DEFAULT_POLICY
from ..security.secrets import hides_secrets
from ..subscription import Assign, Subscribe, SubscribePattern, Subscription
from ..text import excerpt
from ..topic_partition import NAME_RULE, is_topic_name
from . import source_table as table
from . import value_table
from .client_settings import (
    ClientOptions,
    client_settings,
    consumer_problems,
    kafka_settings,
    unprefixed,
)
from .option import PREFIX, Option, QueryKind, Reading, ignored, lower
from .settings_table import CLIENT_RACK, GROUP_ID, ISOLATION_LEVEL, READ_COMMITTED
from .sink_table import ALL_SINK_OPTIONS
from .value_table import ALL_SOURCE_OPTIONS
from .values import format_option_names, read_values, registry_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..reading.admission import ReadLimit
    from ..reading.offset_limits import EndingOffsets
    from ..security.policy import OptionPolicy
    from ..topic_partition import TopicPartition


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class SourceOptions(ClientOptions):
    """The options of one query, parsed and checked. Pickled to executors."""

    subscription: Subscription
    starting_offsets: StartingOffsets
    ending_offsets: EndingOffsets
    fail_on_data_loss: bool
    projection: Projection
    read_limit: ReadLimit
    min_partitions: int | None
    max_partitions: int | None
    max_records_per_partition: int | None
    max_record_bytes: int
    max_record_headers: int
    max_record_header_bytes: int
    skip_oversized_records: bool
    poll_timeout_ms: int
    fetch_attempts: int
    fetch_retry_interval_ms: int
    metadata_ttl_ms: int
    allow_limits_without_trigger: bool
    metadata_path: StoragePath | None
    commit_offsets_to_group: str | None
    dead_letter_topic: str | None = None
    client_rack_from: str | None = None

    @property
    def record_limits(self) -> RecordLimits:
        """The limits of a record's size."""
        return RecordLimits(
            self.max_record_bytes,
            self.max_record_headers,
            self.max_record_header_bytes,
            self.skip_oversized_records,
        )

    @property
    def task_limits(self) -> TaskLimits:
        """How the offsets of a batch are divided among tasks."""
        return TaskLimits(self.min_partitions, self.max_partitions, self.max_records_per_partition)

    @property
    def group_id(self) -> str | None:
        """The consumer group that the user set, if any."""
        return dict(self.kafka).get(GROUP_ID)

    @property
    def reads_committed_only(self) -> bool:
        """Whether records of open and aborted transactions are skipped."""
        return dict(self.kafka).get(ISOLATION_LEVEL) == READ_COMMITTED

    @property
    def restricted_settings(self) -> dict[str, str]:
        """The settings that the operator's policy applies to."""
        return _own_rack(self.client_rack_from) | dict(self.kafka)

    def in_rack(self, rack: str) -> SourceOptions:
        """Return these options for a client that reads from the replicas in a rack (KIP-392)."""
        return replace(self, kafka=tuple(sorted((*self.kafka, (CLIENT_RACK, rack)))))


def _own_rack(place: str | None) -> dict[str, str]:
    """Return the setting that tasks add, which the operator may forbid."""
    return {} if place is None else {CLIENT_RACK: ""}


def starting_problems(starting: StartingOffsets) -> list[str]:
    """Return why a batch query cannot start there."""
    if isinstance(starting, CommittedOffsets):
        if starting.on_missing_commit is not OnMissingCommit.LATEST:
            return []
        return ["startingOffsetsGroupFallback can't be latest for batch queries on Kafka"]
    if isinstance(starting, Latest):
        return ["starting offset can't be latest for batch queries on Kafka"]
    return [
        f"startingOffsets for {name} can't be latest for batch queries on Kafka"
        for name in _names_at(LATEST, starting)
    ]


def ending_problems(ending: OffsetLimit) -> list[str]:
    """Return why a batch query cannot end there."""
    if isinstance(ending, Earliest):
        return ["ending offset can't be earliest for batch queries on Kafka"]
    return [
        f"ending offset for {name} can't be earliest for batch queries on Kafka"
        for name in _names_at(EARLIEST, ending)
    ]


def mismatches(starting: StartingOffsets, ending: OffsetLimit) -> list[str]:
    """Return how a start and an end of the same kind contradict each other."""
    match starting, ending:
        case Specific(starts, ()), Specific(ends, ()):
            return _mismatches("offset", starts, ends)
        case ByTimestamp(first), ByTimestamp(last):
            return _mismatches("timestamp", dict(first), dict(last))
        case _:
            return []


def _mismatches(
    kind: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[str]:
    if starts.keys() != ends.keys():
        return [_other_partitions(starts, ends)]
    return [
        f"The specified start {kind} {start} is greater than the end {kind} {ends[partition]} "
        f"for topic {partition.topic} partition {partition.partition}."
        for partition, start in starts.items()
        if 0 <= ends[partition] < start
    ]


def _other_partitions(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> str:
    return (
        "The specified start offset and end offset should have the same topic-partitions.\n"
        f"Topic-partitions for start offset: {_listed(starts)}, "
        f"topic-partitions for end offset: {_listed(ends)}."
    )


def _names_at(offset: int, limit: OffsetLimit) -> list[str]:
    if not isinstance(limit, Specific):
        return []
    partitions = [str(partition) for partition, given in limit.offsets.items() if given == offset]
    return partitions + [f"topic {topic}" for topic, given in limit.topics if given == offset]


def _listed(partitions: Mapping[TopicPartition, int]) -> str:
    return ", ".join(map(str, sorted(partitions)))


_ANY_TOPIC: Final = "(any)"
"""No topic of Kafka has this name."""


def parse_source_options(
    raw: Mapping[str, str], query: QueryKind, policy: OptionPolicy = DEFAULT_POLICY
) -> SourceOptions:
    """Return the options of a batch or streaming query.

    :raises DisallowedOptionError: if the policy forbids one.
    :raises OptionsError: with all problems, in the order in which the JVM connector checks them;
        after them what needs the operator's permission, and unknown options last.
    """
    reading = _SourceReading(lower(raw))
    settings = client_settings(reading)
    policy.check(_own_rack(reading.given.get(table.CLIENT_RACK_FROM.key)) | settings)
    policy.check_options(registry_settings(reading))
    if query is QueryKind.BATCH:
        starting, ending = reading.batch_ends()
        reading.read(table.PUSH_FILTERS)
    else:
        reading.refuse_ending()
    subscription = reading.subscription()
    reading.check_partitions()
    reading.read(table.MAX_RECORDS_PER_PARTITION)
    reading.problems += consumer_problems(settings)
    reading.refuse_two_racks(settings)
    read_limit = reading.read_limit()
    if query is QueryKind.BATCH:
        # KafkaSourceProvider.checkOffsetLimitValidity, which comes after all other checks.
        reading.problems += [] if ending_problems(ending) else mismatches(starting, ending)
    else:
        # Offsets of a stream are read when it starts, after everything was validated.
        starting, ending = reading.starting(Latest()), Latest()
    metadata_path = reading.metadata_path()
    projection = reading.projection()
    fields = reading.read_fields(ALL_SOURCE_OPTIONS)
    typed = read_values(reading, projection.columns)
    reading.refuse_letter_loop(subscription, fields["dead_letter_topic"])
    reading.problems += policy.problems(settings, fields["client"])
    wrong = unprefixed(reading.given)
    reading.problems += wrong.values()
    reading.refuse_unknown(ALL_SOURCE_OPTIONS, _accepted(reading) | wrong.keys())
    if reading.problems or subscription is None:
        raise OptionsError(reading.problems)
    return SourceOptions(
        **fields,
        subscription=subscription,
        starting_offsets=starting,
        ending_offsets=Latest() if isinstance(ending, Earliest) else ending,
        projection=projection,
        read_limit=read_limit,
        metadata_path=metadata_path,
        kafka=tuple(sorted(settings.items())),
        values=typed.values,
        registry=typed.registry,
    )


def parse_any_source_options(
    raw: Mapping[str, str], policy: OptionPolicy = DEFAULT_POLICY
) -> SourceOptions:
    """Read the options of a query that may be a batch or a stream.

    The columns, the client and its settings are the same for both kinds.

    :raises DisallowedOptionError: if the policy forbids one.
    :raises OptionsError: if neither accepts the options: with the problems that both have, or with
        the problems of each if they have none in common.
    """
    problems: list[tuple[str, ...]] = []
    for query in QueryKind:
        try:
            return parse_source_options(raw, query, policy)
        except OptionsError as error:
            problems.append(error.problems)
    batch, stream = problems
    raise OptionsError([one for one in batch if one in stream] or (*batch, *stream))


def with_any_topic(raw: Mapping[str, str]) -> dict[str, str]:
    """Add a topic to options that name none, for callers that get the topics from elsewhere."""
    named = lower(raw).keys() & {option.key for option in table.STRATEGIES}
    return dict(raw) if named else {**raw, table.SUBSCRIBE.name: _ANY_TOPIC}


def ignored_options(raw: Mapping[str, str], query: QueryKind) -> list[str]:
    """Return the names of the given options that a read of this kind ignores."""
    return ignored(raw, query, ALL_SOURCE_OPTIONS, ALL_SINK_OPTIONS)


def _accepted(reading: Reading) -> set[str]:
    """Return the names of options that a read does not look at, or that no table has."""
    return {option.key for option in ALL_SINK_OPTIONS} | format_option_names(reading)


def _named(subscription: Subscription) -> Subscription:
    """Return a subscription.

    :raises ValueError: if no topic can have one of its names.
    """
    names = subscription.topics if isinstance(subscription, Subscribe) else ()
    wrong = [name for name in names if not is_topic_name(name) and name != _ANY_TOPIC]
    if wrong:
        raise ValueError(f"subscribe must name topics, got {excerpt(wrong[0])!r}: {NAME_RULE}")
    return subscription


class _SourceReading(Reading):
    """The given options of a source, as ``Reading`` holds them."""

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
        on_no_match = self.read(table.STARTING_STRATEGY)
        if table.STARTING_TIMESTAMP.key in self.given:
            return GlobalTimestamp(self.read(table.STARTING_TIMESTAMP) or 0, on_no_match)
        if table.STARTING_OFFSETS_BY_TIMESTAMP.key in self.given:
            return ByTimestamp(self.read(table.STARTING_OFFSETS_BY_TIMESTAMP), on_no_match)
        limit = self.read(table.STARTING_OFFSETS) or default
        fallback = self.read(table.STARTING_GROUP_FALLBACK)
        return self._of_group(fallback) if isinstance(limit, CommittedOffsets) else limit

    def _of_group(self, fallback: OnMissingCommit) -> CommittedOffsets:
        group = kafka_settings(self.given).get(GROUP_ID, "")
        group = group or self.given.get(table.COMMIT_OFFSETS_TO_GROUP.key, "").strip()
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
        # KafkaSourceProvider.validateStreamOptions, which ignores endingTimestamp.
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
            return _named(_subscription(option, self.given[option.key]))
        except ValueError as error:
            self.add_problem(option, error)
            return None

    def check_partitions(self) -> None:
        minimum, maximum = self.read(table.MIN_PARTITIONS), self.read(table.MAX_PARTITIONS)
        if minimum is not None and maximum is not None and minimum > maximum:
            self.problems.append(
                f"minPartitions({minimum}) is higher than maxPartitions({maximum})"
            )

    def read_limit(self) -> ReadLimit:
        min_offsets = self.read(table.MIN_OFFSETS_PER_TRIGGER)
        max_offsets = self.read(table.MAX_OFFSETS_PER_TRIGGER)
        delay_ms = self.read(table.MAX_TRIGGER_DELAY_MS)
        max_bytes = self.read(table.MAX_BYTES_PER_TRIGGER)
        if min_offsets is not None and max_offsets is not None and min_offsets > max_offsets:
            self.problems.append(
                f"The value of minOffsetPerTrigger({min_offsets}) is higher than the "
                f"maxOffsetsPerTrigger({max_offsets})."
            )
        return default_read_limit(min_offsets, max_offsets, delay_ms, max_bytes)

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

    def refuse_two_racks(self, settings: Mapping[str, str]) -> None:
        if CLIENT_RACK in settings and self.read(table.CLIENT_RACK_FROM) is not None:
            self.problems.append(
                f"'{PREFIX}{CLIENT_RACK}' and '{table.CLIENT_RACK_FROM.name}' exclude each other: "
                "set the rack of all workers, or where each finds its own"
            )

    def refuse_letter_loop(self, subscription: Subscription | None, topic: str | None) -> None:
        read = subscription.topics if isinstance(subscription, Subscribe | Assign) else ()
        if topic is not None and topic in read:
            self.problems.append(
                f"{value_table.DEAD_LETTER_TOPIC.name} '{topic}' must not be a topic that the "
                "query reads"
            )

    def projection(self) -> Projection:
        included = {column: self.read(option) for column, option in table.INCLUDED.items()}
        columns = tuple(column for column, is_included in included.items() if is_included)
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
    if "\0" in text or "\\u0000" in text:
        raise ValueError(f"no topic can have a NUL character in its name, {tail}")
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
