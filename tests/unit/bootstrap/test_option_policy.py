"""Where the operator's list of forbidden options is read: the environment, and Spark's setting."""

from types import SimpleNamespace
from typing import Any

import pytest

import pyspark_kafka
from pyspark_kafka import continuous
from pyspark_kafka.bootstrap.continuous import ConstantFunction, TaskProgram
from pyspark_kafka.bootstrap.option_policy import operator_policy, worker_environment
from pyspark_kafka.bootstrap.spark import ContainerUseCases, range_frames
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import DisallowedOptionError, OptionPolicyError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import DEFAULT_POLICY, UNRESTRICTED, disallowing

VARIABLE = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
SESSION_VARIABLE = "PYSPARK_KAFKA_SESSION_DISALLOWED_OPTIONS"
SETTING = "spark.sql.kafka.disallowedOptions"
AGAIN = r"is refused, because .*, for executors, too"
URL = "https://idp.example/token"
DANGEROUS = {
    "partitioner.class": "etl.routing:by_region",
    "plugin.library.paths": "/opt/x.so",
    "sasl.oauthbearer.token.endpoint.url": URL,
    "ssl.providers": "legacy",
}
GIVEN = {"kafka.bootstrap.servers": "b:9092", "kafka.fetch.min.bytes": "1"}


def session(**settings: str) -> Any:
    named = {f"spark.sql.kafka.{name}": value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=named.get))


@pytest.fixture
def classic_session(monkeypatch):
    """Return what stands for a session of an application whose operator allows something."""
    monkeypatch.setattr("pyspark_kafka.adapters.spark.session.is_classic", lambda _: True)
    conf = {"spark.pyspark_kafka.allowedModules": "etl", "spark.pyspark_kafka.allowedUrls": URL}
    spark = session(disallowedOptions="acks")
    spark.sparkContext = SimpleNamespace(getConf=lambda: SimpleNamespace(get=conf.get))
    return spark


