"""Offsets by librdkafka's admin client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from ...domain.errors import UnknownTopicError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.offset_fetcher import OffsetFetcher
from .connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from ...domain.options import SourceOptions

UNKNOWN: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
)

COORDINATOR_MOVES: Final = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

COMMIT: Final = "a request to commit offsets"
RETRY_S: Final = 0.1

NOT_FOUND: Final = -1
"""The offset of a timestamp that no record reaches (``ListOffsetsResponse``)."""


@final
class ConfluentOffsetFetcher(OffsetFetcher):
    """Asks through one ``AdminClient``, made at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._connection = Connection(options)
        self._isolation_level = (
            IsolationLevel.READ_COMMITTED
            if options.reads_committed_only
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._made: Any = None

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        match subscription:
            case Assign(partitions):
                return self._described(subscription.topics) & partitions
            case Subscribe(topics):
                return self._described(topics, required=True)
            case SubscribePattern():
                return self._described(self._matching(subscription))

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._list_offsets(partitions, OffsetSpec.earliest())

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._list_offsets(partitions, OffsetSpec.latest())

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        specs = {
            partition: OffsetSpec.for_timestamp(timestamp)
            for partition, timestamp in timestamps.items()
        }
        return {
            partition: None if offset == NOT_FOUND else offset
            for partition, offset in self._query(specs)
        }

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        # The admin client's request for them ends the process where a coordinator answers that it
        # is not one any more (confluentinc/librdkafka#5040); a consumer's does not.
        group = {"group.id": group_id, "enable.auto.commit": "false"}
        consumer = self._connection.make(Consumer, group)
        try:
            found = self._committed(consumer, sorted(partitions))
        finally:
            consumer.close()
        return PartitionOffsets(
            (_ours(partition), partition.offset) for partition in found if partition.offset >= 0
        )

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        next_offsets = [_theirs(partition, offset) for partition, offset in offsets.items()]
        group = ConsumerGroupTopicPartitions(group_id, next_offsets)
        deadline = time.monotonic() + self._connection.timeout_s
        while (error := self._commit(group)) is not None:
            if error.code() not in COORDINATOR_MOVES or time.monotonic() > deadline:
                raise self._connection.error(COMMIT, error)
            # An admin client goes on asking the coordinator that it found first: a new one looks.
            self._made = None
            time.sleep(RETRY_S)

    def close(self) -> None:
        # librdkafka ends its threads when the last reference to a client goes.
        self._made = None

    def _matching(self, pattern: SubscribePattern) -> list[str]:
        listed = self._run(
            "a request for metadata", lambda admin, timeout: admin.list_topics(timeout=timeout)
        )
        return [topic for topic in listed.topics if pattern.matches(topic)]

    def _described(
        self, topics: Collection[str], *, required: bool = False
    ) -> frozenset[TopicPartition]:
        if not topics:
            return frozenset()
        answers = self._run(
            "a request for metadata",
            lambda admin, timeout: admin.describe_topics(
                TopicCollection(sorted(topics)), request_timeout=timeout
            ),
        )
        found: set[TopicPartition] = set()
        unknown = []
        for topic, answer in answers.items():
            description = self._known(f"a request for metadata of '{topic}'", answer)
            if description is None:
                unknown.append(topic)
            elif required or not description.is_internal:
                found.update(TopicPartition(topic, part.id) for part in description.partitions)
        if required and unknown:
            raise UnknownTopicError(unknown, "subscribe", self._connection.bootstrap_servers)
        return frozenset(found)

    def _list_offsets(
        self, partitions: Collection[TopicPartition], spec: OffsetSpec
    ) -> PartitionOffsets:
        return PartitionOffsets(self._query(dict.fromkeys(partitions, spec)))

    def _query(
        self, specs: Mapping[TopicPartition, OffsetSpec]
    ) -> Iterable[tuple[TopicPartition, int]]:
        if not specs:
            return
        answers = self._run(
            "a request for offsets",
            lambda admin, timeout: admin.list_offsets(
                {_theirs(partition): spec for partition, spec in specs.items()},
                isolation_level=self._isolation_level,
                request_timeout=timeout,
            ),
        )
        for partition, answer in answers.items():
            found = self._known(f"a request for the offsets of {_ours(partition)}", answer)
            if found is not None:
                yield _ours(partition), found.offset

    def _committed(
        self, consumer: Consumer, partitions: Sequence[TopicPartition]
    ) -> Sequence[ClientPartition]:
        request = "a request for committed offsets"
        wanted = [_theirs(partition) for partition in partitions]
        try:
            found = consumer.committed(wanted, timeout=self._connection.timeout_s)
        except KafkaException as error:
            consumer.poll(0)  # which says why it could not connect
            raise self._connection.error(request, error.args[0]) from error
        errors = [partition.error for partition in found if partition.error]
        if errors:
            raise self._connection.error(request, errors[0])
        return found

    def _commit(self, group: ConsumerGroupTopicPartitions) -> KafkaError | None:
        """Ask a group's coordinator once, and give what it has against it."""
        [answer] = self._run(
            COMMIT,
            lambda admin, timeout: admin.alter_consumer_group_offsets(
                [group], request_timeout=timeout
            ),
        ).values()
        try:
            partitions = answer.result().topic_partitions
        except KafkaException as error:
            self._made.poll(0)  # which says why it could not connect
            refusal: KafkaError = error.args[0]
            return refusal
        return next((partition.error for partition in partitions if partition.error), None)

    def _run(self, request: str, call: Callable[[Any, float], Any]) -> Any:
        if self._made is None:
            self._made = self._connection.make(AdminClient, {})
        try:
            return call(self._made, self._connection.timeout_s)
        except KafkaException as error:
            raise self._failure(request, error) from error

    def _known(self, request: str, answer: Future[Any]) -> Any | None:
        """Wait for an answer; ``None`` if it says that there is no such topic or partition."""
        try:
            return answer.result()
        except KafkaException as error:
            if error.args[0].code() in UNKNOWN:
                return None
            raise self._failure(request, error) from error

    def _failure(self, request: str, error: KafkaException) -> Exception:
        # The admin client says why it could not connect only to whoever polls it.
        self._made.poll(0)
        return self._connection.error(request, error.args[0])


def _theirs(partition: TopicPartition, offset: int | None = None) -> ClientPartition:
    if offset is None:
        return ClientPartition(partition.topic, partition.partition)
    return ClientPartition(partition.topic, partition.partition, offset)


def _ours(partition: ClientPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
