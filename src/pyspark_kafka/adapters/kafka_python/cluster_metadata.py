"""The cluster's metadata: leaders, their epochs, and the ids of topics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.metadata import MetadataRequest

from ...domain.cluster.cluster_view import ClusterView, Leadership, TopicView
from ...domain.cluster.metadata_age import MetadataAge
from ...domain.cluster.topics import Broker
from ...domain.cluster.topics_in_use import TopicsInUse
from ...domain.reading.leader_epochs import NO_EPOCH
from ...domain.security.rights import Operation, topic_right
from .broker_requests import BrokerRequests
from .failures import RefusedError, reason_of
from .responses import check_topics, reading, require_all

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from ...domain.cluster.backoff import Address
    from ...domain.topic_partition import TopicPartition
    from .failures import ErrorMapper

_HIDDEN: Final = kafka_errors.TopicAuthorizationFailedError

NO_LEADER: Final = (None, -1)
"""The leader of a partition without one."""

_EPOCHS_VERSION: Final = 9
"""The first version of metadata with true epochs: brokers before Kafka 2.4 may name an old one
(KAFKA-9212)."""

_IDS_VERSION: Final = 10

_LAG_S: Final = 60.0
"""Longer than brokers lag behind the cluster's metadata."""


@final
class ClusterMetadata(BrokerRequests):
    """Finds leaders and sends requests to them, in the thread that calls."""

    def __init__(
        self, config: Mapping[str, Any], errors: ErrorMapper, *, for_writing: bool = False
    ) -> None:
        """Connect to nothing yet; ``config`` is complete.

        A writer uses many topics at once, and the cluster may create those that are missing.
        """
        super().__init__(config, errors)
        # Reading must not create a deleted topic again.
        self._for_writing = for_writing
        self.in_use = TopicsInUse(keeps_all=for_writing)
        self._age = MetadataAge(config["metadata_max_age_ms"] / 1_000)
        self._asked: Address | None = None
        self._deleted: dict[UUID, float] = {}

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id, ``None`` while there is none; raise as ``check_right``."""
        self.in_use.use(partition.topic)
        if self._age.is_stale(partition) or self.view.leadership(partition).node is None:
            self.refresh()
            self.check_right(partition.topic)
        return self.view.leadership(partition).node

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, 0 if there is none; as ``check_right``."""
        self.in_use.use(topic)
        if not self.known_partition_count(topic):
            self.refresh()
        self.check_right(topic)
        return len(self.view.topic(topic).partitions)

    def known_partition_count(self, topic: str) -> int:
        """Return the same by the last metadata, 0 if they are too old or do not have the topic."""
        return 0 if self.is_outdated else len(self.view.topic(topic).partitions)

    def check_right(self, topic: str) -> None:
        """Check that the user may know a topic, by the last metadata.

        :raises RefusedError: with the missing right; one to write includes that to describe.
        :raises InvalidTopicError: if no topic can have the name.
        """
        error = kafka_errors.for_code(self.view.topic(topic).error_code)
        if error is _HIDDEN:
            raise self._hidden([topic])
        if error is kafka_errors.InvalidTopicError:
            raise error(f"no topic can be named '{topic}'")

    def refresh(self, topics: Iterable[str] = ()) -> None:
        """Request the metadata of these topics and of those in use."""
        self.in_use.add(topics)
        if self._age.asks(time.monotonic()):
            self.ask_last(self._asked)
        self._request(sorted(self.in_use.names))
        self._age.received(time.monotonic())

    def describe(
        self, topics: Collection[str] | None, *, with_operations: bool = False
    ) -> list[Any]:
        """Return topics, ``None`` for all, as a ``MetadataResponse`` has them.

        :raises RefusedError: with the missing rights, if the user must not know a topic.
        :raises KafkaProtocolError: if it leaves out a topic.
        """
        described = self._request(topics, with_operations=with_operations)
        with reading():
            check_topics(described)
            require_all((topic.name for topic in described), topics or ())
        asked = None if topics is None else frozenset(topics)
        described = [each for each in described if asked is None or each.name in asked]
        hidden = [topic.name for topic in described if topic.error_code == _HIDDEN.errno]
        if hidden:
            raise self._hidden(hidden)
        return described

    def _hidden(self, topics: Iterable[str]) -> RefusedError:
        operation = Operation.WRITE if self._for_writing else Operation.DESCRIBE
        rights = [topic_right(operation, topic) for topic in sorted(topics)]
        return RefusedError(self._errors.request_error("a request for metadata", _HIDDEN, rights))

    def _request(self, topics: Iterable[str] | None, *, with_operations: bool = False) -> Any:
        topic = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(
            topics=None if topics is None else [topic(name=name) for name in topics],
            allow_auto_topic_creation=self._for_writing,
            include_topic_authorized_operations=with_operations,
        )

        def check(answer: Any) -> None:
            with reading():
                now = time.monotonic()
                deleted = {each for each, until in self._deleted.items() if now < until}
                self.learn(view_of(answer, self.view, deleted))

        try:
            self._asked, answer = self.ask_any(request, check)
        except (kafka_errors.KafkaProtocolError, kafka_errors.IncompatibleBrokerVersion) as error:
            if self.view.brokers:
                raise
            # Nothing that listens there is a broker.
            raise kafka_errors.KafkaConnectionError(reason_of(error)) from error
        return answer.topics

    @property
    def source(self) -> int | None:
        """The broker that the last metadata are of; ``None`` if that is not known."""
        return None if self._asked is None else self.view.node_at(self._asked)

    @property
    def is_outdated(self) -> bool:
        """Whether the last metadata are older than ``metadata.max.age.ms``."""
        return self._age.is_outdated(time.monotonic())

    def ask_others_first(self, node: int) -> None:
        """Request metadata of other brokers than one that did not answer a fetch."""
        self.ask_last(self.view.address(node))

    def nodes(self) -> list[int]:
        """Return the node ids of all brokers."""
        if not self.view.brokers:
            self.refresh()
        return list(self.view.brokers)

    def brokers(self) -> list[Broker]:
        """Return all brokers."""
        self.refresh()
        return sorted(self.view.brokers.values())

    def forget_leaders(self) -> None:
        """Know no leader until there are new metadata."""
        self.view = ClusterView(self.view.brokers)

    def note_deleted(self, topic_id: UUID | None) -> None:
        """Take no topic of this id for the one of its name, for as long as brokers lag.

        If those that lag were the ones that said so, it is the topic, and is found again then.
        """
        if topic_id is not None:
            self._deleted[topic_id] = time.monotonic() + _LAG_S

    def invalidate(self, partition: TopicPartition) -> None:
        """Refresh the metadata before the partition's leader is returned again."""
        self._age.invalidate(partition)


