"""Topics and records that are gone: KafkaContinuousSourceTopicDeletionSuite and its likes."""

from functools import partial

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

from .churn import Churn
from .continuous_runs import SECONDS, Runs, await_partitions, numbered
from .peer import Held, peer


@peer(
    "KafkaContinuousSourceTopicDeletionSuite",
    "subscribing topic by pattern with topic deletions",
    Held.SPARK,
)
def test_subscribing_topic_by_pattern_with_topic_deletions(spark, kafka, world, tmp_path):
    runs = Runs(spark, world, tmp_path)
    prefix = world.fresh_name()
    seems, bad = f"{prefix}-seems", f"{prefix}-bad"
    kafka.create_topic(seems, 5)
    world.produce(TopicPartition(seems, 0), numbered([-1]))
    with runs.query(subscribePattern=f"{prefix}-.*", failOnDataLoss="false") as query:
        query.processAllAvailable()
        for partition, number in enumerate((1, 2, 3)):
            world.produce(TopicPartition(seems, partition), numbered([number]))
        runs.await_numbers(query, [1, 2, 3])
        kafka.delete_topic(seems)
        kafka.create_topic(bad, 5)
        await_partitions(query, [TopicPartition(bad, partition) for partition in range(5)])
        for partition, number in enumerate((4, 5, 6)):
            world.produce(TopicPartition(bad, partition), numbered([number]))
        runs.await_numbers(query, range(1, 7))


@peer(
    "KafkaContinuousSourceStressForDontFailOnDataLossSuite",
    "stress test for failOnDataLoss=false",
    Held.SPARK,
)
def test_stress_test_for_fail_on_data_loss_false(spark, world, tmp_path):
    runs = Runs(spark, world, tmp_path)
    churn = Churn(world, world.fresh_name())
    churn.begin()
    with runs.query(
        subscribePattern=churn.pattern,
        startingOffsets="earliest",
        failOnDataLoss="false",
        fetchOffset__numRetries="10",
    ) as query:

        def are_read(marks: set[int]) -> bool:
            return marks <= set(runs.numbers()) or not query.isActive

        for marks in churn.steps():
            await_until(partial(are_read, marks), SECONDS)
            assert query.isActive, query.exception()
    assert query.exception() is None
    assert churn.kept <= set(runs.numbers()) < set(range(churn.written))
