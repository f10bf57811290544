from benchmarks.end_to_end import Load


def test_the_records_of_a_load():
    """A load has its rate times its seconds of records, and one at least."""
    loads = Load(100, 2.5, 4.0), Load(1 / 60, 180, 4.0), Load(100, 0.001, 0.0)
    assert [load.count for load in loads] == [250, 3, 1]


def test_a_rate_in_words():
    """A rate below one record a second is told by its interval."""
    assert [Load(rate, 1, 0).text for rate in (1 / 60, 10_000)] == [
        "a record every 60 s",
        "10,000 records/s",
    ]