def test_without_a_list_nothing_is_forbidden(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert operator_policy() == operator_policy(session()) == DEFAULT_POLICY
    assert worker_environment(session()) == {}


def test_the_environment_and_a_session_forbid(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sasl.kerberos.kinit.cmd, Acks")
    environment = disallowing("sasl.kerberos.kinit.cmd,acks", VARIABLE)
    assert operator_policy() == ContainerUseCases().option_policy() == environment
    spark = session(disallowedOptions="acks,linger.ms")
    policy = operator_policy(spark)
    for name, place in (("acks", VARIABLE), ("linger.ms", SETTING)):
        with pytest.raises(DisallowedOptionError, match=f"is listed in {place}"):
            policy.check([name])


def test_each_list_of_the_environment_allows_what_it_names(monkeypatch):
    monkeypatch.setenv("PYSPARK_KAFKA_ALLOWED_OPTIONS", "SSL_Providers")
    monkeypatch.setenv("PYSPARK_KAFKA_ALLOWED_FILES", "/opt/x.so")
    monkeypatch.setenv("PYSPARK_KAFKA_ALLOWED_URLS", URL)
    [problem] = operator_policy().problems(DANGEROUS, "confluent")
    assert problem == (
        "Option 'kafka.partitioner.class' is refused, because it imports a Python module. Ask the "
        "operator of Spark to list the module 'etl.routing' in PYSPARK_KAFKA_ALLOWED_MODULES"
    )
    monkeypatch.setenv("PYSPARK_KAFKA_ALLOWED_MODULES", "etl")
    assert operator_policy().problems(DANGEROUS, "confluent") == []
    monkeypatch.setenv("PYSPARK_KAFKA_ALLOWED_URLS", "http://idp.example/token")
    with pytest.raises(OptionPolicyError, match="PYSPARK_KAFKA_ALLOWED_URLS lists 'http://idp"):
        operator_policy()


def test_an_application_allows_and_its_workers_are_told_so(classic_session, monkeypatch):
    allowed = operator_policy(classic_session)
    assert allowed.module_problem("o", "etl") is None
    assert allowed.url_problem("o", URL) is None
    variables = worker_environment(classic_session)
    assert variables == {
        SESSION_VARIABLE: "acks",
        "PYSPARK_KAFKA_SESSION_ALLOWED_MODULES": "etl",
        "PYSPARK_KAFKA_SESSION_ALLOWED_URLS": URL,
    }
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert operator_policy() == allowed


def test_a_session_allows_nothing(classic_session):
    """A SET statement changes the session's configuration, which is not asked."""
    classic_session.conf.get = {"spark.pyspark_kafka.allowedOptions": "ssl.providers"}.get
    assert operator_policy(classic_session).problems({"ssl.providers": "x"}, "confluent")


def test_use_cases_check_options_again():
    """A task or a driver's process refuses options that were parsed without its policy."""
    raw = {**GIVEN, "subscribe": "t", "kafka.plugin.library.paths": "/x.so"}
    source = parse_source_options(raw, QueryKind.STREAM, UNRESTRICTED)
    raw = {**GIVEN, "topic": "t", "kafka.partitioner.class": "etl:route"}
    sink = parse_sink_options(raw, QueryKind.STREAM, UNRESTRICTED)
    cases = ContainerUseCases()
    refused = pytest.raises(OptionsError, match=AGAIN)
    with refused:
        range_frames(session(), source)
    with refused, cases.driver(source):
        pytest.fail("the options are not allowed")
    with refused, cases.task(source):
        pytest.fail("the options are not allowed")
    with refused, cases.sink(sink):
        pytest.fail("the options are not allowed")


@pytest.mark.parametrize("refused", ["source", "sink"])
def test_a_continuous_task_checks_options_again(refused):
    """A task refuses options before it connects to its driver."""
    source = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
    sink = {"kafka.bootstrap.servers": "b:9092", "topic": "t"}
    routed = {"kafka.partitioner.class": "etl:route"} if refused == "sink" else {}
    plugged = {"kafka.plugin.library.paths": "/x.so"} if refused == "source" else {}
    program = TaskProgram(
        parse_source_options({**source, **plugged}, QueryKind.STREAM, UNRESTRICTED),
        parse_sink_options({**sink, **routed}, QueryKind.STREAM, UNRESTRICTED),
        ContinuousSettings("prefix"),
        ConstantFunction(print),
        0.1,
        None,  # type: ignore[arg-type]  # not used
    )
    with pytest.raises(OptionsError, match=AGAIN):
        program(0, "attempt")


def test_workers_are_told_what_a_session_forbids(monkeypatch):
    """``register`` passes Spark's setting on, in a variable that leaves the environment's list."""
    registered: list[tuple[object, ...]] = []
    module = "pyspark_kafka.adapters.spark.session"
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


def test_an_invalid_list_forbids_everything(monkeypatch):
    """No query runs while the list may not mean what its author thinks."""
    monkeypatch.setenv(VARIABLE, "kafka.acks")
    with pytest.raises(OptionPolicyError, match=f"{VARIABLE} lists 'kafka.acks'"):
        operator_policy()
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(OptionPolicyError, match=f"{SETTING} lists 'kafka.acks'"):
        operator_policy(session(disallowedOptions="kafka.acks"))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("fetch.min.bytes", "1", DisallowedOptionError),
        ("plugin.library.paths", "/x.so", OptionsError),
    ],
)
def test_every_entry_honours_the_lists(monkeypatch, tmp_path, name, value, error):
    from pyspark_kafka.cli.parser import command_parser

    monkeypatch.setenv(VARIABLE, "fetch.min.bytes")
    given = {"kafka.bootstrap.servers": "b:9092", f"kafka.{name}": value}
    source = {**given, "subscribe": "t"}
    sink = {**given, "topic": "t"}
    plain = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
    with pytest.raises(error):
        continuous.start(None, print, source=source, checkpointLocation=str(tmp_path))
    with pytest.raises(error):
        continuous.start(None, print, source=plain, sink=sink, checkpointLocation=str(tmp_path))
    with pytest.raises(error):
        pyspark_kafka.lag_listener(source_options=given)
    lag = ["lag", "--checkpoint", str(tmp_path), "--bootstrap-servers", "b:9092"]
    parsed = command_parser().parse_args([*lag, "--option", f"kafka.{name}={value}"])
    with pytest.raises(error):
        parsed.run(parsed)


def test_a_session_s_list_holds_for_continuous_queries(tmp_path):
    source = {**GIVEN, "subscribe": "t"}
    spark = session(disallowedOptions="fetch.min.bytes")
    with pytest.raises(DisallowedOptionError, match=f"is listed in {SETTING}"):
        continuous.start(spark, print, source=source, checkpointLocation=str(tmp_path))
