from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.cluster.doctor import Doctor, Resources, Surroundings
from pyspark_kafka.brokers.errors import JavaError
from pyspark_kafka.domain.cluster.finding import (
    Environment,
    Finding,
    Level,
    PeerCertificate,
    ok,
)
from pyspark_kafka.domain.cluster.topics import Broker, PartitionDescription, TopicDescription
from pyspark_kafka.domain.cluster.versions import MIN_VERSIONS
from pyspark_kafka.domain.errors import MissingDependencyError, PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.racks import RackNotFoundError
from pyspark_kafka.domain.security.errors import AuthenticationError, AuthorizationError
from pyspark_kafka.domain.security.rights import Operation, group_right, topic_right

HERE = Environment("3.12.1", {"pyspark-kafka": "0.1.0", **MIN_VERSIONS})
READ = frozenset({Operation.DESCRIBE, Operation.READ})


@dataclass
class Network:
    """A network in which everything works but what has an error."""

    names: dict[str, OSError] = field(default_factory=dict)
    ports: dict[int, OSError] = field(default_factory=dict)
    certificates: dict[str, Exception] = field(default_factory=dict)

    def resolve(self, host: str) -> list[str]:
        if host in self.names:
            raise self.names[host]
        return ["10.0.0.1"]

    def connect(self, _host: str, port: int) -> None:
        if port in self.ports:
            raise self.ports[port]

    def handshake(self, host: str, _port: int) -> PeerCertificate:
        if host in self.certificates:
            raise self.certificates[host]
        return PeerCertificate(("CN=b",), 365 * 86_400_000, "TLSv1.3", "AES")


@dataclass
class Cluster:
    """A cluster whose brokers answer with an error, if there is one."""

    brokers_: Sequence[Broker] = (Broker(0, "b", 9092),)
    error: PysparkKafkaError | None = None
    refused: PysparkKafkaError | None = None
    leader: int | None = 0
    selector: str | None = ""

    def brokers(self) -> Sequence[Broker]:
        if self.error is not None:
            raise self.error
        return self.brokers_

    def replica_selector(self) -> str | None:
        if self.refused is not None:
            raise self.refused
        return self.selector

    def api_versions(self) -> None:
        return None

    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        if self.refused is not None:
            raise self.refused
        partition = PartitionDescription(self.leader, frozenset({0}), frozenset({0}))
        return {
            topic: TopicDescription({0: partition}, operations=READ)
            for topic in topics
            if topic != "unknown"
        }

    def group_operations(self, _group_id: str) -> frozenset[Operation]:
        if self.refused is not None:
            raise self.refused
        return READ

    def transactional_id_operations(self, _transactional_id: str) -> frozenset[Operation]:
        return READ


JAVA = "/usr/bin/java"
SURROUNDINGS = Surroundings(HERE, Network(), MemoryClock(), lambda: JAVA, lambda: "a")


def examined(
    *,
    network: Network | None = None,
    cluster: Cluster | None = None,
    resources: Resources | None = None,
    java: Callable[[], str] = lambda: JAVA,
    rack: Callable[[], str] = lambda: "a",
    here: Environment = HERE,
    **options: str,
) -> list[Finding]:
    given = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
    given |= {name.replace("__", "."): value for name, value in options.items()}
    surroundings = replace(
        SURROUNDINGS,
        network=network or Network(),
        java=java,
        rack=rack,
        environment=here,
    )
    doctor = Doctor(
        parse_source_options(given, QueryKind.STREAM),
        resources or Resources(),
        surroundings,
        lambda: cluster or Cluster(),  # type: ignore[arg-type, return-value]
    )
    return list(doctor.examine())


def problems(found: list[Finding]) -> list[tuple[str, Level, str]]:
    return [(each.check, each.level, each.summary) for each in found if each.level is not Level.OK]


def test_checks_are_in_the_order_in_which_a_query_meets_them():
    resources = Resources(("t",), ("g",), ("x",))
    found = examined(resources=resources, kafka__security__protocol="SSL")
    assert [each.check for each in found[-12:]] == [
        *("dns", "tcp", "tls", "login", "cluster", "racks"),
        *("api versions", "topic", "rights", "rights", "rights", "rights"),
    ]
    assert problems(found) == [
        ("rights", Level.WARNING, "write, exactly-once: Write on the topic 't' is missing")
    ]


def test_java_is_looked_for_where_pyspark_is():
    """A missing Java is a warning: a client of Spark Connect needs none."""

    def missing() -> str:
        raise JavaError("there is no java on the PATH", 17)

    assert ok("java", JAVA) in examined()
    [(check, level, summary)] = problems(examined(java=missing))
    assert (check, level) == ("java", Level.WARNING)
    assert "Java 17 or newer is required, but there is no java on the PATH" in summary
    without_spark = replace(HERE, packages={"pyspark-kafka": "0.1.0"})
    assert "java" not in {each.check for each in examined(java=missing, here=without_spark)}


def test_each_address_has_its_error_and_the_login_is_not_tried():
    network = Network(
        names={"no": OSError("Name or service not known")},
        ports={1: ConnectionRefusedError("refused")},
    )
    found = examined(
        network=network, cluster=Cluster(error=None), kafka__bootstrap__servers="no:9,[::1]:1,"
    )
    assert problems(found) == [
        ("dns", Level.ERROR, "no: OSError: Name or service not known"),
        ("tcp", Level.ERROR, "::1:1: ConnectionRefusedError: refused"),
        ("login", Level.ERROR, "was not tried: no broker can be reached"),
    ]
    assert all(each.advice for each in found if each.level is not Level.OK)


