"""Leader epochs (KIP-320): of what was fetched, and of a leader's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ...domain.reading.leader_epochs import EpochEndOffset

if TYPE_CHECKING:
    from typing import Any

    from ...domain.reading.leader_epochs import FetchedEpochs
    from ...domain.topic_partition import TopicPartition
    from ..kafka_format.record_decoder import FetchedRecords
    from .cluster_metadata import ClusterMetadata
    from .wire import FetchPosition

CONSUMER: Final = -1
"""The replica id of a consumer."""

MIN_VERSION: Final = 3
"""The first version for which a consumer needs no right on the cluster, of Kafka 2.3."""

_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_Partition = _Topic.OffsetForLeaderPartition


def append_epochs(epochs: FetchedEpochs, records: FetchedRecords) -> int | None:
    """Add the epochs of batches that follow; return where their log differs, as ``append`` does."""
    batches = records.index.batches
    if batches[0].leader_epoch == batches[-1].leader_epoch == epochs.last:
        return None
    for batch in batches:
        diverges_at = epochs.append(batch.leader_epoch, batch.base_offset)
        if diverges_at is not None:
            return diverges_at
    return None


def find_other_log(
    metadata: ClusterMetadata,
    node: int,
    partition: TopicPartition,
    position: FetchPosition,
    epochs: FetchedEpochs,
) -> EpochEndOffset | None:
    """Ask a leader that does not compare epochs itself; return its answer if its log differs.

    :raises KafkaError: if there is no answer in time, or an error.
    """
    if epochs.is_confirmed(position.leader_epoch):
        return None
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=[
            _Topic(
                topic=partition.topic,
                partitions=[
                    _Partition(
                        partition=partition.partition,
                        current_leader_epoch=position.leader_epoch,
                        leader_epoch=position.last_epoch,
                    )
                ],
            )
        ],
        min_version=MIN_VERSION,
    )
    try:
        found = _answer(metadata.send(request, node), partition)
    except kafka_errors.IncompatibleBrokerVersion:
        return None
    return None if epochs.confirm(found, position.offset, position.leader_epoch) else found


def _answer(response: Any, partition: TopicPartition) -> EpochEndOffset:
    for topic in response.topics:
        for answer in topic.partitions:
            if (topic.topic, answer.partition) == (partition.topic, partition.partition):
                error = kafka_errors.for_code(answer.error_code)
                if error is not kafka_errors.NoError:
                    raise error
                return EpochEndOffset(answer.leader_epoch, answer.end_offset)
    raise kafka_errors.KafkaProtocolError(f"an answer about leader epochs leaves out {partition}")
