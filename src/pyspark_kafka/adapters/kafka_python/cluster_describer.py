"""Descriptions of brokers, topics and rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from kafka import errors as kafka_errors
from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
)
from kafka.protocol.metadata import CoordinatorType

from ...domain.cluster.topics import (
    DESCRIBED_SETTINGS,
    REPLICA_SELECTOR,
    Broker,
    PartitionDescription,
    TopicDescription,
)
from ...domain.security.rights import Operation, group_right, operations_of
from ...ports.cluster import ClusterDescriber
from .cluster_metadata import NO_LEADER, ClusterMetadata
from .coordinator_requests import RETRY_S, CoordinatorRequests
from .failures import RefusedError
from .responses import reading
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ...domain.options.source import SourceOptions

T = TypeVar("T")

METADATA: Final = "a request for metadata"
GROUPS: Final = "a request to describe a group"

_BROKER_RACK: Final = "broker.rack"
_TOPIC: Final = 2
_BROKER: Final = 4
"""Kinds of resources (``ConfigResource.Type``)."""

_MAX_GROUPS_VERSION: Final = 5
"""Later versions have no rights of groups that do not exist (KIP-1043)."""


@final
class KafkaPythonClusterDescriber(ClusterDescriber):
    """Asks brokers; connects at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        config, self._errors = client_settings(options.java)
        self._metadata = ClusterMetadata(config, self._errors)
        self._coordinators = CoordinatorRequests(self._metadata, self._errors)

    def brokers(self) -> Sequence[Broker]:
        with self._errors.mapped_errors(METADATA):
            return self._metadata.brokers()

    def replica_selector(self) -> str | None:
        return self._optional(self._find_replica_selector)

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        with self._errors.mapped_errors(METADATA):
            self._metadata.refresh()
            found = self._metadata.api_versions()
        return {int(key): (first, last) for key, (first, last) in found.items()}

    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        names = sorted(topics)
        if not names:
            return {}
        with self._errors.mapped_errors(METADATA):
            described = self._metadata.describe(names, with_operations=True)
        existing = self._existing(described)
        configs = self._optional(
            lambda: _configs(
                self._metadata.send(
                    _configs_request(_TOPIC, [each.name for each in existing], DESCRIBED_SETTINGS)
                )
            )
        )
        sizes = self._optional(lambda: self._sizes(existing))
        return {
            topic.name: TopicDescription(
                {
                    each.partition_index: _partition(
                        each, (sizes or {}).get((topic.name, each.partition_index))
                    )
                    for each in topic.partitions
                },
                (configs or {}).get(topic.name) or None,
                operations_of(topic.authorized_operations),
            )
            for topic in existing
        }

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        right = group_right(Operation.DESCRIBE, group_id)
        request = DescribeGroupsRequest(
            groups=[group_id], include_authorized_operations=True, max_version=_MAX_GROUPS_VERSION
        )
        with self._errors.mapped_errors(GROUPS, right):
            answer = self._coordinators.ask_coordinator(
                group_id, request, CoordinatorType.GROUP, _check_group
            )
        return operations_of(answer.groups[0].authorized_operations)

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        def find() -> frozenset[Operation]:
            try:
                self._coordinators.coordinator(transactional_id, CoordinatorType.TRANSACTION)
            except kafka_errors.TransactionalIdAuthorizationFailedError:
                return frozenset()
            return frozenset({Operation.DESCRIBE})

        with self._errors.mapped_errors("a request for a coordinator"):
            return self._errors.retry(find, RETRY_S)

    def close(self) -> None:
        self._metadata.close()

    def _existing(self, described: Iterable[Any]) -> list[Any]:
        """Return the topics that exist.

        :raises KafkaRequestError: if one has another error.
        """
        found = []
        for topic in described:
            error = kafka_errors.for_code(topic.error_code)
            if error is kafka_errors.NoError:
                found.append(topic)
            elif error is not kafka_errors.UnknownTopicOrPartitionError:
                raise self._errors.request_error(f"{METADATA} of '{topic.name}'", error, ())
        return found

    def _optional(self, call: Callable[[], T]) -> T | None:
        """Return a call's result; ``None`` if the broker or the user's rights do not allow it."""
        try:
            with self._errors.one_deadline(), reading():
                return call()
        except RefusedError:
            raise
        except (kafka_errors.KafkaError, OSError):
            return None

    def _find_replica_selector(self) -> str | None:
        """Return a setting of a broker; ``None`` if the user may not describe its configuration."""
        broker = self._metadata.brokers()[0].broker_id
        name = str(broker)
        # Brokers before Kafka 2.4 have no selector: an answer without rights does not have the rack
        # either.
        request = _configs_request(_BROKER, [name], (_BROKER_RACK, REPLICA_SELECTOR))
        found = _configs(self._metadata.send(request, broker))[name]
        return found.get(REPLICA_SELECTOR, "") if _BROKER_RACK in found else None

    def _sizes(self, topics: Iterable[Any]) -> dict[tuple[str, int], int]:
        """Return the bytes of the leader's log of each partition."""
        led: dict[int, dict[str, list[int]]] = {}
        for topic in topics:
            for each in topic.partitions:
                if each.leader_id not in NO_LEADER:
                    numbers = led.setdefault(each.leader_id, {}).setdefault(topic.name, [])
                    numbers.append(each.partition_index)
        described = DescribeLogDirsRequest.DescribableLogDirTopic
        answered = self._metadata.send_all(
            {
                leader: DescribeLogDirsRequest(
                    topics=[
                        described(topic=name, partitions=numbers)
                        for name, numbers in of_leader.items()
                    ]
                )
                for leader, of_leader in led.items()
            }
        )
        return {
            (topic.name, each.partition_index): each.partition_size
            for answer in answered.values()
            for directory in answer.results
            for topic in directory.topics
            for each in topic.partitions
            if not each.is_future_key
        }


def _partition(described: Any, size: int | None) -> PartitionDescription:
    leader = described.leader_id
    return PartitionDescription(
        None if leader in NO_LEADER else leader,
        frozenset(described.replica_nodes),
        frozenset(described.isr_nodes),
        size,
    )


def _configs_request(kind: int, names: Iterable[str], settings: Iterable[str]) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=list(settings))
            for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _configs(answer: Any) -> dict[str, dict[str, str]]:
    """Return the settings that have a value, by resource and name.

    :raises KafkaError: if one is refused.
    """
    for result in answer.results:
        if result.error_code:
            raise kafka_errors.for_code(result.error_code)
    return {
        result.resource_name: {
            each.name: each.value for each in result.configs if each.value is not None
        }
        for result in answer.results
    }


def _check_group(answer: Any) -> Any:
    """Return a ``DescribeGroupsResponse`` with one group.

    :raises KafkaError: if the broker refuses the request.
    """
    with reading():
        (group,) = answer.groups
    if group.error_code:
        raise kafka_errors.for_code(group.error_code)
    return answer
