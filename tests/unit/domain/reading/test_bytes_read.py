import pickle

import pytest

from pyspark_kafka.domain.reading.bytes_read import BytesRead, SentBytes

FOUND = BytesRead({"a": 1, "": 2}, {"b": 3})


def test_bytes_add_up_by_rack_and_role():
    assert FOUND + BytesRead({"a": 4}, {"c": 5}) == BytesRead({"": 2, "a": 5}, {"b": 3, "c": 5})


def test_the_text_names_what_sent_them():
    text = "2 from leaders in rack '', 1 from leaders in rack 'a', 3 from replicas in rack 'b'"
    assert str(FOUND) == text


def test_bytes_survive_pickling():
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND  # noqa: S301


def test_nothing_is_false():
    assert not BytesRead()
    assert FOUND


@pytest.mark.parametrize("sizes", [({"a": -1}, {}), ({}, {"a": -1})])
def test_no_number_is_negative(sizes):
    with pytest.raises(ValueError, match="negative"):
        BytesRead(*sizes)


def test_bytes_are_counted_by_role_and_rack():
    sent, racks = SentBytes(), {1: "a", 2: "a", 3: "b"}
    for broker, size, is_leader in ((1, 5, True), (2, 7, True), (3, 1, False), (3, 0, True)):
        sent.add(broker, size, is_leader=is_leader)
    assert sent.take(racks.__getitem__) == BytesRead({"a": 12}, {"b": 1})
    assert not sent.take(racks.__getitem__)
