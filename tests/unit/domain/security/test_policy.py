"""Options that an operator forbids, and the names by which queries may try."""

import pickle
from collections.abc import Callable, Mapping

import pytest

from pyspark_kafka.domain.errors import DisallowedOptionError, OptionPolicyError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_any_source_options, parse_source_options
from pyspark_kafka.domain.security.policy import (
    DEFAULT_POLICY,
    OptionPolicy,
    check_parsed,
    disallowing,
)

from ..options.given import BASE, BOTH, SERVERS

Parse = Callable[[Mapping[str, str], OptionPolicy], object]


POLICY = disallowing("Max.Poll.Records, ,ssl.keystore.location", "THE_LIST")

PARSERS = pytest.mark.parametrize(
    "parse",
    [
        lambda raw, policy: parse_source_options({**BASE, **raw}, QueryKind.BATCH, policy),
        lambda raw, policy: parse_source_options({**BASE, **raw}, QueryKind.STREAM, policy),
        lambda raw, policy: parse_any_source_options({**BASE, **raw}, policy),
        lambda raw, policy: parse_sink_options({**SERVERS, **raw}, QueryKind.BATCH, policy),
        lambda raw, policy: parse_sink_options({**SERVERS, **raw}, QueryKind.STREAM, policy),
    ],
    ids=["batch", "stream", "any", "batch write", "stream write"],
)


@PARSERS
@pytest.mark.parametrize(
    "name", ["kafka.max.poll.records", "KAFKA.MAX.POLL.RECORDS", "kafka.max_poll_records"]
)
def test_a_forbidden_setting_is_refused(parse, name):
    parse({name: "1"}, DEFAULT_POLICY)
    with pytest.raises(DisallowedOptionError) as caught:
        parse({name: "1", "nonsense": ""}, POLICY)
    spelled = name.lower().removeprefix("kafka.").replace("_", ".")
    assert caught.value.options == {spelled: "THE_LIST"}
    assert pickle.loads(pickle.dumps(caught.value)).options == caught.value.options  # noqa: S301  # our own


@PARSERS
def test_other_settings_are_accepted(parse):
    assert parse({"kafka.max.poll": "1", "kafka.fetch.min.bytes": "1"}, POLICY)


@BOTH
def test_every_forbidden_setting_is_named(query):
    raw = {"kafka.ssl.keystore.location": "/secret", "kafka.max.poll.records": "77"}
    with pytest.raises(DisallowedOptionError) as caught:
        parse_source_options({**BASE, **raw}, query, POLICY)
    assert list(caught.value.options) == ["max.poll.records", "ssl.keystore.location"]
    assert "/secret" not in str(caught.value)
    assert "77" not in str(caught.value)


@BOTH
def test_an_option_that_sets_a_forbidden_setting_is_refused(query):
    raw, policy = {**BASE, "clientRackFrom": "aws"}, disallowing("client.rack", "THE_LIST")
    with pytest.raises(DisallowedOptionError, match=r"kafka\.client\.rack"):
        parse_source_options(raw, query, policy)
    with pytest.raises(DisallowedOptionError, match=r"kafka\.client\.rack"):
        check_parsed(parse_source_options(raw, query), policy)


def test_two_lists_forbid_what_either_does():
    both = POLICY | disallowing("max.poll.records,acks", "ANOTHER")
    for name, place in (
        ("max.poll.records", "THE_LIST"),
        ("ssl.keystore.location", "THE_LIST"),
        ("acks", "ANOTHER"),
    ):
        with pytest.raises(DisallowedOptionError) as caught:
            both.check([name])
        assert caught.value.options == {name: place}


@pytest.mark.parametrize("names", ["kafka.acks", "acks,KAFKA.acks", " kafka.", "kafka_acks"])
def test_a_name_with_the_prefix_is_refused(names):
    """A list that would silently forbid nothing is an error."""
    with pytest.raises(OptionPolicyError, match="No query can run: THE_LIST lists"):
        disallowing(names, "THE_LIST")


@pytest.mark.parametrize("names", ["", " ", ",", " , "])
def test_an_empty_list_forbids_nothing(names):
    assert disallowing(names, "THE_LIST") == DEFAULT_POLICY == OptionPolicy()


def test_a_policy_is_checked_before_options():
    with pytest.raises(OptionsError):
        parse_sink_options({"kafka.max.poll.records": "1"}, QueryKind.BATCH)
    with pytest.raises(DisallowedOptionError):
        parse_sink_options({"kafka.max.poll.records": "1"}, QueryKind.BATCH, POLICY)
