import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from pyspark_kafka import QueryKind, container_for, parse_source_options
from pyspark_kafka.__main__ import main
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.cluster.topics import REPLICA_SELECTOR
from tests.servers.secured import MECHANISMS, PASSWORD, STORE_PASSWORD

from .client_files import connection

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

Findings = list[dict[str, str]]


class Patient:
    def __init__(self, client: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._client = client
        self._directory = directory
        self._capsys = capsys

    def examined(self, options: Mapping[str, str], *more: str) -> tuple[int, Findings]:
        given = connection(self._directory, options)
        status = main(["doctor", *given, "--client", self._client, *more, "--json"])
        out = self._capsys.readouterr().out
        assert PASSWORD not in out
        assert STORE_PASSWORD not in out
        found: Findings = [json.loads(line) for line in out.splitlines()]
        return status, found


@pytest.fixture
def patient(client, tmp_path, capsys):
    return Patient(client, tmp_path, capsys)


def problems(found: Findings) -> list[tuple[str, str]]:
    return [(each["check"], each["level"]) for each in found if each["level"] != "ok"]


def test_a_healthy_cluster(secured, patient, client, fresh_name):
    topic = fresh_name()
    secured.cluster.create_topic(topic, 2)
    resources = ("--topic", topic, "--group", fresh_name(), "--transactional-id", fresh_name())
    _, found = patient.examined(secured.plain_options(MECHANISMS["PLAIN"]), *resources)
    by_check = {each["check"]: each["summary"] for each in found}
    assert by_check["login"] == f"SASL_SSL by PLAIN, User:{MECHANISMS['PLAIN']}"
    assert "TLSv1.3" in by_check["tls"]
    assert by_check["topic"] == f"'{topic}': 2 partitions"
    expected = [("rights", "warning")] if client == "confluent" else []
    assert problems(found) == expected


def test_missing_rights(secured, patient, client, fresh_name):
    topic, user, group = fresh_name(), fresh_name(), fresh_name()
    secured.cluster.create_topic(topic)
    options = secured.add_user(user)
    resources = ("--topic", topic, "--group", group, "--transactional-id", "x")
    status, found = patient.examined(options, *resources)
    missing = [each for each in found if each["check"] == "rights"]
    assert status == 1
    assert [each["level"] for each in missing] == [
        *("error", "error", "error"),
        "warning" if client == "confluent" else "error",
    ]
    assert f"--allow-principal User:{user} --operation Read --topic {topic}" in missing[0]["advice"]
    secured.grant(user, "Read", "Topic", topic)
    secured.grant(user, "Read", "Group", group)
    _, found = patient.examined(options, *resources[:4])
    assert problems(found) == [("rights", "warning")]


def test_a_cluster_in_racks(client, capsys, monkeypatch):
    monkeypatch.setenv("KAFKA_CLIENT_RACK", "use1-az1")
    config = {"broker.rack": "use1-az1", REPLICA_SELECTOR: RACK_AWARE}
    racks = []
    with KafkaCluster(1, config=config) as cluster:
        given = ["--bootstrap-servers", cluster.bootstrap_servers, "--client", client, "--json"]
        for option in ("clientRackFrom=environment", "kafka.client.rack=us-east-1a"):
            status = main(["doctor", *given, "--option", option])
            found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            racks.append((status, [each["level"] for each in found if each["check"] == "racks"]))
    assert racks == [(0, ["ok", "ok"]), (3, ["ok", "warning"])]


def test_the_selector_of_replicas_needs_a_right(secured, client, fresh_name):
    options = secured.add_user(fresh_name()) | {"client": client, "subscribe": "t"}
    container = container_for(parse_source_options(options, QueryKind.BATCH))
    with closing(container.cluster_describer()) as describer:
        assert {each.rack for each in describer.brokers()} == {""}
        assert describer.replica_selector() is None


def test_a_wrong_password(secured, patient):
    status, found = patient.examined(secured.plain_options(MECHANISMS["PLAIN"], "wrong-one"))
    assert (status, problems(found)) == (1, [("login", "error")])
    assert "KAFKA_AUTHENTICATION_FAILED" in found[-1]["summary"]
    assert "wrong-one" not in str(found)


@pytest.mark.parametrize(
    ("listener", "advice"),
    [
        ("expired", "Renew the brokers' certificate"),
        ("wrong_host", "Connect to a name that the brokers' certificate has"),
        ("sasl_plaintext", "The port does not speak TLS"),
    ],
)
def test_certificates(secured, patient, listener, advice):
    options = secured.plain_options(MECHANISMS["PLAIN"])
    options["kafka.bootstrap.servers"] = getattr(secured, listener)
    status, found = patient.examined(options)
    (handshake,) = [each for each in found if each["check"] == "tls"]
    assert (status, handshake["level"]) == (1, "error")
    assert handshake["advice"].startswith(advice)


def test_a_table(kafka, client, capsys):
    given = ["--bootstrap-servers", kafka.bootstrap_servers, "--client", client]
    assert main(["doctor", *given, "--topic", "nothing-of-this-name"]) == 1
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    at = lines.index("error    topic            'nothing-of-this-name' does not exist")
    assert lines[at + 1].strip() == "Create it, or correct the name."
    assert lines[-1].startswith("1 error, ")
