"""Which topics' metadata are requested together."""

from pyspark_kafka.domain.cluster.topics_in_use import TopicsInUse


def test_a_reader_uses_one_topic_or_those_that_it_expects():
    topics = TopicsInUse(keeps_all=False)
    topics.expect(["a", "b"])
    assert topics.names == frozenset()
    topics.use("b")
    assert topics.names == {"a", "b"}
    topics.use("c")
    assert topics.names == {"c"}
    topics.add(["d"])
    topics.use("d")
    assert topics.names == {"c", "d"}


def test_a_writer_uses_all_topics_together():
    topics = TopicsInUse(keeps_all=True)
    for name in "abc":
        topics.use(name)
    assert len(topics.names) == 3
