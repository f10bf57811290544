"""Queries on a cluster that refuses a login, a certificate or a request."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.brokers.settings import as_properties_file
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
)
from pyspark_kafka.domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    Right,
    group_right,
    topic_right,
    transactional_id_right,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.servers.certificates import Authority
from tests.servers.fault_proxy import FaultProxy, proxied
from tests.servers.secured import GUEST, MECHANISMS, PASSWORD, SecuredBroker, login_module
from tests.servers.token_issuer import run_token_issuer
from tests.slowness import bound_s

from .commands import run
from .uses import (
    TRANSACTIONAL,
    USES,
    begin_transaction,
    commit_offsets,
    fetch_committed,
    plan,
    read,
    read_continuously,
    run_exactly_once,
    stream_offsets,
    write,
    write_without_id,
)

T = TypeVar("T")

MAX_SECONDS: Final = bound_s(10)
"""A third of the time-out of a request: a refusal is known from the first answer."""

MAX_LOGINS: Final = 2
WRONG: Final = "wrong-secret"

CLIENTS: Final = ("confluent", "kafka-python")
ONLY_KAFKA_PYTHON: Final = TRANSACTIONAL | {
    "group of exactly once",
    "output of exactly once",
    TlsFailure.CIPHER_NOT_SHARED,
}
"""`confluent` has no transactions, and librdkafka always offers TLS 1.3."""


def with_clients(cases: Iterable[T]) -> list[tuple[str, T]]:
    return [
        (client, case)
        for case in cases
        for client in CLIENTS
        if client == "kafka-python" or case not in ONLY_KAFKA_PYTHON
    ]


@pytest.fixture(scope="module", autouse=True)
def kernels(secured):
    """Load what a first task loads, which is not the time of a refusal."""
    secured.cluster.create_topic("kernels")
    for client in CLIENTS:
        options = {**secured.cluster.options, "client": client}
        write(options, "kernels")
        read(options, "kernels")


@contextmanager
def refused(kind: type[PysparkKafkaError]) -> Iterator[pytest.ExceptionInfo[Any]]:
    begun = time.monotonic()
    with pytest.raises(kind) as raised:
        yield raised
    assert time.monotonic() - begun < MAX_SECONDS
    told = str(raised.value)
    for secret in (WRONG, PASSWORD):
        assert secret not in told


@pytest.fixture
def proxy(secured):
    with proxied(f"//{secured.sasl}") as running:
        yield running


def through(proxy: FaultProxy, client: str, options: dict[str, str]) -> dict[str, str]:
    return {**options, "kafka.bootstrap.servers": proxy.address, "client": client}


@pytest.mark.parametrize(("client", "use"), with_clients(USES))
def test_a_wrong_password_is_tried_once(secured, proxy, client, use):
    options = through(proxy, client, secured.plain_options("ada", WRONG))
    with refused(AuthenticationError) as raised:
        USES[use](options, "t")
    assert (raised.value.mechanism, raised.value.user) == ("PLAIN", "ada")
    assert "Invalid username or password" in str(raised.value)
    assert 1 <= proxy.connections <= MAX_LOGINS


def test_a_wrong_password_of_scram(secured, proxy, client):
    mechanism, user = "SCRAM-SHA-512", "scram-512-user"
    module = login_module("scram.ScramLoginModule", username=user, password=WRONG)
    options = through(proxy, client, secured.options(mechanism, kafka__sasl__jaas__config=module))
    with refused(AuthenticationError) as raised:
        plan(options, "t")
    assert (raised.value.mechanism, raised.value.user) == (mechanism, user)
    assert 1 <= proxy.connections <= MAX_LOGINS


def test_a_mechanism_that_the_broker_does_not_have(secured, client):
    plain = secured.cluster.bootstrap_servers
    with proxied(f"//{plain}") as proxy:
        options = through(proxy, client, secured.plain_options("ada", WRONG))
        with refused(AuthenticationError) as raised:
            plan({**options, "kafka.security.protocol": "SASL_PLAINTEXT"}, "t")
        assert raised.value.mechanism == "PLAIN"
        assert 1 <= proxy.connections <= MAX_LOGINS


@pytest.mark.parametrize("refuser", ["issuer", "broker"])
def test_a_wrong_token(secured, proxy, client, refuser):
    user = MECHANISMS["OAUTHBEARER"]
    secret = WRONG if refuser == "broker" else "another"
    with run_token_issuer({user: secret}) as unknown:
        module = "oauthbearer.OAuthBearerLoginModule"
        options = secured.options(
            "OAUTHBEARER",
            kafka__sasl__jaas__config=login_module(module, clientId=user, clientSecret=WRONG),
            kafka__sasl__oauthbearer__token__endpoint__url=f"{unknown.url}/token",
        )
        with refused(AuthenticationError) as raised:
            plan(through(proxy, client, options), "t")
    assert raised.value.mechanism == "OAUTHBEARER"
    assert ("invalid_token" in str(raised.value)) == (refuser == "broker")
    assert proxy.connections <= MAX_LOGINS


def test_a_process_remembers_that_a_login_was_refused(secured, proxy, client):
    """A task that is tried again does not log in again, but for another password."""
    pool = ContainerPool()
    options = through(proxy, client, secured.plain_options("ada", WRONG, subscribe="t"))
    for _ in range(4):
        with (
            refused(AuthenticationError),
            pool.lease(parse_source_options(options, QueryKind.BATCH)) as container,
        ):
            container.batch().plan_input_partitions()
    assert 1 <= proxy.connections <= MAX_LOGINS
    rotated = through(proxy, client, secured.plain_options(GUEST, subscribe="t"))
    with (
        refused(AuthorizationError),
        pool.lease(parse_source_options(rotated, QueryKind.BATCH)) as container,
    ):
        container.batch().plan_input_partitions()


def test_an_adapter_remembers_that_a_login_was_refused(secured, proxy, client):
    """A monitor that continues after errors does not log in each time."""
    options = through(proxy, client, secured.plain_options("ada", WRONG, subscribe="t"))
    given = parse_source_options(options, QueryKind.STREAM)
    with closing_clients(container_for(given)) as container:
        for _ in range(4):
            with refused(AuthenticationError):
                container.offset_fetcher().latest([TopicPartition("t", 0)])
    assert 1 <= proxy.connections <= MAX_LOGINS


def options_without_trust(secured: SecuredBroker, path: Path) -> dict[str, str]:
    other = path / "other.pem"
    other.write_text(Authority("Another authority").pem)
    given = {"kafka.ssl.truststore.location": str(other), "kafka.ssl.truststore.type": "PEM"}
    options = {**secured.options("PLAIN"), **given}
    del options["kafka.ssl.truststore.password"]
    return options


def options_at(secured: SecuredBroker, listener: str) -> dict[str, str]:
    return {**secured.options("PLAIN"), "kafka.bootstrap.servers": listener}


def options_with_cipher(secured: SecuredBroker) -> dict[str, str]:
    return secured.options(
        "PLAIN",
        kafka__ssl__enabled__protocols="TLSv1.2",
        kafka__ssl__cipher__suites="TLS_RSA_WITH_AES_128_CBC_SHA",
    )


def options_without_key(secured: SecuredBroker) -> dict[str, str]:
    options = secured.options("mTLS")
    return {name: value for name, value in options.items() if "keystore" not in name}


TLS: Final[dict[TlsFailure, Callable[[SecuredBroker, Path], dict[str, str]]]] = {
    TlsFailure.CERTIFICATE_NOT_TRUSTED: options_without_trust,
    TlsFailure.CERTIFICATE_EXPIRED: lambda secured, _: options_at(secured, secured.expired),
    TlsFailure.HOST_NAME_MISMATCH: lambda secured, _: options_at(secured, secured.wrong_host),
    TlsFailure.CIPHER_NOT_SHARED: lambda secured, _: options_with_cipher(secured),
    TlsFailure.CLIENT_CERTIFICATE_REFUSED: lambda secured, _: options_without_key(secured),
    TlsFailure.NOT_TLS: lambda secured, _: options_at(secured, secured.sasl_plaintext),
}


@pytest.mark.parametrize(
    ("client", "failure"), with_clients(TLS), ids=lambda case: getattr(case, "name", case)
)
def test_a_failed_tls_handshake_says_why(secured, client, failure, tmp_path):
    options = {**TLS[failure](secured, tmp_path), "client": client}
    for use in (plan, write):
        with refused(TlsError) as raised:
            use(options, "t")
        assert raised.value.failure is failure, raised.value
        assert f"[KAFKA_TLS_FAILED.{failure.name}]" in str(raised.value)


def test_a_host_name_is_not_checked_if_no_algorithm_is_given(secured, client, fresh_name):
    topic = fresh_name()
    secured.cluster.create_topic(topic)
    options = {**options_at(secured, secured.wrong_host), "client": client}
    plan({**options, "kafka.ssl.endpoint.identification.algorithm": ""}, topic)


def of_topic(operation: Operation) -> Callable[[str], list[Right]]:
    return lambda topic: [topic_right(operation, topic)]


def of_group(operation: Operation) -> Callable[[str], list[Right]]:
    return lambda topic: [group_right(operation, f"group-{topic}")]


RIGHTS: Final[dict[str, tuple[Callable[..., None], list[str], Callable[[str], list[Right]]]]] = {
    "plan": (plan, [], of_topic(Operation.DESCRIBE)),
    "offsets": (stream_offsets, [], of_topic(Operation.DESCRIBE)),
    "read": (read, ["Describe Topic"], of_topic(Operation.READ)),
    "read what is hidden": (read, [], of_topic(Operation.DESCRIBE)),
    "continuous": (read_continuously, ["Describe Topic"], of_topic(Operation.READ)),
    "write": (
        write,
        ["Describe Topic"],
        lambda t: [topic_right(Operation.WRITE, t), IDEMPOTENT_WRITE],
    ),
    "write without a producer id": (
        write_without_id,
        ["Describe Topic"],
        of_topic(Operation.WRITE),
    ),
    "write to what is hidden": (write, [], of_topic(Operation.WRITE)),
    "transaction": (
        begin_transaction,
        [],
        lambda t: [transactional_id_right(Operation.WRITE, f"id-{t}")],
    ),
    "exactly once": (
        run_exactly_once,
        ["Describe Topic"],
        lambda t: [
            transactional_id_right(
                Operation.WRITE, ContinuousSettings(f"group-{t}").transactional_id(t, 0)
            )
        ],
    ),
    "group of exactly once": (
        run_exactly_once,
        ["Describe Topic", "Write Transactional_Id"],
        of_group(Operation.READ),
    ),
    "output of exactly once": (
        run_exactly_once,
        ["Read Topic", "Read Group", "Write Transactional_Id"],
        of_topic(Operation.WRITE),
    ),
    "committed offsets": (fetch_committed, ["Describe Topic"], of_group(Operation.DESCRIBE)),
    "commit": (commit_offsets, ["Read Topic"], of_group(Operation.READ)),
    "commit of a topic": (
        commit_offsets,
        ["Describe Topic", "Read Group"],
        of_topic(Operation.READ),
    ),
}


@pytest.mark.parametrize(("client", "case"), with_clients(RIGHTS))
def test_a_missing_right_is_named(secured, client, case, fresh_name):
    use, granted, missing = RIGHTS[case]
    topic = f"refused-{fresh_name()}"
    secured.cluster.create_topic(topic)
    for right in granted:
        operation, resource = right.split()
        names = {"Group": f"group-{topic}", "Transactional_Id": f"group-{topic}*"}
        secured.grant(GUEST, operation, resource, names.get(resource, topic))
    if "Read Topic" in granted:
        write({**secured.cluster.options, "client": client}, topic)
    options = {**secured.plain_options(GUEST), "client": client}
    with refused(AuthorizationError) as raised:
        use(options, topic)
    assert list(raised.value.rights) == missing(topic)
    assert raised.value.principal == f"User:{GUEST}"
    assert f"--allow-principal User:{GUEST}" in str(raised.value)


def test_a_command_says_why_in_one_line(secured, proxy, client, tmp_path):
    for log, text in (
        ("offsets", 'v1\n{"batchWatermarkMs":0}\n{"t":{"0":1}}'),
        ("commits", "v1\n{}"),
    ):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(text)
    options = through(proxy, client, secured.plain_options("ada", WRONG))
    config = tmp_path / "client.properties"
    prefix = "kafka."
    settings = {
        name.removeprefix(prefix): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
    config.write_text(as_properties_file(settings))
    given = ("--checkpoint", str(tmp_path), "--bootstrap-servers", proxy.address)
    ended = run("lag", *given, "--client", client, "--command-config", str(config))
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: [KAFKA_AUTHENTICATION_FAILED] The login of the user 'ada'")
    assert WRONG not in line
    assert 1 <= proxy.connections <= MAX_LOGINS
