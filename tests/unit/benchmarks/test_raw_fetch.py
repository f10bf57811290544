from benchmarks.raw_fetch import next_offset


def batch(first: int, records: int) -> bytes:
    body = bytes(11) + (records - 1).to_bytes(4) + b"and what follows"
    return first.to_bytes(8) + len(body).to_bytes(4) + body


def test_the_offset_behind_batches():
    """Reading goes on behind the last record of the last batch."""
    assert next_offset(memoryview(batch(5, 10) + batch(15, 3)), 5) == 18


def test_a_batch_that_is_cut_off():
    """A batch that did not come whole is fetched again."""
    assert next_offset(memoryview(batch(5, 10) + batch(15, 3)[:-1]), 5) == 15


def test_nothing_came():
    """Where nothing came the same is asked for again."""
    assert next_offset(memoryview(b""), 5) == 5
