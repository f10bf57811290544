import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.checkpoints.offset_rewrite import (
    RECENT_MS,
    Backup,
    ResumePoint,
    rewrite_to_undo,
    sign_of_life,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import logged_offsets

BEGUN_MS = 1_795_251_150_969
METADATA = f'{{"batchWatermarkMs":0,"batchTimestampMs":{BEGUN_MS},"conf":{{}}}}'
TOPIC = TopicPartition("t", 0)


def batch(*lines: str, version: str = "v1") -> bytes:
    return "\n".join([version, METADATA, *lines]).encode()


def offsets(*pairs: tuple[int, int]) -> PartitionOffsets:
    return PartitionOffsets((TopicPartition("t", number), offset) for number, offset in pairs)


def point(committed: int, planned: int | None = None) -> ResumePoint:
    """Return a point after batch 4, with one partition."""
    files = (
        None if end is None else batch(f'{{"t":{{"0":{end}}}}}') for end in (committed, planned)
    )
    return ResumePoint(4, *files)  # type: ignore[arg-type]


@given(st.lists(logged_offsets, min_size=1, max_size=3), st.data())
def test_a_moved_query_resumes_at_the_targets_with_a_batch_without_records(ends, data):
    before = ResumePoint(4, batch(*(each.to_json() for each in ends)))
    wanted: Mapping[str, PartitionOffsets] = {
        name: PartitionOffsets({each: data.draw(st.integers(0, 99)) for each in old})
        for name, old in before.offsets.items()
        if data.draw(st.booleans())
    }
    after = before.moved_to(wanted)
    assert after.batch_id == before.batch_id
    assert after.offsets == {**before.offsets, **wanted}
    assert after.planned_batch is not None
    assert after.planned_batch.batch_id == 5
    assert not after.has_unread_batch
    assert after.moved_to(before.offsets).offsets == before.offsets


def test_unknown_partitions_and_sources_are_ignored():
    """A rewrite adds no partition: a query that assigns partitions would miss it."""
    after = point(7).moved_to({"0": offsets((0, 3), (1, 9)), "1": offsets((0, 1))})
    assert after.offsets == {"0": offsets((0, 3))}


def test_other_sources_keep_their_planned_batch():
    before = ResumePoint(
        0, batch('{"t":{"0":7}}', '{"logOffset":1}'), batch('{"t": {"0": 9}}', '{"logOffset":2}')
    )
    after = before.moved_to({"0": offsets((0, 3))})
    assert after.committed == batch('{"t":{"0":3}}', '{"logOffset":1}')
    assert after.planned == batch('{"t":{"0":3}}', '{"logOffset":2}')


def test_sources_of_version_2_keep_their_names():
    before = ResumePoint(0, batch('b:{"t":{"0":7}}', "a:-", version="v2"))
    after = before.moved_to({"b": offsets((0, 3)), "a": offsets((0, 3))})
    assert after.committed == batch('b:{"t":{"0":3}}', "a:-", version="v2")


@pytest.mark.parametrize(
    ("found", "is_one"),
    [
        (point(7, 9), True),
        (point(7), True),
        (point(3), True),
        (point(3, 3), True),
        (point(3, 9), True),
        (point(7, 8), False),
        (point(4), False),
        (ResumePoint(5, point(7).committed), False),
    ],
)
def test_what_an_interrupted_rewrite_leaves(found, is_one):
    assert found.may_be(point(7, 9), point(3, 3)) is is_one


def test_planned_records_and_a_batch_that_just_began_are_signs_of_life():
    late = BEGUN_MS + RECENT_MS
    planned = "batch 5 is planned and not committed"
    assert sign_of_life(point(7, 9), late) is not None
    assert planned in str(sign_of_life(point(7, 9), late))
    assert sign_of_life(point(7, 7), late) is None
    assert sign_of_life(point(7), late) is None
    assert sign_of_life(point(7), late - 1) == "batch 4 began 59 seconds ago"
    assert sign_of_life(point(7, 7), BEGUN_MS - 9) == "batch 4 began 0 seconds ago"
    other = ResumePoint(4, batch('{"t":{"0":7}}', "3"), batch('{"t":{"0":7}}', "4"))
    assert planned in str(sign_of_life(other, late))
    watermark = batch('{"t":{"0":7}}').replace(b'"batchWatermarkMs":0', b'"batchWatermarkMs":9')
    assert planned in str(sign_of_life(ResumePoint(4, point(7).committed, watermark), late))
    assert sign_of_life(ResumePoint(4, point(7).committed, watermark).moved_to({}), late) is None
    without_time = ResumePoint(4, b'v1\n{}\n{"t":{"0":7}}')
    assert sign_of_life(without_time, BEGUN_MS) is None


@pytest.mark.parametrize("undoes", [None, 3])
@pytest.mark.parametrize("before", [point(7), point(7, 9)])
def test_a_backup_is_read_back(before, undoes):
    backup = Backup(BEGUN_MS, before, point(3, 3), undoes)
    assert Backup.from_bytes(backup.to_bytes()) == backup


@pytest.mark.parametrize(
    "change",
    [
        {"before": None},
        {"before": {"batchId": 4, "committed": "no log", "planned": None}},
        {"before": {"batchId": 4, "committed": 3, "planned": None}},
        {"before": {"batchId": -1, "committed": "v1\n{}\n-", "planned": None}},
        {"before": {"batchId": 4, "committed": "v1\n{}\n-", "planned": "v9\n{}\n-"}},
        {"timestamp": "now"},
        {"undoes": "3"},
        {"undoes": True},
    ],
)
def test_a_damaged_backup_is_refused(change):
    content = json.loads(Backup(BEGUN_MS, point(7), point(3, 3)).to_bytes())
    for damaged in (json.dumps(content | change).encode(), b"", b"[]", b"\xff"):
        with pytest.raises(ValueError, match="no backup of offsets"):
            Backup.from_bytes(damaged)


def test_the_rewrite_to_undo_is_the_last_one_that_is_not_undone():
    rewrite = Backup(BEGUN_MS, point(7), point(3, 3))
    entries = {2: rewrite, 3: rewrite}
    assert rewrite_to_undo({}) is None
    assert rewrite_to_undo(entries) == 3
    entries[4] = Backup(BEGUN_MS, point(3, 3), point(7), undoes=3)
    assert rewrite_to_undo(entries) == 2
    entries[5] = Backup(BEGUN_MS, point(3, 3), point(7), undoes=2)
    assert rewrite_to_undo(entries) is None
    assert rewrite_to_undo({5: entries[5]}) is None
