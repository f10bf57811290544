"""The view of a cluster that kafka-python's metadata give."""

from collections.abc import Callable
from unittest.mock import Mock
from uuid import UUID

from kafka.protocol.metadata import MetadataResponse

from pyspark_kafka.adapters.kafka_python import cluster_metadata
from pyspark_kafka.adapters.kafka_python.brokers import Brokers
from pyspark_kafka.adapters.kafka_python.cluster_metadata import view_of
from pyspark_kafka.domain.cluster.cluster_view import ClusterView

from ..options import source_of

OLD, NEW = UUID(int=1), UUID(int=2)


def test_a_deleted_topic_does_not_come_back():
    """A broker that lags describes the topic that had the name before."""
    late, new = (view_of(described(each), ClusterView(), {OLD}) for each in (OLD, NEW))
    assert not late.topic("t").partitions
    assert late.topic_id("t") is None
    assert new.topic("t").partitions
    assert new.topic_id("t") == NEW


def test_a_topic_that_is_still_named_after_a_minute_was_not_deleted(monkeypatch):
    """Two brokers that lag may have been the witnesses of another topic."""
    metadata = Brokers(source_of("kafka-python")).metadata
    now = [1_000.0]
    monkeypatch.setattr(cluster_metadata, "time", Mock(monotonic=lambda: now[-1]))

    def answer(_request: object, check: Callable[[object], None]) -> tuple[None, MetadataResponse]:
        found = described(NEW)
        check(found)
        return None, found

    monkeypatch.setattr(metadata, "ask_any", answer)
    metadata.note_deleted(NEW)
    for later, is_there in ((59, False), (2, True)):
        now.append(now[-1] + later)
        metadata.refresh(["t"])
        assert bool(metadata.view.topic("t").partitions) is is_there


def described(topic_id: UUID) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, leader_epoch=0
    )
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=0, name="t", topic_id=topic_id, partitions=[partition]
    )
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="a", port=9092, rack=None)
    return MetadataResponse(version=12, brokers=[broker], topics=[topic])