def test_a_refused_certificate_has_the_advice_of_its_reason():
    network = Network(
        certificates={
            "b": OSError("certificate verify failed: Hostname mismatch"),
            "c": OSError("reset"),
            "d": MissingDependencyError("cryptography", "tls"),
        }
    )
    found = examined(
        network=network,
        kafka__security__protocol="SSL",
        kafka__bootstrap__servers="b:9092,c:1,d:2,e:3",
    )
    handshakes = [each for each in found if each.check == "tls"]
    assert [each.level for each in handshakes] == [Level.ERROR] * 3 + [Level.OK]
    assert "Connect to a name that the brokers' certificate has" in handshakes[0].advice
    assert "The port does not speak TLS" in handshakes[1].advice
    assert "[KAFKA_MISSING_DEPENDENCY]" in handshakes[2].summary


def test_a_server_without_a_port_is_checked_at_kafkas():
    """The clients connect to that port, too."""
    found = examined(kafka__bootstrap__servers="b")
    assert [each.summary for each in found if each.check == "tcp"] == ["b:9092"]


def test_advertised_listeners_are_checked():
    cluster = Cluster([Broker(0, "b", 9092), Broker(1, "internal", 9092)])
    found = examined(network=Network(names={"internal": OSError("unknown")}), cluster=cluster)
    assert problems(found) == [("dns", Level.ERROR, "internal: OSError: unknown")]
    assert [each.summary for each in found if each.check == "cluster"] == ["2 brokers"]


RACKED = [Broker(0, "b", 9092, "a"), Broker(1, "b", 9092, "c")]
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def test_the_rack_of_the_query_is_compared_with_those_of_the_brokers():
    cluster = Cluster(RACKED, selector=RACK_AWARE)
    assert problems(examined(cluster=cluster, kafka__client__rack="c")) == []
    [(check, level, summary)] = problems(examined(cluster=cluster, kafka__client__rack="x"))
    assert (check, level) == ("racks", Level.WARNING)
    assert summary.startswith("kafka.client.rack: no broker is in 'x', only in a, c")
    [(check, level, summary)] = problems(examined(cluster=cluster))
    assert "about 1/2 of the bytes" in summary


def test_the_rack_of_this_host_is_looked_for():
    cluster = Cluster(RACKED, selector=RACK_AWARE)
    found = examined(cluster=cluster, clientRackFrom="aws")
    assert ok("racks", "clientRackFrom=aws: 'a', with 1 of 2 brokers") in found

    def fail() -> str:
        raise RackNotFoundError("the variable KAFKA_CLIENT_RACK of this process", "it is not set")

    found = examined(cluster=cluster, rack=fail, clientRackFrom="environment")
    [(check, level, summary)] = problems(found)
    assert (check, level) == ("racks", Level.WARNING)
    assert summary.startswith("clientRackFrom=environment: no rack was found on this host: the ")
    assert summary.endswith("it is not set")


def test_brokers_without_racks_are_not_asked_for_their_selector():
    rights = [topic_right(Operation.DESCRIBE, "t")]
    refused = AuthorizationError("a request", rights, "b:9092", "User:ada")
    assert problems(examined(cluster=Cluster(refused=refused))) == []
    found = problems(examined(cluster=Cluster(RACKED, refused=refused)))
    assert [(check, level) for check, level, _ in found] == [("racks", Level.ERROR)]


def test_after_a_refused_login_the_cluster_is_not_examined():
    refused = AuthenticationError("b:9092", "PLAIN", "ada", "no")
    found = examined(cluster=Cluster(error=refused), resources=Resources(("t",)))
    assert found[-1].check == "login"
    assert found[-1].summary.startswith("[KAFKA_AUTHENTICATION_FAILED] ")
    assert found[-1].advice == "Who can fix it: the query's author."


def test_a_login_names_the_user():
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ada" password="hidden";'
    )
    found = examined(
        kafka__security__protocol="SASL_PLAINTEXT",
        kafka__sasl__mechanism="PLAIN",
        kafka__sasl__jaas__config=jaas,
    )
    assert [each.summary for each in found if each.check == "login"] == [
        "SASL_PLAINTEXT by PLAIN, User:ada"
    ]
    assert "hidden" not in str(found)


def test_a_topic_may_be_missing_without_leaders_or_hidden():
    resources = Resources(("unknown", "t"), ("g",))
    missing = problems(examined(resources=resources))
    assert ("topic", Level.ERROR, "'unknown' does not exist") in missing
    leaderless = examined(resources=resources, cluster=Cluster(leader=None))
    assert ("topic", Level.ERROR, "'t': 1 of 1 partitions have no leader") in problems(leaderless)
    rights = [topic_right(Operation.DESCRIBE, "t"), group_right(Operation.DESCRIBE, "g")]
    refused = AuthorizationError("a request", rights, "b:9092", "User:ada")
    hidden = problems(
        examined(resources=Resources(("t",), ("g",)), cluster=Cluster(refused=refused))
    )
    assert [(check, level) for check, level, _ in hidden] == [("rights", Level.ERROR)] * 3
