"""The producer's settings: what Java's client takes, what it refuses, and what it makes of them.

What is expected was seen with ``ProducerConfig`` of Kafka's client 3.9.2, Spark 4.2's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.kafka_settings import (
    ALL_REPLICAS,
    COMPRESSIONS,
    ROUND_ROBIN,
    ProducerSettings,
)
from pyspark_kafka.domain.kafka_settings.producer import producer_settings
from pyspark_kafka.domain.kafka_settings.setting import Ignored, ProducerField, Refused
from pyspark_kafka.domain.kafka_settings.table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE: Final = "org.apache.kafka.clients.producer"
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

WRITES: Final = {setting.name: setting.write for setting in SETTINGS if setting.write}
FIELDS: Final = {
    name: write.name
    for name, write in WRITES.items()
    if isinstance(write, ProducerField) and write.name
}
WITHOUT_EFFECT: Final = {
    name: write.reason for name, write in WRITES.items() if isinstance(write, Ignored)
}
REFUSED: Final = {
    name: write.message for name, write in WRITES.items() if isinstance(write, Refused)
}
OF_READS: Final = {
    setting.name for setting in SETTINGS if isinstance(setting.read, Ignored) or setting.jvm
}

ACKS: Final = (
    "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee "
    "idempotence."
)
RETRIES: Final = "Must set retries to non-zero when using the idempotent producer."
IN_FLIGHT: Final = (
    "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer."
)
CONFLICTS: Final = {
    "acks": ("1", ACKS),
    "retries": ("0", RETRIES),
    "max.in.flight.requests.per.connection": ("6", IN_FLIGHT),
}

NUMBERS: Final = {
    "batch.size": (0, INT32_MAX),
    "buffer.memory": (0, INT64_MAX),
    "delivery.timeout.ms": (1, INT32_MAX),
    "max.block.ms": (0, INT64_MAX),
    "max.in.flight.requests.per.connection": (1, INT32_MAX),
    "max.request.size": (0, INT32_MAX),
    "retries": (0, INT32_MAX),
    "transaction.timeout.ms": (1, INT32_MAX),
}
LEVELS: Final = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131_072, 22)}
BOUNDS: Final = NUMBERS | {f"compression.{codec}.level": bounds for codec, bounds in LEVELS.items()}
BOOLEANS: Final = {"true": True, "FALSE": False}
CHOICES: Final[Mapping[str, Mapping[str, object]]] = {
    "acks": {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "0": 0, "1": 1},
    "compression.type": {codec: codec for codec in COMPRESSIONS},
    "enable.idempotence": BOOLEANS,
    "partitioner.class": {
        "": None,
        f"{PACKAGE}.internals.DefaultPartitioner": None,
        f"{PACKAGE}.RoundRobinPartitioner": ROUND_ROBIN,
        "package.module:Class.method": "package.module:Class.method",
    },
    "partitioner.ignore.keys": BOOLEANS,
}
REFUSALS: Final = {
    "acks": (["ALL", "2", ""], "must be all, -1, 0 or 1"),
    "compression.type": (
        ["GZIP", "uncompressed", ""],
        "must be one of none, gzip, snappy, lz4, zstd",
    ),
    "enable.idempotence": (["1", "yes", ""], "must be true or false"),
    "partitioner.class": (
        ["x", "my.Partitioner", ":f", "m:", "m:f:g", "m.:f", "m:f()"],
        (
            f"must be {PACKAGE}.RoundRobinPartitioner, or a function of Python's as "
            "'module:function': no Java class runs here"
        ),
    ),
    "partitioner.ignore.keys": (["1", "yes", ""], "must be true or false"),
}


def read(**settings: str) -> ProducerSettings:
    """Settings that can be used; ``__`` stands for a dot."""
    found, problems = producer_settings(
        {name.replace("__", "."): text for name, text in settings.items()}
    )
    assert problems == []
    return found


def texts(name: str) -> st.SearchStrategy[str]:
    """Return texts that a setting may have."""
    if name in CHOICES:
        return st.sampled_from(sorted(CHOICES[name]))
    return st.integers(*BOUNDS[name]).map(str)


def test_defaults() -> None:
    """Records are acknowledged by all replicas, once each, as Java's client has it since 3.0."""
    assert producer_settings({}) == (ProducerSettings(), [])
    assert (read().acks, read().is_idempotent, read().retries) == (ALL_REPLICAS, True, INT32_MAX)


