"""Offsets from librdkafka's admin client."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition

from ...domain.errors import InvalidResponseError, UnknownTopicError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.security.rights import Operation, group_rights, topic_right
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.clock import Deadline
from ...ports.reading import OffsetFetcher
from ..call_deadline import within
from .admin import METADATA, RETRY_S, AdminSession, result_of
from .client_closing import close_in_time
from .cluster import Cluster
from .error_codes import (
    COORDINATOR_ERRORS,
    LIST_OFFSETS_RETRIABLE_ERRORS,
    NO_LEADERS,
    REFUSED_RESOURCES,
    UNKNOWN_PARTITION_ERRORS,
    UNREACHABLE_ERRORS,
)
from .librdkafka import LISTED_EARLIEST, LISTED_LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ...domain.options.source import SourceOptions
    from .admin import ListedOffset, ListedOffsets, OffsetsAdmin

K = TypeVar("K")
T = TypeVar("T")

OFFSETS: Final = "a request for offsets"
COMMIT: Final = "a request to commit offsets"
COMMITTED: Final = "a request for committed offsets"

MIN_COMMITTED_S: Final = 0.5
"""The time-out of the first request for committed offsets, which doubles with each."""

ATTEMPT_S: Final = 10.0
"""The longest time-out of one attempt."""

MIN_ATTEMPTS: Final = 3
"""How many attempts fit into the time for a request, however short it is.

librdkafka's look-up of leaders may wait for a recreated topic until it times out ("Failed to query
partition leaders"), while a new client finds the leaders at once.
"""

MAX_ASKED: Final = 250
"""How many partitions a request names; further requests are sent at the same time.

