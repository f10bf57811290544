"""Offsets of partitions and of groups."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest, OffsetSpec

from ...domain.errors import KafkaRequestError, UnknownTopicError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.security.rights import Operation, group_rights, topic_rights
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.reading import OffsetFetcher
from .cluster_metadata import ClusterMetadata
from .coordinator_requests import CoordinatorRequests
from .failures import RETRIABLE_ERRORS
from .responses import NO_OFFSET, answered_partitions, check_offsets, reading
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ...domain.options.source import SourceOptions

REQUEST: Final = "a request for offsets"
RETRY_S: Final = 0.1


@final
class KafkaPythonOffsetFetcher(OffsetFetcher):
    """Asks the leaders of partitions, all at the same time; connects at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        config, self._errors = client_settings(options.java)
        self._isolation_level = IsolationLevel(options.reads_committed_only)
        self._metadata = ClusterMetadata(config, self._errors)
        self._groups = CoordinatorRequests(self._metadata, self._errors)

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        match subscription:
            case Assign(partitions):
                return self._existing(subscription.topics) & partitions
            case Subscribe(topics):
                return self._existing(topics, required=True)
            case SubscribePattern():
                return frozenset(
                    partition
                    for topic in self._describe(None)
                    if not topic.is_internal and subscription.matches(topic.name)
                    for partition in _partitions(topic)
                )

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(self._query(dict.fromkeys(partitions, OffsetSpec.EARLIEST)))

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(self._query(dict.fromkeys(partitions, OffsetSpec.LATEST)))

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return {
            partition: None if offset == NO_OFFSET else offset
            for partition, offset in self._query(timestamps).items()
        }

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        rights = group_rights(Operation.DESCRIBE, group_id, partitions)
        with self._errors.mapped_errors("a request for committed offsets", *rights):
            found = self._groups.committed_offsets(group_id, sorted(partitions), is_stable=False)
        return PartitionOffsets((partition, each.offset) for partition, each in found.items())

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        request = "a request to commit offsets"
        rights = group_rights(Operation.READ, group_id, offsets)
        raised = (*RETRIABLE_ERRORS, kafka_errors.AuthorizationError)
        with self._errors.mapped_errors(request, *rights):
            refused = self._groups.commit_offsets(group_id, offsets, raised)
        if refused:
            failed = sorted(
                f"{partition}: {error.__name__}" for partition, error in refused.items()
            )
            raise KafkaRequestError(request, ", ".join(failed))

    def close(self) -> None:
        self._metadata.close()

    def _existing(
        self, topics: Collection[str], *, required: bool = False
    ) -> frozenset[TopicPartition]:
        described = self._describe(sorted(topics))
        code = kafka_errors.UnknownTopicOrPartitionError.errno
        unknown = [topic.name for topic in described if topic.error_code == code]
        if required and unknown:
            raise UnknownTopicError(unknown, "subscribe", self._errors.bootstrap_servers)
        return frozenset(
            partition
            for topic in described
            if topic.name not in unknown
            for partition in _partitions(topic)
        )

    def _describe(self, topics: Collection[str] | None) -> list[Any]:
        """Return the metadata of topics, or of all: those of a ``MetadataResponse``."""
        with self._errors.mapped_errors("a request for metadata"):
            return self._metadata.describe(topics)

    def _query(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        with self._errors.one_deadline():
            # The last known leaders are asked at once: they mostly still lead the partitions.
            if self._by_leader(wanted):
                with suppress(kafka_errors.KafkaError, OSError):
                    return self._ask_leaders(wanted)
            existing = self._existing({partition.topic for partition in wanted}) & wanted.keys()
            specs = {partition: wanted[partition] for partition in existing}
            rights = topic_rights(Operation.DESCRIBE, existing)
            with self._errors.mapped_errors(REQUEST, *rights):
                return self._errors.retry(partial(self._ask_new_leaders, specs), RETRY_S)

    def _ask_new_leaders(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        """Ask the current leaders of partitions that exist."""
        if wanted and not self._by_leader(wanted):
            self._describe({partition.topic for partition in wanted})
        if wanted and not self._by_leader(wanted):
            raise kafka_errors.LeaderNotAvailableError
        return self._ask_leaders(wanted)

    def _by_leader(
        self, wanted: Iterable[TopicPartition]
    ) -> dict[int, dict[str, list[TopicPartition]]]:
        """Return partitions by leader and topic; nothing if the leader of one is not known."""
        by_leader: dict[int, dict[str, list[TopicPartition]]] = {}
        for partition in wanted:
            leader = self._metadata.view.leadership(partition).node
            if leader is None:
                return {}
            by_topic = by_leader.setdefault(leader, {})
            by_topic.setdefault(partition.topic, []).append(partition)
        return by_leader

    def _ask_leaders(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        """Ask all leaders that are known at the same time.

        :raises KafkaError: if one no longer leads, or cannot be reached.
        """
        requests = {
            leader: self._offsets_request(topics, wanted)
            for leader, topics in self._by_leader(wanted).items()
        }
        try:
            offsets = _offsets(self._metadata.send_all(requests).values(), wanted)
        except (kafka_errors.KafkaError, OSError):
            self._metadata.forget_leaders()
            raise
        # Only a time that no record reaches has none.
        is_by_time = not any(isinstance(spec, OffsetSpec) for spec in wanted.values())
        check_offsets(offsets, wanted, NO_OFFSET if is_by_time else 0)
        return offsets

    def _offsets_request(
        self,
        topics: Mapping[str, Iterable[TopicPartition]],
        wanted: Mapping[TopicPartition, int | OffsetSpec],
    ) -> Any:
        topic = ListOffsetsRequest.ListOffsetsTopic
        return ListOffsetsRequest(
            isolation_level=self._isolation_level.value,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        topic.ListOffsetsPartition(
                            partition_index=each.partition, timestamp=int(wanted[each])
                        )
                        for each in partitions
                    ],
                )
                for name, partitions in topics.items()
            ],
            min_version=ListOffsetsRequest.min_version_for_isolation_level(self._isolation_level),
        )


def _partitions(topic: Any) -> list[TopicPartition]:
    if topic.error_code:
        error = kafka_errors.for_code(topic.error_code)
        raise KafkaRequestError(f"a request for metadata of '{topic.name}'", error.__name__)
    return [TopicPartition(topic.name, each.partition_index) for each in topic.partitions]


def _offsets(
    responses: Iterable[Any], wanted: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return those of the requested offsets that the responses have.

    :raises KafkaError: if one has an error.
    """
    offsets: dict[TopicPartition, int] = {}
    with reading():
        for partition, each in chain.from_iterable(map(answered_partitions, responses)):
            if each.error_code:
                raise kafka_errors.for_code(each.error_code)
            offsets[partition] = each.offset
    return {each: offset for each, offset in offsets.items() if each in wanted}
