from pyspark_kafka.domain.newest import MAX_ITEMS, MAX_PARTITIONS, Newest


def test_the_newest_of_many_items():
    kept = Newest[int](lambda _: 1, range(MAX_ITEMS + 5))
    assert list(kept) == list(range(5, MAX_ITEMS + 5))


def test_fewer_items_of_many_partitions():
    kept = Newest[int](lambda _: MAX_PARTITIONS // 3, range(5))
    assert list(kept) == [2, 3, 4]
    kept.append(5)
    assert [kept.popleft() for _ in range(3)] == [3, 4, 5]
    assert not kept
    kept.append(6)
    assert list(kept) == [6]


def test_one_item_is_kept_whatever_its_size():
    kept = Newest[int](lambda item: item * MAX_PARTITIONS, (1, 2, 3))
    assert list(kept) == [3]
