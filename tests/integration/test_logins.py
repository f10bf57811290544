"""Logins by the mechanisms of kafka-python that are our own, at a real broker."""

import base64
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from socket import create_server

import pytest
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.kafka_python import sasl
from pyspark_kafka.adapters.kafka_python.sasl import gssapi_messages
from pyspark_kafka.brokers.jars import kafka_jars
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.testing.kafka_world import KafkaWorld
from pyspark_kafka.testing.stream_task import StreamTask, echo, stream_sink
from pyspark_kafka.testing.world import COMMITTED, Capability, await_until, numbered
from tests.servers import kdc
from tests.servers.http_server import Request, Response, serving
from tests.servers.java_gateway import java_gateway
from tests.servers.kafka import SharedKafka
from tests.servers.kdc import Kdc
from tests.servers.secured import SHORT_SESSION_MS, SecuredBroker, login_module
from tests.servers.tested_kafka import capabilities_of, version_of_run

USER = "kerberos-user"
HAS_GSSAPI = find_spec("gssapi") is not None
"""There is no wheel for Linux, and some machines cannot build one."""


needs_gssapi = pytest.mark.skipif(
    not HAS_GSSAPI, reason="the package 'gssapi' has no wheel here, and could not be built"
)


class SecuredKafka(SharedKafka):
    """The secured broker, whose queries log in; what tests arrange needs no login."""

    def __init__(self, secured: SecuredBroker, options: Mapping[str, str]) -> None:
        super().__init__(secured.nodes)
        self._options = dict(options)

    @property
    def options(self) -> dict[str, str]:
        return self._options


@pytest.fixture
def world_of(secured, fresh_name):
    worlds: list[KafkaWorld] = []

    def make(options: Mapping[str, str]) -> KafkaWorld:
        client = options.get("client", "kafka-python")
        cluster = SecuredKafka(secured, options)
        capabilities = capabilities_of(client, version_of_run())
        worlds.append(KafkaWorld(client, fresh_name, cluster, capabilities))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def values(world: KafkaWorld) -> list[bytes]:
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, numbered(0, 2))
    return [row["value"] for row in world.records(partition)]


BOTH = [b"v0", b"v1"]


def assert_kerberos(world: KafkaWorld) -> None:
    """Check that a query logs in; without the package, that the extra is named that installs it."""
    if HAS_GSSAPI:
        assert values(world) == BOTH
        return
    with pytest.raises(OptionsError, match=r"pip install 'pyspark-kafka\[kerberos\]'"):
        values(world)


def test_keytab(secured, world_of, tmp_path, monkeypatch):
    options = secured.options("GSSAPI")
    assert_kerberos(world_of(options))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "tickets"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(secured.kdc.keytab(USER)))
    default = kdc.login_module(useKeyTab="true", principal=f"{USER}@{kdc.REALM}")
    assert_kerberos(world_of(with_jaas(options, default)))


def test_ticket_cache(secured, world_of, tmp_path, monkeypatch):
    cache = str(tmp_path / "tickets")
    if HAS_GSSAPI:
        get_ticket(secured, cache)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    named = kdc.login_module(useTicketCache="true", ticketCache=cache)
    assert_kerberos(world_of(with_jaas(secured.options("GSSAPI"), named)))
    monkeypatch.setenv("KRB5CCNAME", cache)
    default = kdc.login_module(useTicketCache="true")
    assert_kerberos(world_of(with_jaas(secured.options("GSSAPI"), default)))


def get_ticket(secured: SecuredBroker, cache: str) -> None:
    import gssapi

    store = {"client_keytab": str(secured.kdc.keytab(USER)), "ccache": cache}
    credentials = gssapi.Credentials(usage="initiate", store=store)
    assert credentials.lifetime > 0
    service = gssapi.Name("kafka@127.0.0.1", gssapi.NameType.hostbased_service)
    gssapi.SecurityContext(name=service, creds=credentials, usage="initiate").step()


def with_jaas(options: Mapping[str, str], line: str) -> dict[str, str]:
    return {**options, "kafka.sasl.jaas.config": line}


def kerberos_login(secured: SecuredBroker, principal: str = f"{USER}@{kdc.REALM}") -> Login:
    return Login("GSSAPI", keytab=str(secured.kdc.keytab(USER)), principal=principal)


