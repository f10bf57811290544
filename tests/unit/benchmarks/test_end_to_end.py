from __future__ import annotations

from benchmarks.end_to_end import Load


def test_the_records_of_a_load() -> None:
    """A load has its rate times its seconds of records, and one at least."""
    loads = Load(100, 2.5, 4.0), Load(1 / 60, 180, 4.0), Load(100, 0.001, 0.0)
    assert [load.count for load in loads] == [250, 3, 1]
