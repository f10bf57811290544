import pyarrow as pa
import pytest

from pyspark_kafka.adapters.stream_sinks import NoSink
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords

T0 = TopicPartition("t", 0)


def test_what_has_no_sink_is_acknowledged_and_may_have_no_outputs():
    sink = NoSink()
    assert sink.assign(PartitionOffsets({T0: 7})) == {T0: 7}
    sink.write(PolledRecords(T0, None, 8), [])
    assert sink.take_acknowledged() == {T0: 8}
    with pytest.raises(ValueError, match="no sink"):
        sink.write(PolledRecords(T0, None, 9), [pa.record_batch({"value": [b"x"]})])
