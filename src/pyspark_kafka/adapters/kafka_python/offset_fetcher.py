"""Offsets by kafka-python's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest, OffsetSpec
from kafka.structs import OffsetAndMetadata

from ...domain.errors import KafkaRequestError, UnknownTopicError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.security.rights import Operation, group_right, topic_right
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.reading import OffsetFetcher
from .cluster_metadata import AdminRequests, topic_metadata
from .failures import RETRIABLE_ERRORS
from .responses import NO_OFFSET, check_offsets, require_all
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.security.rights import Right

REQUEST: Final = "a request for offsets"


@final
class KafkaPythonOffsetFetcher(OffsetFetcher):
    """Asks the leaders of partitions through one ``KafkaAdminClient``, connected at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        config, self._errors = client_settings(options.java)
        self._isolation_level = IsolationLevel(options.reads_committed_only)
        self._leaders: dict[str, dict[int, int]] = {}
        self._admin = AdminRequests(config, self._errors)

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
        wanted = [_theirs(partition) for partition in sorted(partitions)]
        found = self._of_group(
            "a request for committed offsets",
            lambda admin: self._group_offsets(admin, group_id, wanted),
            group_right(Operation.DESCRIBE, group_id),
            *_topic_rights(Operation.DESCRIBE, partitions),
        )
        return PartitionOffsets(
            (_ours(partition), committed.offset)
            for partition, committed in found.items()
            if committed.offset >= 0
        ).restrict(partitions)

    def _group_offsets(
        self, admin: Any, group_id: str, wanted: list[ClientPartition]
    ) -> Mapping[ClientPartition, OffsetAndMetadata]:
        """Return the offset of each partition, -1 without one (``OffsetFetchResponse``)."""
        found: Mapping[ClientPartition, OffsetAndMetadata]
        found = admin.list_group_offsets({group_id: wanted}).get(group_id, {})
        offsets = {_ours(partition): committed.offset for partition, committed in found.items()}
        check_offsets(offsets, map(_ours, wanted), NO_OFFSET)
        return found

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        committed = {
            _theirs(partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }

        def alter(admin: Any) -> Mapping[ClientPartition, type[Exception]]:
            results: dict[ClientPartition, type[Exception]]
            results = admin.alter_group_offsets(group_id, committed)
            require_all(map(_ours, results), offsets)
            for error in results.values():
                if issubclass(error, (*RETRIABLE_ERRORS, kafka_errors.AuthorizationError)):
                    raise error
            return results

        results = self._of_group(
            "a request to commit offsets",
            alter,
            group_right(Operation.READ, group_id),
            *_topic_rights(Operation.READ, offsets),
        )
        failed = sorted(
            f"{_ours(partition)}: {error.__name__}"
            for partition, error in results.items()
            if error is not kafka_errors.NoError
        )
        if failed:
            raise KafkaRequestError("a request to commit offsets", ", ".join(failed))

    def close(self) -> None:
        self._admin.close()

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

    def _describe(self, topics: list[str] | None) -> list[Any]:
        """Return the metadata of topics, or of all: those of a ``MetadataResponse``."""
        answered = self._admin.send(
            "a request for metadata", lambda admin: topic_metadata(admin, topics)
        )
        asked = frozenset(topics or ())
        described = [each for each in answered if topics is None or each.name in asked]
        refused = kafka_errors.TopicAuthorizationFailedError
        hidden = sorted(topic.name for topic in described if topic.error_code == refused.errno)
        if hidden:
            rights = [topic_right(Operation.DESCRIBE, topic) for topic in hidden]
            raise self._errors.request_error("a request for metadata", refused, rights)
        self._leaders |= {
            topic.name: {
                each.partition_index: each.leader_id
                for each in topic.partitions
                if each.leader_id >= 0
            }
            for topic in described
            if not topic.error_code
        }
        return described

    def _query(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        with self._errors.one_deadline():
            return self._query_in_time(wanted)

    def _query_in_time(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        by_leader = self._by_leader(wanted)
        if by_leader:
            found = self._admin.send(
                REQUEST, lambda admin: self._ask_leaders(admin, wanted, by_leader)
            )
            if found is not None:
                return found
            self._leaders.clear()
        # One unknown partition fails kafka-python's whole call: ask for those that exist.
        existing = self._existing({partition.topic for partition in wanted}) & wanted.keys()
        if not existing:
            return {}
        specs = {partition: wanted[partition] for partition in existing}
        listed: dict[TopicPartition, int] = self._admin.send(
            REQUEST,
            lambda admin: self._list_offsets(admin, specs),
            *_topic_rights(Operation.DESCRIBE, existing),
        )
        return listed

    def _list_offsets(
        self, admin: Any, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> dict[TopicPartition, int]:
        answers = admin.list_partition_offsets(
            {_theirs(partition): spec for partition, spec in wanted.items()},
            isolation_level=self._isolation_level,
            timeout_ms=self._errors.timeout_ms,
        )
        listed = {_ours(partition): answer.offset for partition, answer in answers.items()}
        return _checked(listed, wanted)

    def _by_leader(
        self, wanted: Iterable[TopicPartition]
    ) -> dict[int, dict[str, list[TopicPartition]]]:
        """Return partitions by leader and topic; nothing if the leader of one is not known."""
        by_leader: dict[int, dict[str, list[TopicPartition]]] = {}
        for partition in wanted:
            leader = self._leaders.get(partition.topic, {}).get(partition.partition)
            if leader is None:
                return {}
            by_topic = by_leader.setdefault(leader, {})
            by_topic.setdefault(partition.topic, []).append(partition)
        return by_leader

    def _ask_leaders(
        self,
        admin: Any,
        wanted: Mapping[TopicPartition, int | OffsetSpec],
        by_leader: Mapping[int, Mapping[str, Iterable[TopicPartition]]],
    ) -> dict[TopicPartition, int] | None:
        """Ask those who led the partitions a moment ago: one round trip, to all at once.

        ``None`` if one does not lead any more, or cannot be reached.
        ``list_partition_offsets`` first asks who leads, and then one broker after another.
        """

        async def ask() -> list[Any]:
            requests = [
                admin._manager.send(self._offsets_request(topics, wanted), node_id=leader)  # noqa: SLF001
                for leader, topics in by_leader.items()
            ]
            return [await request for request in requests]

        try:
            answered = _offsets(admin._manager.run(ask))  # noqa: SLF001
            listed = {
                each: answered[each.topic][each.partition]
                for each in wanted
                if each.partition in answered.get(each.topic, {})
            }
            return _checked(listed, wanted)
        except kafka_errors.KafkaError:
            return None

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

    def _of_group(self, request: str, call: Callable[[Any], Any], *rights: Right) -> Any:
        def ask(admin: Any) -> Any:
            try:
                return call(admin)
            except RETRIABLE_ERRORS:
                # An admin client goes on asking the coordinator that it found first, moved or gone
                # (kafka-python's `ClusterMetadata` keeps it): a new one looks.
                self.close()
                raise

        return self._admin.send(request, ask, *rights)


def _partitions(topic: Any) -> list[TopicPartition]:
    if topic.error_code:
        error = kafka_errors.for_code(topic.error_code)
        raise KafkaRequestError(f"a request for metadata of '{topic.name}'", error.__name__)
    return [TopicPartition(topic.name, each.partition_index) for each in topic.partitions]


def _offsets(responses: Iterable[Any]) -> dict[str, dict[int, int]]:
    """Return the offset of each topic's partitions from responses of kafka-python.

    :raises KafkaError: if one has an error.
    """
    offsets: dict[str, dict[int, int]] = {}
    for response in responses:
        for topic in response.topics:
            of_topic = offsets.setdefault(topic.name, {})
            for each in topic.partitions:
                if each.error_code:
                    raise kafka_errors.for_code(each.error_code)
                of_topic[each.partition_index] = each.offset
    return offsets


def _checked(
    listed: Mapping[TopicPartition, int], wanted: Mapping[TopicPartition, int | OffsetSpec]
) -> dict[TopicPartition, int]:
    """Return the offsets that were asked for.

    :raises KafkaProtocolError: if a partition has none, or -1 and it is not that of a timestamp.
    """
    found = {each: offset for each, offset in listed.items() if each in wanted}
    is_by_time = not any(isinstance(spec, OffsetSpec) for spec in wanted.values())
    check_offsets(found, wanted, NO_OFFSET if is_by_time else 0)
    return found


def _topic_rights(operation: Operation, partitions: Iterable[TopicPartition]) -> Iterable[Right]:
    topics = sorted({partition.topic for partition in partitions})
    return [topic_right(operation, topic) for topic in topics]


def _theirs(partition: TopicPartition) -> ClientPartition:
    return ClientPartition(partition.topic, partition.partition)


def _ours(partition: ClientPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
