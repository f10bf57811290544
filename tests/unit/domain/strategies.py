from typing import Final

from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

LARGEST_OFFSET: Final = 2**63 - 1

topics = st.one_of(st.sampled_from(["a", "b", "t", "t-1", "ü", "主题", '"']), st.text(min_size=1))
topic_partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))
offset_numbers = st.integers(-2, LARGEST_OFFSET)

# Few names and numbers, so that two mappings often share partitions.
close_topic_partitions = st.builds(
    TopicPartition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 11)
)
partition_offsets = st.builds(
    PartitionOffsets,
    st.one_of(
        st.dictionaries(topic_partitions, offset_numbers, max_size=8),
        st.dictionaries(close_topic_partitions, offset_numbers, max_size=8),
    ),
)

# What a checkpoint may have.
topic_names = st.text("aZ09._-", min_size=1, max_size=249).filter(
    lambda name: name not in {".", ".."}
)
logged_offsets = st.builds(
    PartitionOffsets,
    st.dictionaries(
        st.builds(TopicPartition, topic_names, st.integers(0, 2**31 - 1)),
        st.integers(0, LARGEST_OFFSET),
        max_size=8,
    ),
)