def view_of(
    answer: Any, earlier: ClusterView, deleted: Collection[UUID] = frozenset()
) -> ClusterView:
    """Return the view of a cluster by a ``MetadataResponse``, without topics that were deleted.

    :raises MetadataEmptyBrokerList: if it names no broker.
    """
    if not answer.brokers:
        raise kafka_errors.MetadataEmptyBrokerList("the metadata name no broker")
    return ClusterView(
        {
            each.node_id: Broker(each.node_id, each.host, each.port, each.rack or "")
            for each in answer.brokers
        },
        {
            each.name: topic
            for each in answer.topics
            if (topic := _topic(each, answer.API_VERSION, earlier)).topic_id not in deleted
        },
    )


def _topic(described: Any, version: int, earlier: ClusterView) -> TopicView:
    known = earlier.topic(described.name).topic_id
    found = described.topic_id if version >= _IDS_VERSION else known
    topic_id = found if found is not None and found.int else None
    # Epochs of a topic that was created again begin anew.
    is_same = known in (None, topic_id)
    has_epochs = version >= _EPOCHS_VERSION and is_same
    leaders = {
        each.partition_index: Leadership(
            None if each.leader_id in NO_LEADER else each.leader_id,
            each.leader_epoch if has_epochs else NO_EPOCH,
        )
        for each in (() if described.error_code else described.partitions)
    }
    return TopicView(leaders, topic_id, described.error_code)