def use_kdc(port: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kdc(port, path.parent, path).write_krb5_conf(path)
    monkeypatch.setenv(kdc.KRB5_CONFIG, str(path))


@needs_gssapi
def test_refused_tickets(secured, tmp_path):
    stranger = kerberos_login(secured, f"stranger@{kdc.REALM}")
    with pytest.raises(SaslAuthenticationFailedError, match=r"principal 'stranger@.*', keytab '/"):
        next(gssapi_messages(stranger, "127.0.0.1"))
    with pytest.raises(SaslAuthenticationFailedError, match=r"hdfs/127\.0\.0\.1@.* not found"):
        next(gssapi_messages(replace(kerberos_login(secured), service_name="hdfs"), "127.0.0.1"))
    cache = Login("GSSAPI", uses_ticket_cache=True, ticket_cache=str(tmp_path / "none"))
    with pytest.raises(SaslAuthenticationFailedError, match=r"\(ticket cache '.*/none'\)"):
        next(gssapi_messages(cache, "127.0.0.1"))


@needs_gssapi
def test_a_refused_query(secured, world_of):
    stranger = kdc.keytab_login("stranger", secured.kdc.keytab(USER))
    options = with_jaas(secured.options("GSSAPI"), stranger)
    started = time.monotonic()
    with pytest.raises(AuthenticationError, match="'stranger@") as caught:
        values(world_of(options))
    assert time.monotonic() - started < 20
    assert caught.value.condition == "KAFKA_AUTHENTICATION_FAILED"


@needs_gssapi
def test_a_security_layer_is_refused(secured):
    """A broker that requires encryption by SASL is refused: Kafka encrypts by TLS."""
    import gssapi

    keytab = {"keytab": str(secured.kdc.service_keytab)}
    credentials = gssapi.Credentials(usage="accept", store=keytab)
    broker = gssapi.SecurityContext(creds=credentials, usage="accept")
    messages = gssapi_messages(kerberos_login(secured), "127.0.0.1")
    assert messages.send(broker.step(next(messages))) == b""
    encryption_only = broker.wrap(bytes((4, 0, 16, 0)), encrypt=False).message
    with pytest.raises(SaslAuthenticationFailedError, match="requires a security layer"):
        messages.send(encryption_only)


@needs_gssapi
def test_hdfs_by_a_ticket(secured, tmp_path, monkeypatch):
    import gssapi

    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "tickets"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(secured.kdc.keytab(USER)))
    keytab = {"keytab": str(secured.kdc.keytab(kdc.WEB_SERVICE))}
    users: list[str] = []

    def respond(request: Request) -> Response:
        credentials = gssapi.Credentials(usage="accept", store=keytab)
        context = gssapi.SecurityContext(creds=credentials, usage="accept")
        scheme, _, message = request.headers["Authorization"].partition(" ")
        context.step(base64.b64decode(message))
        users.append(f"{scheme} {context.initiator_name}")
        return Response(b"zero", headers=(("Content-Type", "application/octet-stream"),))

    with serving(respond) as url:
        address = url.replace("http://localhost", "webhdfs://127.0.0.1")
        log = FsspecMetadataLog(StoragePath(f"{address}/x", '{"kerberos": true}'))
        assert log.get(0) == b"zero"
    assert users == [f"Negotiate {USER}@{kdc.REALM}"]


@needs_gssapi
def test_a_kdc_that_does_not_answer(secured, tmp_path, monkeypatch):
    """A login fails in time if the KDC accepts the connection and is silent, or is not there."""
    monkeypatch.setattr(sasl, "KDC_SECONDS", 0.5)
    # Tickets by the keytab of the other tests are still valid.
    keytab = shutil.copy(secured.kdc.keytab(USER), tmp_path)
    login = replace(kerberos_login(secured), keytab=str(keytab))
    with create_server(("127.0.0.1", 0)) as silent:
        use_kdc(silent.getsockname()[1], tmp_path / "silent.conf", monkeypatch)
        with pytest.raises(KafkaConnectionError, match=r"no KDC answered within 0\.5 s"):
            next(gssapi_messages(login, "127.0.0.1"))
    monkeypatch.setattr(sasl, "KDC_SECONDS", 30.0)
    with pytest.raises(KafkaConnectionError, match="Cannot contact any KDC"):
        next(gssapi_messages(login, "127.0.0.1"))


