"""Descriptions of topics and rights by librdkafka's admin client."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its types are partial
    ConfigResource,
    ResourceType,
)

from ...domain.cluster.topics import (
    DESCRIBED_SETTINGS,
    REPLICA_SELECTOR,
    Broker,
    PartitionDescription,
    TopicDescription,
)
from ...domain.security.rights import Operation, group_right, operations_of, topic_right
from ...ports.cluster import ClusterDescriber
from .admin import METADATA, RETRY_S, AdminSession, result_of
from .cluster import Cluster
from .error_codes import COORDINATOR_ERRORS, UNKNOWN_TOPIC_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from ...domain.options.source import SourceOptions

K = TypeVar("K")

GROUPS: Final = "a request to describe a group"


@final
class ConfluentClusterDescriber(ClusterDescriber):
    """Uses one ``AdminClient``, created at first use. librdkafka does not return sizes."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._cluster = Cluster(options)
        self._session = AdminSession(self._cluster)

    def brokers(self) -> Sequence[Broker]:
        answer = self._answers(
            lambda admin, timeout: {"": admin.describe_cluster(request_timeout=timeout)}
        )[""]
        if isinstance(answer, KafkaError):
            raise self._session.error(METADATA, answer)
        return sorted(
            Broker(node.id, node.host, node.port, node.rack or "") for node in answer.nodes
        )

    def replica_selector(self) -> str | None:
        with self._cluster.settings.one_deadline():
            broker = ConfigResource(ResourceType.BROKER, str(self.brokers()[0].broker_id))
            (found,) = self._answers(
                lambda admin, timeout: admin.describe_configs([broker], request_timeout=timeout)
            ).values()
        if isinstance(found, KafkaError):
            return None
        # Brokers before Kafka 2.4 have none.
        return (REPLICA_SELECTOR in found and found[REPLICA_SELECTOR].value) or ""

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        return None

    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        if not topics:
            return {}
        with self._cluster.settings.one_deadline():
            wanted = TopicCollection(sorted(topics))
            answers = self._answers(
                lambda admin, timeout: admin.describe_topics(
                    wanted, include_authorized_operations=True, request_timeout=timeout
                )
            )
            found: dict[str, Any] = {}
            for topic, answer in answers.items():
                if not isinstance(answer, KafkaError):
                    found[topic] = answer
                elif answer.code() not in UNKNOWN_TOPIC_ERRORS:
                    right = topic_right(Operation.DESCRIBE, topic)
                    raise self._session.error(f"{METADATA} of '{topic}'", answer, right)
            configs = self._configs(found)
        return {
            topic: TopicDescription(
                {each.id: _partition(each) for each in described.partitions},
                configs.get(topic),
                _operations(described),
            )
            for topic, described in found.items()
        }

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        with self._cluster.settings.one_deadline() as deadline:
            while True:
                answer = self._answers(
                    lambda admin, timeout: admin.describe_consumer_groups(
                        [group_id], include_authorized_operations=True, request_timeout=timeout
                    )
                )[group_id]
                if not isinstance(answer, KafkaError):
                    return _operations(answer)
                if answer.code() == KafkaError._UNSUPPORTED_FEATURE:  # noqa: SLF001
                    return None
                # The coordinator of a new group may not be ready.
                if answer.code() not in COORDINATOR_ERRORS or deadline.has_passed:
                    raise self._session.error(
                        GROUPS, answer, group_right(Operation.DESCRIBE, group_id)
                    )
                time.sleep(RETRY_S)

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:  # noqa: ARG002  # librdkafka begins a transaction to find its coordinator
        return None

    def close(self) -> None:
        self._session.close()

    def _configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return settings of each topic; none if the broker or the user's rights forbid it."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        answers = self._answers(
            lambda admin, timeout: admin.describe_configs(resources, request_timeout=timeout)
        )
        return {
            resource.name: {name: str(found[name].value) for name in DESCRIBED_SETTINGS}
            for resource, found in answers.items()
            if not isinstance(found, KafkaError) and found.keys() >= set(DESCRIBED_SETTINGS)
        }

    def _answers(
        self, ask: Callable[[Any, float], Mapping[K, Future[Any]]]
    ) -> Mapping[K, Any | KafkaError]:
        """Send a request, and return the answers: each is a result or an error."""
        with self._session.in_use(), self._cluster.settings.one_deadline() as deadline:
            answers = ask(self._session.client(), max(RETRY_S, deadline.remaining))
            with suppress(KafkaException):
                self._session.wait(answers.values(), deadline.remaining)
            return {key: result_of(answer) for key, answer in answers.items()}


def _partition(described: Any) -> PartitionDescription:
    return PartitionDescription(
        None if described.leader is None or described.leader.id < 0 else described.leader.id,
        frozenset(node.id for node in described.replicas),
        frozenset(node.id for node in described.isr),
    )


def _operations(described: Any) -> frozenset[Operation] | None:
    found = described.authorized_operations
    return operations_of(None if found is None else [operation.value for operation in found])
