"""What kafka-python's metadata say of a cluster."""

from uuid import UUID

from kafka.protocol.metadata import MetadataResponse

from pyspark_kafka.adapters.kafka_python.cluster_metadata import view_of
from pyspark_kafka.domain.cluster.cluster_view import ClusterView

OLD, NEW = UUID(int=1), UUID(int=2)


def test_a_deleted_topic_does_not_come_back():
    """A broker that lags describes the topic that had the name before."""
    late, new = (view_of(described(each), ClusterView(), {OLD}) for each in (OLD, NEW))
    assert not late.topic("t").partitions
    assert late.topic_id("t") is None
    assert new.topic("t").partitions
    assert new.topic_id("t") == NEW


def described(topic_id: UUID) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, leader_epoch=0
    )
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=0, name="t", topic_id=topic_id, partitions=[partition]
    )
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="a", port=9092, rack=None)
    return MetadataResponse(version=12, brokers=[broker], topics=[topic])