def test_every_setting_is_tried() -> None:
    """A setting that is added is added to the tables of this module."""
    assert BOUNDS.keys() | CHOICES.keys() == WRITES.keys() - WITHOUT_EFFECT.keys() - REFUSED.keys()
    assert {*FIELDS.values(), "compression_level"} == {
        field.name for field in fields(ProducerSettings)
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    """A number may be any that Java takes and a producer can follow, its bounds included."""
    for bound in NUMBERS[name]:
        found, problems = producer_settings({name: str(bound)})
        assert (getattr(found, FIELDS[name]), problems) == (bound, [])


@pytest.mark.parametrize("name", BOUNDS)
def test_numbers_out_of_bounds(name: str) -> None:
    """What is no number, or none between the bounds, is told with them."""
    least, most = BOUNDS[name]
    for text in (str(least - 1), str(most + 1), "", "x", "1.0", "1e3", "9" * 5_000):
        _, problems = producer_settings({name: text})
        assert problems == [
            f"Option 'kafka.{name}' must be a whole number from {least} to {most}, got '{text}'"
        ]


@pytest.mark.parametrize(("name", "meanings"), CHOICES.items())
def test_choices(name: str, meanings: Mapping[str, object]) -> None:
    """A choice is read as Java reads it, in upper or lower case only where Java does so."""
    for text, meaning in meanings.items():
        found, problems = producer_settings({name: text})
        assert (getattr(found, FIELDS[name]), problems) == (meaning, [])


@pytest.mark.parametrize(("name", "refusal"), REFUSALS.items())
def test_no_choices(name: str, refusal: tuple[list[str], str]) -> None:
    """What is none of a setting's choices is told with them."""
    wrong, problem = refusal
    for text in wrong:
        assert producer_settings({name: text})[1] == [
            f"Option 'kafka.{name}' {problem}, got '{text}'"
        ]


@pytest.mark.parametrize("codec", LEVELS)
def test_the_level_of_a_codec(codec: str) -> None:
    """The level is the chosen codec's; levels of other codecs have no effect."""
    levels = {f"compression.{name}.level": str(most) for name, (_, most) in LEVELS.items()}
    most = LEVELS[codec][1]
    found, problems = producer_settings(levels | {"compression.type": codec})
    assert (found.compression, found.compression_level, problems) == (codec, most, [])


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
def test_no_level_of_a_codec(codec: str) -> None:
    """Without a level of its own a codec has its default, and that is what gzip's -1 is, too."""
    settings = {"compression.type": codec, "compression.gzip.level": "-1"}
    found, problems = producer_settings(settings | {"compression.zstd.level": "1"})
    assert (found.compression_level, problems) == (None, [])


def test_the_sticky_partitioner_ignores_keys() -> None:
    """Java's UniformStickyPartitioner looks at no key, unlike the partitioner it resembles."""
    sticky = read(partitioner__class=f"{PACKAGE}.UniformStickyPartitioner")
    assert (sticky.partitioner, sticky.ignores_keys) == (None, True)
    assert read(partitioner__class=f"{PACKAGE}.internals.DefaultPartitioner") == read()


@given(st.sets(st.sampled_from(sorted(CONFLICTS)), min_size=1))
def test_idempotence_gives_way(names: set[str]) -> None:
    """Settings that rule idempotence out turn it off, unless it is asked for."""
    settings = {name: CONFLICTS[name][0] for name in names}
    found, problems = producer_settings(settings)
    assert (found.is_idempotent, problems) == (False, [])
    assert producer_settings(settings | {"enable.idempotence": "false"}) == (found, [])


@given(st.sets(st.sampled_from(sorted(CONFLICTS))))
def test_idempotence_that_is_asked_for(names: set[str]) -> None:
    """If idempotence is asked for, all settings that rule it out are reported in Java's words."""
    settings = {name: CONFLICTS[name][0] for name in names} | {"enable.idempotence": "true"}
    found, problems = producer_settings(settings)
    assert found.is_idempotent
    assert problems == [problem for name, (_, problem) in CONFLICTS.items() if name in names]


def test_a_setting_that_cannot_be_read_contradicts_nothing() -> None:
    """One mistake is one problem."""
    settings = {"acks": "2", "enable.idempotence": "true", "retries": "-1"}
    problems = producer_settings(settings)[1]
    assert [problem.partition(" must")[0] for problem in problems] == [
        "Option 'kafka.acks'",
        "Option 'kafka.retries'",
    ]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: texts(name) for name in (BOUNDS.keys() | CHOICES.keys()) - CONFLICTS.keys()
        },
    ),
    st.dictionaries(st.sampled_from(sorted(WITHOUT_EFFECT)), st.text()),
)
def test_any_settings_together(settings: dict[str, str], others: dict[str, str]) -> None:
    """Settings that may be set alone may be set together; those without effect have none."""
    found, problems = producer_settings(settings)
    assert problems == []
    assert producer_settings(settings | others) == (found, [])
    for name in FIELDS.keys() & settings.keys():
        meaning = CHOICES[name][settings[name]] if name in CHOICES else int(settings[name])
        assert getattr(found, FIELDS[name]) == meaning


