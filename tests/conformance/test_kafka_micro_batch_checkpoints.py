"""KafkaMicroBatchSourceSuite: what a micro-batch stream leaves for its restart, and finds there."""

import json
import uuid
from pathlib import Path

from pyspark.sql import DataFrame

from tests.spark.queries import PEER, read

from .live_queries import OpenStream
from .peer import Held, peer
from .side_by_side import failure
from .sources import ONE_CLIENT, Source, agreed, for_each
from .stream_runs import run_once
from .test_kafka_micro_batch_source_suite import BASE, sizes


@peer(BASE, "(de)serialization of initial offsets", Held.BESIDE_JVM)
def test_a_stream_goes_on_from_initial_offsets(live, topics):
    topic = sizes(topics, (2, 1, 0, 0, 3))
    queries = live.queries(lambda open_: open_(subscribe=topic, startingOffsets="latest"))
    for _ in range(2):
        queries.start()
        queries.settle()
        queries.stop()
    assert queries.ends() == [{topic: {"0": 2, "1": 1, "2": 0, "3": 0, "4": 3}}]
    topics.numbers(topic, 3, range(1, 4))
    queries.start()
    queries.settle()
    assert queries.rows() == [1, 2, 3]


@peer(
    BASE,
    "ensure that initial offset are written with an extra byte in the beginning (SPARK-19517)",
    Held.BESIDE_JVM,
)
def test_initial_offsets_have_an_extra_byte(live, topics, tmp_path):
    """With the option metadataPath ours writes the JVM connector's file: a zero, then the text."""
    topic = sizes(topics, (1,))

    def run(source: Source) -> bytes:
        log = _initial_offset_log(tmp_path / str(source))
        run_once(live.open(source, subscribe=topic, metadataPath=str(log)), tmp_path / str(source))
        return (log / "0").read_bytes()

    written = agreed(for_each(ONE_CLIENT, run))
    assert written == b'\0v1\n{"%s":{"0":0}}' % topic.encode()


@peer(
    BASE, "deserialization of initial offset written by Spark 2.1.0 (SPARK-19517)", Held.BESIDE_JVM
)
def test_initial_offsets_of_spark_2_1_0(live, topics, tmp_path):
    """Offsets without a version, behind the length of their text, precede startingOffsets."""
    topic = sizes(topics, (3, 3, 3))
    text = json.dumps({topic: {"0": 0, "1": 1, "2": 2}}, separators=(",", ":")).encode()

    def run(source: Source) -> list[list[int]]:
        log = _initial_offset_log(tmp_path / str(source), bytes([len(text)]) + text)
        stream = live.open(source, subscribe=topic, startingOffsets="latest", metadataPath=str(log))
        return run_once(stream, tmp_path / str(source))

    assert agreed(for_each(ONE_CLIENT, run)) == [[0, 1, 2, 1001, 1002, 2002]]


@peer(BASE, "deserialization of initial offset written by future version", Held.BESIDE_JVM)
def test_initial_offsets_of_a_future_version(live, topics, tmp_path):
    topic = sizes(topics, (1, 1, 1))

    def run(source: Source) -> Exception:
        log = _initial_offset_log(tmp_path / str(source), b"\0v99999\n{}")
        stream = live.open(source, subscribe=topic, metadataPath=str(log))
        return failure(lambda: run_once(stream, tmp_path / str(source)))

    for error in for_each(ONE_CLIENT, run).values():
        assert "maximum supported log version is v1, but encountered v99999" in str(error)
        assert "produced by a newer version of Spark and cannot be read by this version" in str(
            error
        )


@peer(
    BASE,
    "SPARK-22956: currentPartitionOffsets should be set when no new data comes in",
    Held.BESIDE_JVM,
)
def test_spark_22956_a_topic_without_new_records_does_not_disturb_the_other(live, topics):
    """The larger of two topics under a limit of 5 continues alone, also after a restart."""
    small, large = sizes(topics, (10,)), topics.create()
    topics.numbers(large, 0, range(100, 400))

    def both(open_: OpenStream) -> DataFrame:
        one, other = (open_(subscribe=topic, maxOffsetsPerTrigger="5") for topic in (small, large))
        return one.union(other)

    queries = live.queries(both)
    queries.start()
    queries.await_batches(3)
    queries.stop()
    before = queries.each(lambda one: len(one.results))
    queries.start()
    queries.await_batches(max(before.values()) + 2)
    queries.stop()
    expected = [
        [*range(5 * number, 5 * number + 5)] * (number < 2)
        + [*range(100 + 5 * number, 105 + 5 * number)]
        for number in range(60)
    ]
    queries.each(
        lambda one: _assert_starts(expected, [one.results[key] for key in sorted(one.results)])
    )


def _assert_starts(whole: list[list[int]], found: list[list[int]]) -> None:
    assert found == whole[: len(found)]


@peer(BASE, "async progress tracking", Held.BESIDE_JVM)
def test_async_progress_tracking(live, spark, kafka, topics, tmp_path):
    """A rate-limited stream whose progress is written once a second reads all after a restart.

    Spark has such streams write to the JVM connector's sink only, or to none. Before the restart
    no record is copied twice; batches that were not written down by then are read again.
    """
    origin = topics.create(5)

    def copied(copy: str) -> list[int]:
        table = read(spark, kafka, PEER, subscribe=copy)
        return [int(row["value"]) for row in table.select("value").collect()]

    def run(source: Source, copy: str) -> None:
        query = (
            live.open(source, subscribe=origin, maxOffsetsPerTrigger="5")
            .writeStream.format(PEER)
            .options(topic=copy, asyncProgressTrackingEnabled="true", **kafka.options)
            .option("asyncProgressTrackingCheckpointIntervalMs", "1000")
            .option("checkpointLocation", str(tmp_path / str(source)))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    copies = {source: topics.create(5) for source in ONE_CLIENT}
    topics.numbers(origin, 0, range(15))
    for_each(ONE_CLIENT, lambda source: run(source, copies[source]))
    once = for_each(ONE_CLIENT, lambda source: sorted(copied(copies[source])))
    assert agreed(once) == list(range(15))
    topics.numbers(origin, 0, range(15, 30))
    for source in ONE_CLIENT:
        _rename_query(tmp_path / str(source))
    for_each(ONE_CLIENT, lambda source: run(source, copies[source]))
    again = for_each(ONE_CLIENT, lambda source: set(copied(copies[source])))
    assert agreed(again) == set(range(30))


def _initial_offset_log(directory: Path, content: bytes | None = None) -> Path:
    log = directory / "checkpoint" / "sources" / "0"
    if content is not None:
        log.mkdir(parents=True)
        (log / "0").write_bytes(content)
    return log


def _rename_query(checkpoint: Path) -> None:
    """Give a query another id.

    Spark 4.3 may still count a stopped query with asynchronous progress among the running ones,
    and refuse to start it again in the same process: when it stops, it commits to a Python source
    that it has stopped already (``AsyncProgressTrackingMicroBatchExecution.cleanup``).
    """
    (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    # Hadoop's checksum of the former content.
    (checkpoint / ".metadata.crc").unlink(missing_ok=True)
