from benchmarks.topics import B100, B100_HEADERS, Topic, partitions_text
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition


def test_the_ranges_of_a_topic():
    """The records of a topic stand in equal ranges, one for each partition."""
    assert Topic("t", B100, partitions=2, records=10).ranges == (
        OffsetRange(TopicPartition("t", 0), 0, 5),
        OffsetRange(TopicPartition("t", 1), 0, 5),
    )


def test_a_topic_name_of_a_shape():
    """A shape's name is made into one that Kafka takes."""
    assert B100_HEADERS.topic_name == "100-B-2-headers"


def test_partitions_in_words():
    """One partition is singular."""
    assert [partitions_text(count) for count in (1, 2_000)] == ["1 partition", "2,000 partitions"]