librdkafka searches a list for each partition of a response: the time grows as the square of their
number, to half a second of the processor for 10,000.
"""

NOT_FOUND: Final = -1
"""The offset of a timestamp after all records (``ListOffsetsResponse``)."""


@final
class ConfluentOffsetFetcher(OffsetFetcher):
    """Uses one ``AdminClient``, created at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._cluster = Cluster(options)
        self._errors = self._cluster.errors
        self._isolation_level = (
            IsolationLevel.READ_COMMITTED
            if options.reads_committed_only
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._session = AdminSession(self._cluster)

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        with self._cluster.settings.one_deadline():
            match subscription:
                case Assign(partitions):
                    return self._described(subscription.topics) & partitions
                case Subscribe(topics):
                    return self._described(topics, required=True)
                case SubscribePattern():
                    return self._described(self._matching(subscription), internal=False)

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._list_offsets(partitions, LISTED_EARLIEST)

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._list_offsets(partitions, LISTED_LATEST)

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return {
            partition: None if offset == NOT_FOUND else offset
            for partition, offset in self._query(timestamps).items()
        }

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        with self._cluster.settings.one_deadline() as deadline:
            while True:
                try:
                    found = self._committed(group_id, sorted(partitions))
                    break
                except _RefusalError as error:
                    # The coordinator of a new group may not be ready.
                    if error.args[0].code() not in COORDINATOR_ERRORS or deadline.has_passed:
                        rights = group_rights(Operation.DESCRIBE, group_id, partitions)
                        raise self._errors.error(COMMITTED, error.args[0], *rights) from error
                    time.sleep(RETRY_S)
        committed = [each for each in found if each.offset != OFFSET_INVALID]
        return _checked(COMMITTED, {_our_partition(each): each.offset for each in committed})

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        next_offsets = [
            _client_partition(partition, offset) for partition, offset in offsets.items()
        ]
        with (
            self._session.in_use(),
            within(math.inf) as caller,
            self._cluster.settings.one_deadline() as deadline,
        ):
            while (error := self._commit(group_id, next_offsets, deadline, caller)) is not None:
                if error.code() not in COORDINATOR_ERRORS or deadline.has_passed:
                    rights = group_rights(Operation.READ, group_id, offsets)
                    raise self._errors.error(COMMIT, error, *rights)
                time.sleep(RETRY_S)

    def close(self) -> None:
        self._session.close()

    def _matching(self, pattern: SubscribePattern) -> list[str]:
        listed = self._retry(METADATA, lambda admin, timeout: admin.list_topics(timeout=timeout))
        return [topic for topic in listed.topics if pattern.matches(topic)]

    def _described(
        self, topics: Collection[str], *, required: bool = False, internal: bool = True
    ) -> frozenset[TopicPartition]:
        if not topics:
            return frozenset()

        def ask(admin: Any, timeout: float) -> Mapping[str, Any]:
            wanted = TopicCollection(sorted(topics))
            answers = admin.describe_topics(wanted, request_timeout=timeout)
            self._session.wait(answers.values(), timeout)
            return _existing({topic: result_of(answer) for topic, answer in answers.items()})

        descriptions = self._retry(METADATA, ask)
        if required and (unknown := sorted(set(topics) - descriptions.keys())):
            raise UnknownTopicError(unknown, "subscribe", self._cluster.settings.bootstrap_servers)
        return frozenset(
            TopicPartition(topic, _checked_number(topic, part.id))
            for topic, description in descriptions.items()
            if internal or not description.is_internal
            for part in description.partitions
        )

    def _list_offsets(self, partitions: Collection[TopicPartition], spec: int) -> PartitionOffsets:
        return _checked(OFFSETS, self._query(dict.fromkeys(partitions, spec)))

    def _query(self, specs: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets of timestamps, ``LISTED_EARLIEST`` or ``LISTED_LATEST``."""
        wanted = [
            (partition, _client_partition(partition, spec)) for partition, spec in specs.items()
        ]
        parts = [
            dict(wanted[start : start + MAX_ASKED]) for start in range(0, len(wanted), MAX_ASKED)
        ]

        def ask(admin: OffsetsAdmin, timeout: float) -> Mapping[TopicPartition, int]:
            sent = [
                admin.request_offsets([*part.values()], self._isolation_level, timeout)
                for part in parts
            ]
            self._session.wait(sent, timeout)
            results: dict[TopicPartition, ListedOffset | KafkaError] = {}
            for part, answer in zip(parts, sent, strict=True):
                listed: ListedOffsets | KafkaError = result_of(answer)
                results |= self._listed(part, listed)
            return _offsets(_existing(results))

        return self._retry(OFFSETS, ask) if parts else {}

    def _listed(
        self, asked: Mapping[TopicPartition, ClientPartition], listed: ListedOffsets | KafkaError
    ) -> Mapping[TopicPartition, ListedOffset | KafkaError]:
        """Return the result of each partition of a request; nothing if no partition exists."""
        if isinstance(listed, KafkaError):
            is_gone = listed.code() == NO_LEADERS and not self._exist(asked)
            return {} if is_gone else dict.fromkeys(asked, listed)
        if len(listed) != len(asked) or not all(each in listed for each in asked.values()):
            raise InvalidResponseError(OFFSETS, "the response leaves out partitions")
        return {partition: listed[theirs] for partition, theirs in asked.items()}

    def _exist(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether any of the partitions exists."""
        partitions = frozenset(partitions)
        found = self._described({partition.topic for partition in partitions})
        return not found.isdisjoint(partitions)

    def _retry(self, request: str, ask: Callable[[Any, float], T]) -> T:
        """Send a request; repeat it while its broker is unreachable or no longer the leader."""
        with self._session.in_use():
            return self._attempt(request, ask)

    def _attempt(self, request: str, ask: Callable[[Any, float], T]) -> T:
        with self._cluster.settings.one_deadline() as deadline:
            attempt_s = min(self._cluster.settings.timeout_s / MIN_ATTEMPTS, ATTEMPT_S)
            while True:
                try:
                    # A request to an unreachable broker lasts until the time-out of the attempt.
                    return ask(
                        self._session.client(), min(attempt_s, max(RETRY_S, deadline.remaining))
                    )
                except KafkaException as error:
                    self._session.handle_events()
                    is_retriable = error.args[0].code() in LIST_OFFSETS_RETRIABLE_ERRORS
                    if not is_retriable or deadline.remaining < RETRY_S:
                        raise self._failure(request, error) from error
                except RuntimeError as error:
                    # As many results as topics are asked for are expected.
                    raise InvalidResponseError(request, str(error)) from error
                # An admin client never looks for other leaders: a new one does.
                self._session.close()
                time.sleep(RETRY_S)

    def _committed(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Sequence[ClientPartition]:
        # The admin client's request aborts the process if a broker responds that it is no longer
        # the coordinator (confluentinc/librdkafka#5040); a consumer's does not.
        group = {"group.id": group_id, "enable.auto.commit": "false"}
        self._session.drop_outdated()
        consumer = self._cluster.make(Consumer, group)
        wanted = [_client_partition(partition) for partition in partitions]
        try:
            found = self._await_committed(consumer, wanted)
        except KafkaException as error:
            raise _RefusalError({group_id: error.args[0]}) from error
        finally:
            close_in_time(consumer.close)
        for partition in found:
            if partition.error:
                raise _RefusalError({_our_partition(partition): partition.error})
        return found

    def _await_committed(
        self, consumer: Any, partitions: Sequence[ClientPartition]
    ) -> Sequence[ClientPartition]:
        """Return a group's offsets; the request waits in vain for a refused coordinator."""
        with self._cluster.settings.one_deadline() as deadline:
            wait_s = MIN_COMMITTED_S
            while True:
                try:
                    found: Sequence[ClientPartition] = consumer.committed(
                        partitions, timeout=min(wait_s, deadline.remaining)
                    )
                except KafkaException as error:
                    # For the event with the reason why it could not connect, and for a refusal.
                    message = consumer.poll(0)
                    self._errors.raise_refusal()
                    if message is not None and message.error().code() in REFUSED_RESOURCES:
                        raise KafkaException(message.error()) from error
                    if error.args[0].code() not in UNREACHABLE_ERRORS or deadline.has_passed:
                        raise
                    wait_s *= 2
                else:
                    return found

    def _commit(
        self,
        group_id: str,
        offsets: Sequence[ClientPartition],
        deadline: Deadline,
        caller: Deadline,
    ) -> KafkaError | None:
        """Commit once, and return the coordinator's error."""
        is_committed = False
        try:
            error = self._session.committer(group_id).commit(offsets, deadline)
            is_committed = error is None
        finally:
            if not is_committed:
                self._session.close_committer(caller.remaining)
        return error

    def _failure(self, request: str, error: KafkaException) -> Exception:
        if not isinstance(error, _RefusalError):
            return self._session.error(request, error.args[0])
        # Only metadata and offsets are requested for several topics at once.
        rights = (topic_right(Operation.DESCRIBE, topic) for topic in error.topics)
        return self._session.error(f"{request} of {error.about}", error.args[0], *rights)


def _client_partition(partition: TopicPartition, offset: int | None = None) -> ClientPartition:
    if offset is None:
        return ClientPartition(partition.topic, partition.partition)
    return ClientPartition(partition.topic, partition.partition, offset)


def _our_partition(partition: ClientPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


class _RefusalError(KafkaException):
    """The same error in some of several responses; ``about`` is the subject of the first."""

    def __init__(self, errors: Mapping[Any, KafkaError]) -> None:
        key, error = next(iter(errors.items()))
        super().__init__(error)
        self.about = key if isinstance(key, TopicPartition) else f"'{key}'"
        self.topics = sorted({getattr(key, "topic", key) for key in errors})


def _checked_number(topic: str, number: int) -> int:
    """Return the number of a partition; a negative one is an error."""
    if number < 0:
        raise InvalidResponseError(METADATA, f"topic '{topic}' has a partition {number}")
    return number


def _checked(request: str, offsets: Mapping[TopicPartition, int]) -> PartitionOffsets:
    """Return offsets; a negative one is an error."""
    for partition, offset in offsets.items():
        if offset < 0:
            raise InvalidResponseError(request, f"the offset of {partition} is {offset}")
    return PartitionOffsets(offsets)


def _existing(results: Mapping[K, T | KafkaError]) -> dict[K, T]:
    """Return the results, without those for topics or partitions that do not exist."""
    refused = {
        key: result
        for key, result in results.items()
        if isinstance(result, KafkaError) and result.code() not in UNKNOWN_PARTITION_ERRORS
    }
    if refused:
        codes = [error.code() for error in refused.values()]
        code = next((each for each in codes if each in REFUSED_RESOURCES), codes[0])
        raise _RefusalError({k: e for k, e in refused.items() if e.code() == code})
    return {key: result for key, result in results.items() if not isinstance(result, KafkaError)}


def _offsets(listed: Mapping[TopicPartition, ListedOffset]) -> dict[TopicPartition, int]:
    """Return the offsets of the partitions that exist."""
    offsets = {partition: found.offset for partition, found in listed.items()}
    for partition, offset in offsets.items():
        if offset < NOT_FOUND:
            # librdkafka sent no request, and reports no error.
            raise _RefusalError({partition: KafkaError(KafkaError.LEADER_NOT_AVAILABLE)})
    return offsets
