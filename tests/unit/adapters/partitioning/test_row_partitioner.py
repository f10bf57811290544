import numpy as np

from pyspark_kafka.adapters.partitioning.row_partitioner import StickyPartitions

COUNTS = np.array([5, 7])


def test_a_topic_stays_with_its_partition_until_a_batch_is_full():
    sticky = StickyPartitions(100)
    first = sticky.choose(["a", "b"], COUNTS)
    sticky.add([("a", 60), ("b", 99)])
    assert (sticky.choose(["a", "b"], COUNTS) == first).all()
    sticky.add([("a", 40)])
    assert sticky.choose(["a", "b"], COUNTS).tolist() == [(first[0] + 1) % 5, first[1]]
    sticky.add([("a", 99), ("b", 1)])
    assert (sticky.choose(["a", "b"], COUNTS) == (first + 1) % COUNTS).all()


def test_all_topics_change_when_their_batches_are_sent():
    sticky = StickyPartitions(100)
    first = sticky.choose(["a", "b"], COUNTS)
    sticky.add([("a", 60)])
    sticky.change()
    sticky.add([("a", 60)])
    assert (sticky.choose(["a", "b"], COUNTS) == (first + 1) % COUNTS).all()


def test_partitions_exist():
    sticky = StickyPartitions(1)
    for _ in range(20):
        chosen = sticky.choose(["a", "b"], COUNTS)
        assert ((chosen >= 0) & (chosen < COUNTS)).all()
        sticky.add([("a", 1)])
        sticky.change()