@given(st.sets(st.sampled_from(sorted(BOUNDS.keys() | CHOICES.keys() | REFUSED.keys()))))
def test_all_problems_are_reported_together(names: set[str]) -> None:
    """One run tells every setting that has to be corrected, the refused ones first."""
    problems = producer_settings(dict.fromkeys(names, "?"))[1]
    refused = [problem for name, problem in REFUSED.items() if name in names]
    assert problems[: len(refused)] == refused
    assert [problem.split("'")[1] for problem in problems[len(refused) :]] == [
        f"kafka.{name}" for name in sorted(names - REFUSED.keys())
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("key.serializer", "is not supported as keys are serialized with ByteArraySerializer."),
        ("value.serializer", "is not supported as value are serialized with ByteArraySerializer."),
        ("interceptor.classes", "is not supported: no Java class runs here; "),
        ("transactional.id", "is not supported: set the option 'deliveryGuarantee' to "),
    ],
)
@pytest.mark.parametrize("text", ["", "x"])
def test_refused(name: str, start: str, text: str) -> None:
    """What a sink decides by itself is refused with any value, serializers in Spark's words."""
    [problem] = producer_settings({name: text})[1]
    assert problem.startswith(f"Kafka option '{name}' {start}")


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_reasons(name: str) -> None:
    """A setting without effect says why it has none, and a read ignores it, too."""
    assert WITHOUT_EFFECT[name]
    assert name in OF_READS


def test_settings_of_others_are_left_alone() -> None:
    """The settings of connections and of consumers are no business of the producer's."""
    others = {"bootstrap.servers": "b:1", "sasl.password": "hush", "group.id": "g", "": ""}
    assert producer_settings(others) == (ProducerSettings(), [])


def test_a_read_takes_settings_of_writing() -> None:
    """A read accepts the settings of writes."""
    # One setting is every client's, not the producer's alone.
    of_clients = {"max.in.flight.requests.per.connection"}
    assert WRITES.keys() - REFUSED.keys() - of_clients <= OF_READS
