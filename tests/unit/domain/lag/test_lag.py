import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.lag.lag import MAX_HTML_ROWS, Lag, PartitionLag, QueryLag, SourceLag
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import LARGEST_OFFSET

T = [TopicPartition("t", number) for number in range(2_000)]
Offsets = dict[TopicPartition, int]


@pytest.mark.parametrize(
    ("latest", "consumed", "least", "greatest", "mean"),
    [
        ({T[0]: 3, T[1]: 6}, {T[0]: 1, T[1]: 2}, "2", "4", "3.0"),
        ({T[0]: 3, T[1]: 6}, {T[0]: 3, T[1]: 6}, "0", "0", "0.0"),
        ({T[0]: 3, T[1]: 6}, {T[0]: 1}, "2", "6", "4.0"),
        ({T[0]: 3, T[1]: 6}, {}, "3", "6", "4.5"),
        ({T[0]: 3}, {T[0]: 1, T[1]: 2}, "2", "2", "2.0"),
        ({T[0]: 1, T[1]: 0, T[2]: 0}, {}, "0", "1", "0.3333333333333333"),
        ({T[0]: 1}, {T[0]: 5}, "-4", "-4", "-4.0"),
    ],
)
def test_lag(latest, consumed, least, greatest, mean):
    """The lag is counted over the partitions that Kafka has, from 0 where nothing was consumed."""
    assert Lag.between(latest, consumed).metrics() == {
        "minOffsetsBehindLatest": least,
        "maxOffsetsBehindLatest": greatest,
        "avgOffsetsBehindLatest": mean,
    }


@pytest.mark.parametrize(
    ("lag", "partitions", "text"),
    [
        (9_999_999, 1, "9999999.0"),
        (10_000_000, 1, "1.0E7"),
        (12_345_678, 1, "1.2345678E7"),
        (20_000_001, 2, "1.00000005E7"),
        (LARGEST_OFFSET, 1, "9.223372036854776E18"),
        (1, 1_000, "0.001"),
        (1, 2_000, "5.0E-4"),
        (3, 1_600, "0.001875"),
    ],
)
def test_the_mean_is_written_as_java_writes_a_double(lag, partitions, text):
    latest = {**dict.fromkeys(T[:partitions], 0), T[0]: lag}
    assert Lag.between(latest, {}).metrics()["avgOffsetsBehindLatest"] == text


def test_a_negative_mean_keeps_its_sign():
    metrics = Lag.between({T[0]: 0}, {T[0]: 10**8}).metrics()
    assert metrics["avgOffsetsBehindLatest"] == "-1.0E8"


@given(
    st.dictionaries(st.sampled_from(T[:5]), st.integers(0, LARGEST_OFFSET), min_size=1),
    st.dictionaries(st.sampled_from(T[:5]), st.integers(0, LARGEST_OFFSET)),
)
def test_mean_is_exact(latest, consumed):
    lags = [offset - consumed.get(partition, 0) for partition, offset in latest.items()]
    metrics = Lag.between(latest, consumed).metrics()
    assert float(metrics["avgOffsetsBehindLatest"]) == float(sum(lags)) / len(lags)


def test_no_partition_has_no_lag():
    lag = Lag.between({}, {T[0]: 1})
    assert lag.metrics() == {}
    assert (lag.total, lag.min, lag.max, lag.avg) == (0, 0, 0, 0.0)


def test_lags_are_in_the_order_of_partitions():
    lag = Lag.between({T[10]: 5, T[2]: 7}, {T[2]: 1})
    assert list(lag.by_partition.items()) == [(T[2], 6), (T[10], 5)]
    assert lag.total == 11


def test_a_partition_is_behind_by_the_offsets_between():
    """Offsets are a bound of the records that are left, and exact where none are."""
    lag = PartitionLag.in_offsets(T[0], 3, 10)
    assert (lag.lag, lag.is_exact, lag.expired, lag.is_truncated) == (7, False, 0, False)
    assert lag.counted(5) == PartitionLag(T[0], 3, 10, lag=5, is_exact=True)
    assert PartitionLag.in_offsets(T[0], 10, 10).is_exact


