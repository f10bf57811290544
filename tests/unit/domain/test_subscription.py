import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.subscription import Assign, Subscribe, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition

from .strategies import close_topic_partitions

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B2 = TopicPartition("b", 2)


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ('{"a":[0]}', {A0}),
        ('{"a":[1,0],"b":[2]}', {A0, A1, B2}),
        ('{"a":[0,0]}', {A0}),
        ('{"a":[0],"b":[]}', {A0}),
        (' { "a" : [ 0 ] } ', {A0}),
    ],
)
def test_an_assignment_is_the_set_of_listed_partitions(text, partitions):
    assert Assign.from_json(text).partitions == partitions


@given(st.frozensets(close_topic_partitions, min_size=1))
def test_topics_of_an_assignment(partitions):
    assert Assign(partitions).topics == {partition.topic for partition in partitions}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"a":[]}',
        '{"a":0}',
        '{"a":{"0":1}}',
        '{"a":["0"]}',
        '{"a":[true]}',
        '{"a":[-1]}',
        '{"":[0]}',
        '{"a":[0],"a":[1]}',
        '{"a":[0], x',
    ],
)
def test_malformed_assignments_are_refused_in_the_jvm_connectors_words(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        Assign.from_json(text)
    assert str(caught.value) == (f'Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}')


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("a", ("a",)),
        ("b,a", ("b", "a")),
        (" b , a\n", ("b", "a")),
        (",a,,b,", ("a", "b")),
        ("a,b,a", ("a", "b")),
        ("a b", ("a b",)),
        ("A,a", ("A", "a")),
    ],
)
def test_topics_stand_between_commas_in_order_each_once(text, topics):
    assert Subscribe.from_text(text).topics == topics


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_a_subscription_without_a_topic_is_refused(text):
    with pytest.raises(ValueError, match=r"^a subscription needs at least one topic$"):
        Subscribe.from_text(text)


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("topic", "topic", True),
        ("top", "my-topic-1", True),
        ("^top", "my-topic", False),
        ("^topic$", "topic-1", False),
        ("topic-[0-9]+", "topic-12", True),
        ("topic-[0-9]+", "topic-x", False),
        ("TOPIC", "topic", False),
        ("a|b", "cb", True),
        (".*", "anything", True),
    ],
)
def test_a_pattern_may_match_anywhere_in_a_name(pattern, topic, matches):
    assert SubscribePattern(pattern).matches(topic) is matches


@given(st.text(alphabet="abc.-_", min_size=1), st.text(alphabet="abc.-_"), st.text(alphabet="abc"))
def test_a_literal_pattern_is_found_in_every_name_that_contains_it(name, before, after):
    assert SubscribePattern(re.escape(name)).matches(f"{before}{name}{after}")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "a pattern must not be empty"),
        ("(", "not a regular expression: '(': missing ), unterminated subpattern at position 0"),
        ("*", "not a regular expression: '*': nothing to repeat at position 0"),
        (
            "a{99999999999}",
            "not a regular expression: 'a{99999999999}': the repetition number is too large",
        ),
    ],
)
def test_a_malformed_pattern_is_refused_with_its_place(pattern, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        SubscribePattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("[a-z&&[^x]]", "&&"),
        ("[a-c[x-z]]", "["),
        (r"[^a\][b]]", "["),
        ("[[:alpha:]]", "["),
        ("[]a&&b]", "&&"),
        (r"\0101", r"\0101"),
        (r"[\0377]", r"\0377"),
    ],
)
def test_what_java_reads_otherwise_is_refused(pattern, found):
    """Python compiles it, and matches other topics than the JVM connector, mostly none."""
    with pytest.raises(ValueError, match=re.escape(f"{pattern!r}: '{found}' means")):
        SubscribePattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "topic"), [(r"^a&&b\[[x\[]$", "a&&b[x"), (r"\\[]a]\053", "\\]+"), (r"\0400", " 0")]
)
def test_what_both_read_alike_is_accepted(pattern, topic):
    assert SubscribePattern(pattern).matches(topic)


def test_a_pattern_that_is_nested_too_deeply():
    with pytest.raises(ValueError, match=r"^not a regular expression: .*recursion"):
        SubscribePattern("(" * 5_000 + ")" * 5_000)


@pytest.mark.parametrize(
    ("subscription", "text"),
    [
        (Assign(frozenset({B2, A1, A0})), "Assign[a-0, a-1, b-2]"),
        (Subscribe(("b", "a")), "Subscribe[b, a]"),
        (SubscribePattern("a.*"), "SubscribePattern[a.*]"),
    ],
)
def test_a_subscription_is_named_as_in_the_jvm_connector_and_can_be_pickled(subscription, text):
    assert str(subscription) == text
    assert pickle.loads(pickle.dumps(subscription)) == subscription  # noqa: S301
