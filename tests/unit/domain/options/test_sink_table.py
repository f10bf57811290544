"""Every option of a sink alone: its default, what it is read from, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from pyspark_kafka.domain.options import SINK_TABLE, TABLE, DeliveryGuarantee, Option, QueryKind

from .given import SERVERS, sink_problems

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Case:
    """What is known of one option; ``bad`` are texts with the problems that they make."""

    default: object
    good: Mapping[str, object]
    bad: Mapping[str, str] = field(default_factory=dict)


CASES: Final[Mapping[str, Case]] = {
    "client": Case("kafka-python", {" confluent ": "confluent"}),
    "topic": Case(None, {" t ": "t"}, dict.fromkeys(["", " "], "topic must name a topic")),
    "deliveryGuarantee": Case(
        DeliveryGuarantee.AT_LEAST_ONCE,
        {
            " At-Least-Once ": DeliveryGuarantee.AT_LEAST_ONCE,
            "exactly-once": DeliveryGuarantee.EXACTLY_ONCE,
        },
        {
            text: f"deliveryGuarantee must be at-least-once or exactly-once, got '{text}'"
            for text in ("", "exactly_once", "at-most-once")
        },
    ),
    "metadataPath": Case(
        None,
        {" s3://b/p ": "s3://b/p"},
        dict.fromkeys(["", " "], "metadataPath must name a directory"),
    ),
    "metadataStorageOptions": Case(
        "{}",
        {'{"b":1,"a":{}}': '{"a": {}, "b": 1}'},
        dict.fromkeys(["x", "[]", ""], "metadataStorageOptions must be a JSON object"),
    ),
    "tokenProvider": Case(
        None,
        {" azure ": "azure", "my.module:get": "my.module:get"},
        {
            text: f"tokenProvider must be a function as 'module:function', or a name, got '{text}'"
            for text in ("", "my.module", "my-module:get")
        },
    ),
    "transactionalIdPrefix": Case(
        "pyspark-kafka",
        {" mine ": "mine"},
        dict.fromkeys(["", " "], "transactionalIdPrefix must not be empty"),
    ),
    "checkpointLocation": Case(None, {" /c ": "/c", "": ""}),
}
OPTIONS = pytest.mark.parametrize("option", SINK_TABLE, ids=lambda option: option.name)


def test_every_option_has_a_case() -> None:
    """An option that is added to the table is added to the cases, too."""
    assert [option.name for option in SINK_TABLE] == list(CASES)


def test_names_are_distinct() -> None:
    """No two options of a sink are looked up under one name."""
    keys = [option.key for option in SINK_TABLE]
    assert len(set(keys)) == len(keys)


def test_names_that_a_source_has_too() -> None:
    """What both sides look at means much the same on either."""
    shared = {option.name for option in SINK_TABLE} & {option.name for option in TABLE}
    assert shared == {"client", "metadataPath", "metadataStorageOptions", "tokenProvider"}


@OPTIONS
def test_default(option: Option[Any]) -> None:
    """An option that is left out asks for nothing."""
    assert option.default == CASES[option.name].default


@OPTIONS
def test_values(option: Option[Any]) -> None:
    """Each option is read as what it means, without the space around it."""
    for text, value in CASES[option.name].good.items():
        assert option.parse(text) == value


@OPTIONS
@pytest.mark.parametrize("query", QueryKind)
def test_refusals(option: Option[Any], query: QueryKind) -> None:
    """What an option cannot be is refused on its own and by a query, which tells nothing else."""
    for text, problem in CASES[option.name].bad.items():
        with pytest.raises(ValueError, match=r"\S") as caught:
            option.parse(text)
        assert str(caught.value) == problem
        assert sink_problems(SERVERS | {option.name: text}, query) == (problem,)


@OPTIONS
def test_documentation(option: Option[Any]) -> None:
    """Every option says what it means in whole sentences, and which values it takes."""
    assert option.doc.endswith(".")
    assert option.values


def test_options_of_one_kind_of_query() -> None:
    """What exactly-once needs is a stream's, the rest is for both kinds of query."""
    both = {option.name for option in SINK_TABLE if option.queries == set(QueryKind)}
    streams = {option.name for option in SINK_TABLE if option.queries == {QueryKind.STREAM}}
    assert both == {
        "client",
        "topic",
        "deliveryGuarantee",
        "metadataStorageOptions",
        "tokenProvider",
    }
    assert streams == CASES.keys() - both
