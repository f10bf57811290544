"""Requests to the coordinators of groups and transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from ...domain.topic_partition import TopicPartition
from ...domain.writing.group_seal import GroupOffset
from .responses import NO_OFFSET, answered_partitions, check_offsets, check_response, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from .cluster_metadata import ClusterMetadata
    from .failures import ErrorMapper

RETRY_S: Final = 0.05

GONE: Final = (
    kafka_errors.KafkaConnectionError,
    # The metadata no longer name it.
    kafka_errors.UnknownBrokerIdError,
)
COORDINATOR_MOVED: Final = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.KafkaTimeoutError,
    *GONE,
)

_STABLE_VERSION: Final = 7
"""The first version that waits for open transactions (KIP-447), and the last with one group."""

_MAX_COMMIT_VERSION: Final = 9
"""The last version with names of topics."""


class CoordinatorRequests:
    """Sends requests to coordinators, and again while their errors may pass."""

    def __init__(self, metadata: ClusterMetadata, errors: ErrorMapper) -> None:
        """Connect to nothing yet."""
        self._metadata = metadata
        self._errors = errors
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}

    def coordinator(self, key: str, kind: CoordinatorType) -> int:
        """Return the node id of the coordinator of a transactional id or a group."""
        node = self._coordinators.get((kind, key))
        if node is None:
            request = FindCoordinatorRequest(key=key, key_type=kind.value, max_version=3)
            node = self._coordinators[kind, key] = check_response(
                self._metadata.send(request)
            ).node_id
            if node not in self._metadata.nodes():
                self._metadata.refresh()
        return node

    def forget_coordinator(self, key: str, kind: CoordinatorType) -> None:
        """Forget a coordinator: the next call finds it again."""
        self._coordinators.pop((kind, key), None)

    def ask_coordinator(
        self,
        key: str,
        request: Any,
        kind: CoordinatorType,
        check: Callable[[Any], Any] = check_response,
    ) -> Any:
        """Return the result of ``check`` for a coordinator's response, or raise its error.

        :raises KafkaError: if an error does not pass in time.
        """

        def ask() -> Any:
            node = self.coordinator(key, kind)
            try:
                return check(self._metadata.send(request, node))
            except COORDINATOR_MOVED:
                self.forget_coordinator(key, kind)
                raise

        return self._errors.retry(ask, RETRY_S)

    def committed_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None,
        *,
        is_stable: bool = True,
    ) -> dict[TopicPartition, GroupOffset]:
        """Return a group's offsets, ``None`` for all, without partitions that have none.

        With ``is_stable``, wait while an open transaction is about to change them (KIP-447).
        """
        topic = OffsetFetchRequest.OffsetFetchRequestTopic
        topics = [
            topic(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(partitions or ()).items()
        ]
        request = OffsetFetchRequest(
            group_id=group_id,
            topics=None if partitions is None else topics,
            require_stable=is_stable,
            min_version=_STABLE_VERSION if is_stable else 0,
            max_version=_STABLE_VERSION,
        )
        answer = self.ask_coordinator(group_id, request, CoordinatorType.GROUP)
        with reading():
            found = {
                partition: GroupOffset(each.committed_offset, str(each.metadata or ""))
                for partition, each in answered_partitions(answer)
            }
        asked = found.keys() if partitions is None else partitions
        check_offsets({each: found[each].offset for each in found}, asked, NO_OFFSET)
        return {each: found[each] for each in asked if found[each].offset >= 0}

    def commit_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        passing: tuple[type[Exception], ...],
    ) -> dict[TopicPartition, type[kafka_errors.KafkaError]]:
        """Commit a group's offsets; return the errors of refused partitions.

        Errors of ``passing`` are raised, and repeated as long as they may pass.
        """
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        topic.OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=offsets[TopicPartition(name, number)],
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(offsets).items()
            ],
            max_version=_MAX_COMMIT_VERSION,
        )

        def refused(answer: Any) -> dict[TopicPartition, type[kafka_errors.KafkaError]]:
            found = {
                partition: kafka_errors.for_code(each.error_code)
                for partition, each in answered_partitions(answer)
                if each.error_code
            }
            for error in found.values():
                if issubclass(error, passing):
                    raise error
            return found

        found: dict[TopicPartition, type[kafka_errors.KafkaError]] = self.ask_coordinator(
            group_id, request, CoordinatorType.GROUP, refused
        )
        return found


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of partitions by topic."""
    found: dict[str, list[int]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition.partition)
    return found
