"""Offsets by kafka-python's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors
from kafka.protocol.consumer import IsolationLevel, OffsetSpec
from kafka.structs import OffsetAndMetadata

from ...domain.errors import KafkaRequestError, UnknownTopicError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.security.rights import Operation, group_right, topic_right
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.offset_fetcher import OffsetFetcher
from .cluster_metadata import connect
from .failures import RETRIABLE_ERRORS
from .responses import NO_OFFSET, check_offsets, check_topics, reading, require_all
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping

    from ...domain.options import SourceOptions
    from ...domain.security.rights import Right

RETRY_S: Final = 0.1

REQUEST: Final = "a request for offsets"


@final
class KafkaPythonOffsetFetcher(OffsetFetcher):
    """Asks the leaders of partitions through one ``KafkaAdminClient``, connected at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        self._config, self._errors = client_settings(dict(options.kafka))
        self._isolation_level = IsolationLevel(options.reads_committed_only)
        self._leaders: dict[TopicPartition, int] = {}
        self._connected: Any = None

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
                    if not topic["is_internal"] and subscription.matches(topic["name"])
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
            for partition, offset in self._query(timestamps)
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
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def _existing(
        self, topics: Collection[str], *, required: bool = False
    ) -> frozenset[TopicPartition]:
        described = self._describe(sorted(topics))
        code = kafka_errors.UnknownTopicOrPartitionError.errno
        unknown = [topic["name"] for topic in described if topic["error_code"] == code]
        if required and unknown:
            raise UnknownTopicError(unknown, "subscribe", self._errors.bootstrap_servers)
        return frozenset(
            partition
            for topic in described
            if topic["name"] not in unknown
            for partition in _partitions(topic)
        )

    def _describe(self, topics: list[str] | None) -> list[dict[str, Any]]:
        def ask(admin: Any) -> list[dict[str, Any]]:
            answered: list[dict[str, Any]] = admin.describe_topics(topics)
            check_topics(answered, topics)
            return answered

        answered: list[dict[str, Any]] = self._run("a request for metadata", ask)
        described = [each for each in answered if topics is None or each["name"] in topics]
        refused = kafka_errors.TopicAuthorizationFailedError
        hidden = sorted(
            topic["name"] for topic in described if topic["error_code"] == refused.errno
        )
        if hidden:
            rights = [topic_right(Operation.DESCRIBE, topic) for topic in hidden]
            raise self._errors.request_error("a request for metadata", refused, rights)
        self._leaders |= {
            TopicPartition(topic["name"], partition["partition_index"]): partition["leader_id"]
            for topic in described
            if not topic["error_code"]
            for partition in topic["partitions"]
            if partition["leader_id"] >= 0
        }
        return described

    def _query(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> list[tuple[TopicPartition, int]]:
        with self._errors.one_deadline():
            return self._query_in_time(wanted)

    def _query_in_time(
        self, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> list[tuple[TopicPartition, int]]:
        if wanted and wanted.keys() <= self._leaders.keys():
            found = self._run(REQUEST, lambda admin: self._ask_leaders(admin, wanted))
            if found is not None:
                return _only(found, wanted)
            self._leaders.clear()
        # One unknown partition fails kafka-python's whole call: ask for those that exist.
        existing = self._existing({partition.topic for partition in wanted}) & wanted.keys()
        if not existing:
            return []
        specs = {partition: wanted[partition] for partition in existing}
        found = self._run(
            REQUEST,
            lambda admin: self._list_offsets(admin, specs),
            *_topic_rights(Operation.DESCRIBE, existing),
        )
        return _only(found, wanted)

    def _list_offsets(
        self, admin: Any, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> list[tuple[TopicPartition, int]]:
        answers = admin.list_partition_offsets(
            {_theirs(partition): spec for partition, spec in wanted.items()},
            isolation_level=self._isolation_level,
            timeout_ms=self._errors.timeout_ms,
        )
        found = [(_ours(partition), answer.offset) for partition, answer in answers.items()]
        _check_found(found, wanted)
        return found

    def _ask_leaders(
        self, admin: Any, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> list[tuple[TopicPartition, int]] | None:
        """Ask those who led the partitions a moment ago: one round trip, to all at once.

        ``None`` if one does not lead any more, or cannot be reached.
        ``list_partition_offsets`` first asks who leads, and then one broker after another.
        """
        by_leader: dict[int, dict[ClientPartition, int | OffsetSpec]] = {}
        for partition, spec in wanted.items():
            by_leader.setdefault(self._leaders[partition], {})[_theirs(partition)] = spec

        async def ask() -> list[tuple[TopicPartition, int]]:
            manager = admin._manager  # noqa: SLF001
            requests = [
                manager.send(
                    admin._list_partition_offsets_request(specs, self._isolation_level),  # noqa: SLF001
                    node_id=leader,
                )
                for leader, specs in by_leader.items()
            ]
            answers = [
                admin._list_partition_offsets_process_response(await request)  # noqa: SLF001
                for request in requests
            ]
            return [
                (_ours(partition), found.offset)
                for answer in answers
                for partition, found in answer.items()
            ]

        try:
            found: list[tuple[TopicPartition, int]] = admin._manager.run(ask)  # noqa: SLF001
            _check_found(found, wanted)
        except kafka_errors.KafkaError:
            return None
        return found

    def _of_group(self, request: str, call: Callable[[Any], Any], *rights: Right) -> Any:
        def ask(admin: Any) -> Any:
            try:
                return call(admin)
            except RETRIABLE_ERRORS:
                # An admin client goes on asking the coordinator that it found first, moved or gone
                # (kafka-python's `ClusterMetadata` keeps it): a new one looks.
                self.close()
                raise

        return self._run(request, ask, *rights)

    def _run(self, request: str, call: Callable[[Any], Any], *rights: Right) -> Any:
        with self._errors.mapped_errors(request, *rights):
            # The admin client does not retry while a coordinator is being found or a connection
            # comes back.
            return self._errors.retry(lambda: self._read(call), RETRY_S)

    def _read(self, call: Callable[[Any], Any]) -> Any:
        with reading():
            return call(self._admin())

    def _admin(self) -> Any:
        if self._connected is None:
            self._connected = connect(KafkaAdminClient, self._config, self._errors)
        return self._connected


def _partitions(topic: dict[str, Any]) -> Iterable[TopicPartition]:
    if topic["error_code"]:
        error = kafka_errors.for_code(topic["error_code"])
        raise KafkaRequestError(f"a request for metadata of '{topic['name']}'", error.__name__)
    return [
        TopicPartition(topic["name"], partition["partition_index"])
        for partition in topic["partitions"]
    ]


def _check_found(
    found: Iterable[tuple[TopicPartition, int]], wanted: Mapping[TopicPartition, int | OffsetSpec]
) -> None:
    """Check that each partition has an offset, or none only for a timestamp."""
    offsets = dict(_only(found, wanted))
    is_by_time = not any(isinstance(spec, OffsetSpec) for spec in wanted.values())
    check_offsets(offsets, wanted, NO_OFFSET if is_by_time else 0)


def _only(
    found: Iterable[tuple[TopicPartition, int]], wanted: Container[TopicPartition]
) -> list[tuple[TopicPartition, int]]:
    """Return the offsets without those that were not asked for."""
    return [(partition, offset) for partition, offset in found if partition in wanted]


def _topic_rights(operation: Operation, partitions: Iterable[TopicPartition]) -> Iterable[Right]:
    topics = sorted({partition.topic for partition in partitions})
    return [topic_right(operation, topic) for topic in topics]


def _theirs(partition: TopicPartition) -> ClientPartition:
    return ClientPartition(partition.topic, partition.partition)


def _ours(partition: ClientPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
