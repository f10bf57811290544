"""Descriptions of topics and rights by kafka-python's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from ...domain.cluster.topics import (
    DESCRIBED_SETTINGS,
    REPLICA_SELECTOR,
    Broker,
    PartitionDescription,
    TopicDescription,
)
from ...domain.security.rights import OPERATION_CODES, Operation, group_right, topic_right
from ...ports.cluster import ClusterDescriber
from .cluster_metadata import NO_LEADER, AdminRequests, topic_metadata
from .failures import RefusedError
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ...domain.options.source import SourceOptions

T = TypeVar("T")

METADATA: Final = "a request for metadata"
GROUPS: Final = "a request to describe a group"

_BROKER_RACK: Final = "broker.rack"

_MAX_GROUPS_VERSION: Final = 5
"""Later versions have no rights of groups that do not exist (KIP-1043)."""


@final
class KafkaPythonClusterDescriber(ClusterDescriber):
    """Asks brokers through one ``KafkaAdminClient``, connected at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        config, self._errors = client_settings(options.java)
        self._admin = AdminRequests(config, self._errors)

    def brokers(self) -> Sequence[Broker]:
        described = self._admin.send(METADATA, lambda admin: admin.describe_cluster())
        return sorted(
            Broker(each["broker_id"], each["host"], each["port"], each["rack"] or "")
            for each in described["brokers"]
        )

    def replica_selector(self) -> str | None:
        return self._optional(_replica_selector)

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        found: Mapping[int, tuple[int, int]]
        found = self._admin.send(
            METADATA,
            lambda admin: admin._manager.broker_version_data.api_versions,  # noqa: SLF001
        )
        return {int(key): (first, last) for key, (first, last) in found.items()}

    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        names = sorted(topics)
        if not names:
            return {}
        described = self._admin.send(
            METADATA, lambda admin: topic_metadata(admin, names, with_operations=True)
        )
        existing = self._existing(described)
        configs = self._optional(lambda admin: _configs(admin, [each.name for each in existing]))
        sizes = self._optional(lambda admin: _sizes(admin, existing))
        return {
            topic.name: TopicDescription(
                {
                    each.partition_index: _partition(
                        each, (sizes or {}).get((topic.name, each.partition_index))
                    )
                    for each in topic.partitions
                },
                (configs or {}).get(topic.name) or None,
                _operations(topic),
            )
            for topic in existing
        }

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        right = group_right(Operation.DESCRIBE, group_id)
        answer = self._admin.send(GROUPS, lambda admin: _described_group(admin, group_id), right)
        return _operations(answer)

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        def find(admin: Any) -> frozenset[Operation]:
            async def ask() -> None:
                await admin._find_coordinator_ids(  # noqa: SLF001
                    [transactional_id], key_type=CoordinatorType.TRANSACTION
                )

            try:
                admin._manager.run(ask)  # noqa: SLF001
            except kafka_errors.TransactionalIdAuthorizationFailedError:
                return frozenset()
            return frozenset({Operation.DESCRIBE})

        return self._admin.send("a request for a coordinator", find)

    def close(self) -> None:
        self._admin.close()

    def _existing(self, described: Iterable[Any]) -> list[Any]:
        """Return the topics that exist.

        :raises PysparkKafkaError: if the user may not describe one, or it has another error.
        """
        found = []
        for topic in described:
            error = kafka_errors.for_code(topic.error_code)
            if error is kafka_errors.NoError:
                found.append(topic)
            elif error is not kafka_errors.UnknownTopicOrPartitionError:
                rights = [topic_right(Operation.DESCRIBE, topic.name)]
                raise self._errors.request_error(f"{METADATA} of '{topic.name}'", error, rights)
        return found

    def _optional(self, call: Callable[[Any], T]) -> T | None:
        """Return what brokers can tell only if they are new enough, and the user may know."""
        try:
            with self._errors.one_deadline():
                return self._admin.send_once(call)
        except RefusedError:
            raise
        except kafka_errors.KafkaError:
            return None


def _partition(described: Any, size: int | None) -> PartitionDescription:
    leader = described.leader_id
    return PartitionDescription(
        None if leader in NO_LEADER else leader,
        frozenset(described.replica_nodes),
        frozenset(described.isr_nodes),
        size,
    )


def _operations(answer: Any) -> frozenset[Operation] | None:
    codes = answer.authorized_operations
    if codes is None:
        return None
    return frozenset(OPERATION_CODES[code] for code in codes if code in OPERATION_CODES)


def _configs(admin: Any, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return settings of each topic; none if the user may not describe its configuration."""
    resources = [
        ConfigResource(ConfigResourceType.TOPIC, topic, list(DESCRIBED_SETTINGS))
        for topic in topics
    ]
    found = admin.describe_configs(resources, config_filter="all").get("topic", {})
    return {
        topic: {name: str(each["value"]) for name, each in settings.items()}
        for topic, settings in found.items()
    }


def _replica_selector(admin: Any) -> str | None:
    """Return the setting of a broker; ``None`` if the user may not describe its configuration."""
    described = admin.describe_cluster()["brokers"]
    # A broker that is being started or has ended is fenced, and described since Kafka 4.0.
    broker = next(str(each["broker_id"]) for each in described if not each.get("is_fenced"))
    # Brokers before Kafka 2.4 have no selector: an answer without rights has no rack either.
    resource = ConfigResource(ConfigResourceType.BROKER, broker, [_BROKER_RACK, REPLICA_SELECTOR])
    found = admin.describe_configs([resource], config_filter="all")["broker"][broker]
    if _BROKER_RACK not in found:
        return None
    return found.get(REPLICA_SELECTOR, {}).get("value") or ""


def _sizes(admin: Any, topics: Iterable[Any]) -> dict[tuple[str, int], int]:
    """Return the bytes of the leader's log of each partition."""
    leaders = {
        (topic.name, each.partition_index): each.leader_id
        for topic in topics
        for each in topic.partitions
        if each.leader_id not in NO_LEADER
    }
    wanted: dict[str, list[int]] = {}
    for topic, partition in leaders:
        wanted.setdefault(topic, []).append(partition)
    answered = admin.describe_log_dirs(wanted, brokers=sorted(set(leaders.values())))
    return {
        (topic["name"], each["partition_index"]): each["partition_size"]
        for answer in answered
        for directory in answer["log_dirs"]
        for topic in directory["topics"]
        for each in topic["partitions"]
        if not each["is_future_key"]
        and leaders.get((topic["name"], each["partition_index"])) == answer["broker"]
    }


def _described_group(admin: Any, group_id: str) -> Any:
    """Return the group of a ``DescribeGroupsResponse``.

    :raises KafkaError: if the broker refuses the request.
    """

    async def ask() -> Any:
        coordinators = await admin._find_coordinator_ids([group_id])  # noqa: SLF001
        request = DescribeGroupsRequest(
            groups=[group_id], include_authorized_operations=True, max_version=_MAX_GROUPS_VERSION
        )
        return await admin._manager.send(request, node_id=coordinators[group_id])  # noqa: SLF001

    (group,) = admin._manager.run(ask).groups  # noqa: SLF001
    if group.error_code:
        raise kafka_errors.for_code(group.error_code)
    return group
