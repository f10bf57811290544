from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.partitioning.batch_gatherer import MANY_BYTES, BatchGatherer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.adapters.partitioning.batch_gatherer import Gathered

PAYLOAD = 100 * 1024


def values(first: int, column: str = "value") -> pa.RecordBatch:
    """Return a batch of somewhat more than ``PAYLOAD`` bytes."""
    return pa.record_batch({column: [b"%d" % first, bytes(PAYLOAD)]})


def numbers(gathered: Iterable[Gathered], column: str = "value") -> list[tuple[list[int], object]]:
    return [
        ([int(value or b"") for value in batch[column].to_pylist()[::2]], topic)
        for batch, topic in gathered
    ]


def test_batches_are_yielded_at_once():
    gatherer = BatchGatherer()
    assert numbers(gatherer.add(values(0), "t")) == [([0], "t")]
    assert numbers(gatherer.take()) == []


def test_batches_are_combined_up_to_the_minimum():
    gatherer = BatchGatherer(2 * PAYLOAD)
    assert numbers(gatherer.add(values(0), None)) == []
    assert numbers(gatherer.add(values(1), None)) == [([0, 1], None)]
    assert numbers(gatherer.add(values(2), None)) == []
    assert numbers(gatherer.take()) == [([2], None)]
    assert numbers(gatherer.take()) == []


def test_only_batches_that_belong_together_are_combined():
    gatherer = BatchGatherer(MANY_BYTES)
    assert numbers(gatherer.add(values(0), "t")) == []
    assert numbers(gatherer.add(values(1), "u")) == [([0], "t")]
    assert numbers(gatherer.add(values(2, "key"), "u")) == [([1], "u")]
    assert numbers(gatherer.take(), "key") == [([2], "u")]


@pytest.mark.parametrize(("partitions", "batches"), [(4, 1), (5, 13), (32, 82), (1_000_000, 164)])
def test_many_partitions_need_more_bytes(partitions, batches):
    gatherer = BatchGatherer()
    gatherer.adapt(partitions)
    added = [numbers(gatherer.add(values(number), "t")) for number in range(batches)]
    assert added[:-1] == [[]] * (batches - 1)
    assert added[-1] == [(list(range(batches)), "t")]