def test_a_user_name_that_scram_escapes(secured, world_of, client):
    user = "a,b=c"
    options = secured.add_user(user)
    secured.grant(user, "All", "Topic")
    assert values(world_of({**options, "client": client})) == BOTH


class Copies:
    """A topic that is copied record by record: by micro-batches, and by a continuous query."""

    def __init__(self, world: KafkaWorld) -> None:
        self._world = world
        self._source, self._batches, self._stream = (
            TopicPartition(world.topic(), 0) for _ in range(3)
        )
        exactly_once = Capability.CONTINUOUS_TRANSACTIONS in world.capabilities
        sink = stream_sink(world, self._stream.topic, exactly_once=exactly_once)
        self._task = StreamTask(world.stream_client(sink, world.fresh_name()), echo)
        self._task.assign({self._source: 0})
        container = world.container()
        self._offsets, self._reader = container.offset_fetcher(), container.record_reader()
        self._sink = world.sink_container()
        self._writer = self._sink.record_writer()
        self._copied = 0

    def copy_for(self, seconds: float) -> None:
        deadline = Deadline.after(seconds)
        while not deadline.has_passed:
            self._world.produce(self._source, numbered(self._copied, self._copied + 1))
            self._copied += 1
            self._copy_batch()
            self._task.read_to({self._source: self._copied})
        self._task.settle()

    def _copy_batch(self) -> None:
        end = self._offsets.latest([self._source])[self._source]
        read = self._reader.read(OffsetRange(self._source, end - 1, end), ALL_COLUMNS)
        with self._transaction():
            for batch in read:
                self._writer.write(batch.select(["value"]), self._batches.topic)
            self._writer.flush()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if Capability.TRANSACTIONAL_WRITES not in self._world.capabilities:
            yield
            return
        transactions = self._sink.transactions()
        opened = transactions.begin(f"{self._batches.topic}-{self._copied}")
        self._writer.join_transaction(opened)
        yield
        transactions.commit(opened)

    def assert_complete(self) -> None:
        for copy in (self._batches, self._stream):
            await_until(partial(self._is_complete, copy))

    def _is_complete(self, copy: TopicPartition) -> bool:
        rows = self._world.records(copy, **COMMITTED)
        return [row["value"] for row in rows] == [each.value for each in numbered(0, self._copied)]


def test_sessions_and_tickets_that_end(secured, world_of, tmp_path, monkeypatch):
    krb5_conf = tmp_path / "krb5.conf"
    lifetime_s = 2
    secured.kdc.write_krb5_conf(krb5_conf, lifetime_s=lifetime_s)
    monkeypatch.setenv(kdc.KRB5_CONFIG, str(krb5_conf))
    scram = secured.options("SCRAM-SHA-512")
    token = with_jaas(scram, delegation_token(scram))
    logins = [{**scram, "client": "confluent"}, scram, token]
    if HAS_GSSAPI:
        logins.append(secured.options("GSSAPI"))
    plaintext = {
        "kafka.bootstrap.servers": secured.sasl_plaintext,
        "kafka.security.protocol": "SASL_PLAINTEXT",
    }

    def copy(login: Mapping[str, str]) -> None:
        copies = Copies(world_of({**login, **plaintext}))
        copies.copy_for(lifetime_s + kdc.CLOCK_SKEW_S + 1.5 * SHORT_SESSION_MS / 1_000)
        copies.assert_complete()

    with ThreadPoolExecutor(len(logins)) as threads:
        list(threads.map(copy, logins))


def delegation_token(owner: Mapping[str, str]) -> str:
    with java_gateway(kafka_jars()) as java:
        properties = java.java.util.Properties()
        for name, value in owner.items():
            properties.put(name.removeprefix("kafka."), value)
        admin = java.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            token = admin.createDelegationToken().delegationToken().get()
            words = {
                "username": token.tokenInfo().tokenId(),
                "password": token.hmacAsBase64String(),
            }
        finally:
            admin.close()
    return login_module("scram.ScramLoginModule", **words, tokenauth="true")