@pytest.mark.parametrize(
    ("consumed", "earliest", "latest", "behind", "expired"),
    [(3, 5, 10, 5, 2), (3, 10, 10, 0, 7), (3, 2, 10, 7, 0), (3, 3, 10, 7, 0)],
)
def test_what_kafka_has_deleted_is_not_left_to_read(consumed, earliest, latest, behind, expired):
    """Offsets before the earliest one are reported separately, for they are lost."""
    lag = PartitionLag.in_offsets(T[0], consumed, latest, earliest)
    assert (lag.lag, lag.expired) == (behind, expired)


def test_a_log_that_ends_before_what_was_consumed():
    """A topic that was created again leaves nothing to read, and is reported separately."""
    lag = PartitionLag.in_offsets(T[0], 10, 4)
    assert (lag.lag, lag.is_truncated, lag.expired) == (0, True, 0)


def test_the_lag_of_a_source_is_exact_if_that_of_each_partition_is():
    source = SourceLag.in_offsets({T[0]: 4, T[1]: 2}, {T[2]: 3, T[1]: 9, T[0]: 4})
    assert [each.partition for each in source.partitions] == [T[0], T[1], T[2]]
    assert source.lag == Lag({T[0]: 0, T[1]: 7, T[2]: 3})
    assert not source.is_exact
    assert SourceLag.of(each.counted(1) for each in source.partitions).is_exact


def test_sources_of_a_query_are_added_up():
    one = SourceLag.in_offsets({T[0]: 4}, {T[0]: 6, T[1]: 1})
    other = SourceLag.in_offsets({T[0]: 6}, {T[0]: 6})
    lag = QueryLag("id", "run", None, 3, 1_000, {"0": one, "2": other})
    assert lag.lag == Lag({T[0]: 2, T[1]: 1})
    assert not lag.is_exact
    assert QueryLag("id", "run", None, 3, 1_000, {"2": other}).is_exact


def test_a_notebook_shows_the_largest_lag_first():
    source = SourceLag.in_offsets({T[0]: 4, T[1]: 2_000}, {T[0]: 4, T[1]: 9_000})
    html = source._repr_html_()
    assert html.startswith("<table><caption>lag ≤ 7,000</caption><thead><tr><th>topic</th>")
    first, second = html.partition("<tbody>")[2].split("</tr>")[:2]
    assert first == "<tr><td>t</td><td>1</td><td>2,000</td><td>9,000</td><td>≤ 7,000</td>"
    assert second == "<tr><td>t</td><td>0</td><td>4</td><td>4</td><td>0</td>"


def test_a_notebook_shows_the_lag_of_a_query():
    one = SourceLag.in_offsets({T[0]: 4}, {T[0]: 6})
    lag = QueryLag("id", "run", "orders", 3, 1_000, {"0": one})
    assert "<caption>orders: lag ≤ 2 after batch 3</caption>" in lag._repr_html_()
    assert "<th>source</th>" not in lag._repr_html_()
    both = QueryLag("id", "run", None, 3, 1_000, {"0": one, "2": one})._repr_html_()
    assert "<caption>id: lag ≤ 4" in both
    assert "<th>source</th><th>topic</th>" in both
    assert "<tr><td>2</td><td>t</td>" in both


def test_a_notebook_does_not_show_thousands_of_partitions():
    html = SourceLag.in_offsets({}, dict.fromkeys(T, 1))._repr_html_()
    assert html.count("<tr>") == 1 + MAX_HTML_ROWS
    assert "(1,980 more partitions)</caption>" in html


def test_a_notebook_shows_names_as_text():
    hostile = "<script>alert(1)</script>\"'&"
    one = SourceLag.in_offsets({TopicPartition(hostile, 0): 1}, {TopicPartition(hostile, 0): 3})
    html = QueryLag(hostile, "run", hostile, 0, 0, {hostile: one, "1": one})._repr_html_()
    assert "script>" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;") == 4
