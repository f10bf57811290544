"""Every option of the source, once: its name, its parser, its default and what it means.

Validation, its messages and the reference page (``docs/options.md``) are made from this table.
Names, defaults and messages are those of Spark's ``KafkaSourceProvider``; names do not
distinguish upper from lower case.
"""

from __future__ import annotations

import difflib
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from .errors import OptionsError
from .kafka_settings import (
    BOOTSTRAP_SERVERS,
    GROUP_ID,
    ISOLATION_LEVEL,
    PREFIX,
    READ_COMMITTED,
    kafka_settings,
    refused_settings,
)
from .offset_limits import (
    Earliest,
    EndingOffsets,
    Latest,
    OffsetLimit,
    Specific,
    StartingOffsets,
    parse_offset_limit,
)
from .option_values import boolean, non_negative_integer, positive_integer
from .partition_offsets import EARLIEST, LATEST
from .subscription import Assign, Subscribe, SubscribePattern, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .topic_partition import TopicPartition

T = TypeVar("T")


class Query(enum.Enum):
    """The two kinds of query that read."""

    BATCH = "batch"
    STREAM = "stream"


BOTH: Final = frozenset(Query)
BATCH_ONLY: Final = frozenset({Query.BATCH})


@final
@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option: how it is spelled and read, and what the reference page says of it."""

    name: str
    parse: Callable[[str], T]
    default: T
    values: str
    doc: str
    default_text: str = ""
    queries: frozenset[Query] = BOTH

    @property
    def key(self) -> str:
        """The name as it is looked up: Spark hands options over in lower case."""
        return self.name.lower()


def _text(value: str) -> str:
    return value.strip()


CLIENT: Final = Option(
    "client",
    _text,
    "kafka-python",
    "`kafka-python` or `confluent`",
    "The Kafka client that reads. `confluent` needs the extra of the same name.",
)
ASSIGN: Final[Option[str | None]] = Option(
    "assign",
    _text,
    None,
    '`{"topicA":[0,1],"topicB":[2]}`',
    "Reads these partitions. One of `assign`, `subscribe` and `subscribePattern` is needed.",
)
SUBSCRIBE: Final[Option[str | None]] = Option(
    "subscribe", _text, None, "topics between commas", "Reads all partitions of these topics."
)
SUBSCRIBE_PATTERN: Final[Option[str | None]] = Option(
    "subscribePattern",
    _text,
    None,
    "a regular expression",
    "Reads all topics in whose name the expression is found; internal ones are left out.",
)
STARTING_OFFSETS: Final[Option[OffsetLimit | None]] = Option(
    "startingOffsets",
    parse_offset_limit,
    None,
    '`earliest`, `latest` (streams), `{"topicA":{"0":23,"1":-2}}`',
    "Where a batch query, and a stream that has no checkpoint yet, begins. "
    "In JSON, -2 stands for earliest and -1 for latest.",
    "`latest` for streams, `earliest` for batch",
)
ENDING_OFFSETS: Final[Option[OffsetLimit | None]] = Option(
    "endingOffsets",
    parse_offset_limit,
    None,
    '`latest`, `{"topicA":{"0":23,"1":-1}}`',
    "Where a batch query ends; the offset itself is not read. In JSON, -1 stands for latest.",
    "`latest`",
    BATCH_ONLY,
)
FAIL_ON_DATA_LOSS: Final = Option(
    "failOnDataLoss",
    boolean,
    default=True,
    values="`true`, `false`",
    doc="Whether a query fails when records that it was to read are gone, "
    "or logs a warning and goes on.",
)
INCLUDE_HEADERS: Final = Option(
    "includeHeaders",
    boolean,
    default=False,
    values="`true`, `false`",
    doc="Adds the column `headers`.",
)
POLL_TIMEOUT_MS: Final = Option(
    "kafkaConsumer.pollTimeoutMs",
    positive_integer("kafkaConsumer.pollTimeoutMs"),
    120_000,
    "milliseconds, positive",
    "How long a task waits for records that the broker holds before it fails.",
)
FETCH_ATTEMPTS: Final = Option(
    "fetchOffset.numRetries",
    positive_integer("fetchOffset.numRetries"),
    3,
    "a positive number",
    "How often offsets are asked for before the query fails: all attempts, the first included.",
)
FETCH_RETRY_INTERVAL_MS: Final = Option(
    "fetchOffset.retryIntervalMs",
    non_negative_integer("fetchOffset.retryIntervalMs"),
    1_000,
    "milliseconds",
    "How long to wait between these attempts.",
)

TABLE: Final[tuple[Option[Any], ...]] = (
    CLIENT,
    ASSIGN,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    STARTING_OFFSETS,
    ENDING_OFFSETS,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    POLL_TIMEOUT_MS,
    FETCH_ATTEMPTS,
    FETCH_RETRY_INTERVAL_MS,
)

STRATEGIES: Final = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)


@final
@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one query, read and checked. Crosses to executors.

    ``kafka`` holds the client's settings without their prefix; they may carry secrets and are
    therefore left out of ``repr``.
    """

    client: str
    subscription: Subscription
    starting_offsets: StartingOffsets
    ending_offsets: EndingOffsets
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int
    fetch_attempts: int
    fetch_retry_interval_ms: int
    kafka: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def bootstrap_servers(self) -> str:
        """The brokers that are asked first, ``host:port`` between commas."""
        return dict(self.kafka)[BOOTSTRAP_SERVERS]

    @property
    def group_id(self) -> str | None:
        """The group id that the user chose, if any."""
        return dict(self.kafka).get(GROUP_ID)

    @property
    def reads_committed_only(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return dict(self.kafka).get(ISOLATION_LEVEL) == READ_COMMITTED


def parse_source_options(raw: Mapping[str, str], query: Query) -> SourceOptions:
    """Read the options of a batch or streaming query.

    :raises OptionsError: with everything that is wrong, in the order in which the JVM connector
        would come upon it, unknown options last.
    """
    reading = _Reading({name.lower(): value for name, value in raw.items()})
    if query is Query.BATCH:
        starting, ending = reading.batch_limits()
    else:
        reading.refuse_ending()
    subscription = reading.subscription()
    settings = kafka_settings(reading.given)
    reading.problems += refused_settings(settings)
    if query is Query.STREAM:
        # Offsets of a stream are read when it starts, after everything was validated.
        starting, ending = reading.read(STARTING_OFFSETS) or Latest(), Latest()
    fail_on_data_loss = reading.read(FAIL_ON_DATA_LOSS)
    include_headers = reading.read(INCLUDE_HEADERS)
    poll_timeout_ms = reading.read(POLL_TIMEOUT_MS)
    fetch_attempts = reading.read(FETCH_ATTEMPTS)
    fetch_retry_interval_ms = reading.read(FETCH_RETRY_INTERVAL_MS)
    reading.problems += _unknown(reading.given)
    if reading.problems or subscription is None:
        raise OptionsError(reading.problems)
    return SourceOptions(
        client=reading.read(CLIENT),
        subscription=subscription,
        starting_offsets=starting,
        ending_offsets=ending,
        fail_on_data_loss=fail_on_data_loss,
        include_headers=include_headers,
        poll_timeout_ms=poll_timeout_ms,
        fetch_attempts=fetch_attempts,
        fetch_retry_interval_ms=fetch_retry_interval_ms,
        kafka=tuple(sorted(settings.items())),
    )


def includes_headers(raw: Mapping[str, str]) -> bool:
    """Read ``includeHeaders`` alone, on which the schema depends before the kind of query is known.

    :raises OptionsError: if it is neither true nor false.
    """
    reading = _Reading({name.lower(): value for name, value in raw.items()})
    included = reading.read(INCLUDE_HEADERS)
    if reading.problems:
        raise OptionsError(reading.problems)
    return included


@dataclass(slots=True)
class _Reading:
    """One pass over the options that were given; gathers what is wrong with them."""

    given: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    def read(self, option: Option[T]) -> T:
        text = self.given.get(option.key)
        if text is None:
            return option.default
        try:
            return option.parse(text)
        except ValueError as error:
            self.problems.append(str(error))
            return option.default

    def batch_limits(self) -> tuple[StartingOffsets, EndingOffsets]:
        # KafkaSourceProvider.validateBatchOptions
        starting = self.read(STARTING_OFFSETS) or Earliest()
        self.problems += _starting_problems(starting)
        ending = self.read(ENDING_OFFSETS) or Latest()
        self.problems += _ending_problems(ending)
        return starting, Latest() if isinstance(ending, Earliest) else ending

    def refuse_ending(self) -> None:
        # KafkaSourceProvider.validateStreamOptions
        if ENDING_OFFSETS.key in self.given:
            self.problems.append("ending offset not valid in streaming queries")

    def subscription(self) -> Subscription | None:
        # KafkaSourceProvider.validateGeneralOptions
        chosen = [option for option in STRATEGIES if option.key in self.given]
        if len(chosen) != 1:
            self.problems.append(_not_one_strategy(len(chosen)))
            return None
        option = chosen[0]
        try:
            return _subscription(option, self.given[option.key])
        except ValueError as error:
            self.problems.append(str(error))
            return None


def _starting_problems(starting: OffsetLimit) -> list[str]:
    if isinstance(starting, Latest):
        return ["starting offset can't be latest for batch queries on Kafka"]
    return [
        f"startingOffsets for {partition} can't be latest for batch queries on Kafka"
        for partition in _partitions_at(LATEST, starting)
    ]


def _ending_problems(ending: OffsetLimit) -> list[str]:
    if isinstance(ending, Earliest):
        return ["ending offset can't be earliest for batch queries on Kafka"]
    return [
        f"ending offset for {partition} can't be earliest for batch queries on Kafka"
        for partition in _partitions_at(EARLIEST, ending)
    ]


def _partitions_at(offset: int, limit: OffsetLimit) -> list[TopicPartition]:
    if not isinstance(limit, Specific):
        return []
    return [partition for partition, given in limit.offsets.items() if given == offset]


def _not_one_strategy(chosen: int) -> str:
    start = "Only one" if chosen else "One"
    verb = "can" if chosen else "must"
    names = ", ".join(option.key for option in STRATEGIES)
    return (
        f"{start} of the following options {verb} be specified for Kafka source: {names}. "
        "See the docs for more details."
    )


def _subscription(option: Option[str | None], text: str) -> Subscription:
    tail = f"as specified value for option '{option.name}' is '{text}'"
    trimmed = text.strip()
    if option is ASSIGN:
        if not trimmed.startswith("{"):
            raise ValueError(f"No topicpartitions to assign {tail}")
        return Assign.from_json(trimmed)
    if option is SUBSCRIBE:
        if not trimmed.replace(",", "").strip():
            raise ValueError(f"No topics to subscribe to {tail}")
        return Subscribe.from_text(trimmed)
    if not trimmed:
        raise ValueError(f"Pattern to subscribe is empty {tail}")
    return SubscribePattern(trimmed)


def _unknown(given: Mapping[str, str]) -> list[str]:
    known = {option.key: option.name for option in TABLE}
    problems = []
    for name in sorted(given.keys() - known.keys()):
        if not name.startswith(PREFIX):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{known[close[0]]}'?" if close else ""
            problems.append(f"Option '{name}' is not known.{hint}")
    return problems
