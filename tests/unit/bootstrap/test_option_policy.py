"""Where the operator's list of forbidden options is read: the environment, and Spark's setting."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import pyspark_kafka
from pyspark_kafka import continuous
from pyspark_kafka.bootstrap.option_policy import operator_policy, worker_environment
from pyspark_kafka.bootstrap.spark import ContainerUseCases
from pyspark_kafka.cli.lag_arguments import LagSettings
from pyspark_kafka.cli.order_feed import OrderFeed
from pyspark_kafka.cli.topics import existing_topic
from pyspark_kafka.domain.errors import DisallowedOptionError, OptionPolicyError
from pyspark_kafka.domain.options import UNRESTRICTED, disallowing

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
SESSION_VARIABLE = "PYSPARK_KAFKA_SESSION_DISALLOWED_OPTIONS"
SETTING = "spark.sql.kafka.disallowedOptions"
GIVEN = {"kafka.bootstrap.servers": "b:9092", "kafka.fetch.min.bytes": "1"}


def session(**settings: str) -> Any:
    """Return what stands for a session with these settings, by their last names."""
    named = {f"spark.sql.kafka.{name}": value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=named.get))


def test_without_a_list_all_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is forbidden by default, and workers are told nothing."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert operator_policy() == operator_policy(session()) == UNRESTRICTED
    assert worker_environment(session()) == {}


def test_the_environment_and_a_session_forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment lists is forbidden, and what Spark's setting lists as well."""
    monkeypatch.setenv(VARIABLE, "sasl.kerberos.kinit.cmd, Acks")
    environment = disallowing("sasl.kerberos.kinit.cmd,acks", VARIABLE)
    assert operator_policy() == ContainerUseCases().option_policy() == environment
    spark = session(disallowedOptions="acks,linger.ms")
    policy = operator_policy(spark)
    for name, place in (("acks", VARIABLE), ("linger.ms", SETTING)):
        with pytest.raises(DisallowedOptionError, match=f"is listed in {place}"):
            policy.check([name])


def test_workers_are_told_what_a_session_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    """``register`` passes Spark's setting on, in a variable that leaves the environment's list."""
    registered: list[tuple[object, ...]] = []
    module = "pyspark_kafka.adapters.spark.registration"
    monkeypatch.setattr(f"{module}.register_source", lambda *given: registered.append(given))
    pyspark_kafka.register(session(disallowedOptions="acks,linger.ms"))
    [(_, source, variables)] = registered
    assert source is pyspark_kafka.DefaultSource
    assert variables == {SESSION_VARIABLE: "acks,linger.ms"}
    monkeypatch.setenv(VARIABLE, "retries")
    monkeypatch.setenv(SESSION_VARIABLE, "acks,linger.ms")
    policy = disallowing("retries", VARIABLE) | disallowing("acks,linger.ms", SETTING)
    assert operator_policy() == policy
    with pytest.raises(OptionPolicyError):
        pyspark_kafka.register(session(disallowedOptions="kafka.acks"))


def test_an_invalid_list_forbids_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No query runs while the list may not mean what its author thinks."""
    monkeypatch.setenv(VARIABLE, "kafka.acks")
    with pytest.raises(OptionPolicyError, match=f"{VARIABLE} lists 'kafka.acks'"):
        operator_policy()
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(OptionPolicyError, match=f"{SETTING} lists 'kafka.acks'"):
        operator_policy(session(disallowedOptions="kafka.acks"))


def test_every_entry_honours_the_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Continuous queries, listeners and commands refuse what the operator forbids."""
    from pyspark_kafka.cli import lag

    monkeypatch.setenv(VARIABLE, "fetch.min.bytes")
    source = {**GIVEN, "subscribe": "t"}
    sink = {**GIVEN, "topic": "t"}
    plain = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
    with pytest.raises(DisallowedOptionError):
        continuous.start(None, print, source=source, checkpointLocation=str(tmp_path))
    with pytest.raises(DisallowedOptionError):
        continuous.start(None, print, source=plain, sink=sink, checkpointLocation=str(tmp_path))
    with pytest.raises(DisallowedOptionError):
        pyspark_kafka.lag_listener(source_options=GIVEN)
    with pytest.raises(DisallowedOptionError):
        OrderFeed(GIVEN, "t", 1)
    with pytest.raises(DisallowedOptionError):
        existing_topic(GIVEN, "t", "kafka-python")
    settings = LagSettings(
        checkpoint=str(tmp_path),
        bootstrap_servers="b:9092",
        client="kafka-python",
        options=(("kafka.fetch.min.bytes", "1"),),
    )
    with pytest.raises(DisallowedOptionError):
        lag._options(settings)


def test_a_session_s_list_holds_for_continuous_queries(tmp_path: Path) -> None:
    """Spark's setting is read where there is a session."""
    source = {**GIVEN, "subscribe": "t"}
    spark = session(disallowedOptions="fetch.min.bytes")
    with pytest.raises(DisallowedOptionError, match=f"is listed in {SETTING}"):
        continuous.start(spark, print, source=source, checkpointLocation=str(tmp_path))
