import json
from typing import Any

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.brokers import EmbeddedBroker
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import numbered

from .client_files import connection
from .commands import run


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Any]:
    status = main(["topics", *arguments, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return [json.loads(line) for line in printed.out.splitlines()]


def test_topics_are_listed(world, capsys):
    name = world.topic(2, retention__ms="315360000000", retention__bytes="5000000")
    world.produce(TopicPartition(name, 1), numbered(0, 1_200))
    world.delete_records(TopicPartition(name, 1), 5)
    world.topic()
    servers = ("--bootstrap-servers", world.addresses["kafka.bootstrap.servers"])
    given = (f"^{name}$", *servers, "--client", world.client)
    (topic,) = listed(capsys, *given)
    assert (topic["topic"], topic["offsets"], topic["underReplicated"]) == (name, 1_195, 0)
    assert (topic["retentionMs"], topic["retentionBytes"]) == (315_360_000_000, 5_000_000)
    assert (topic["cleanupPolicy"], topic["replicationFactor"]) == ("delete", 1)
    first, second = topic["partitions"]
    assert (first["earliest"], first["latest"], first["leader"]) == (0, 0, 0)
    assert (second["earliest"], second["latest"], second["inSync"]) == (5, 1_200, [0])
    assert (second["bytes"] is None) == (world.client == "confluent")
    assert main(["topics", *given]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[3].split()[:3] == [name, "2", "1,195"]
    assert "3,650 days, 5.0 MB" in table[3]
    assert table[-1] == "1 topic, 2 partitions"
    assert main(["topics", *given, "--partitions"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[4][:5] == [name, "1", "5", "1,200", "1,195"]
    assert rows[4][-2:] == ["0", "1/1"]


def test_the_mock_broker(client, capsys):
    """A broker that cannot describe settings and sizes leaves them out."""
    with EmbeddedBroker() as broker:
        broker.create_topic("trial", 3)
        options = dict(broker.options)
        servers = options.pop("kafka.bootstrap.servers")
        more = [f"--option={name}={value}" for name, value in options.items()]
        (topic,) = listed(
            capsys, "trial", "--bootstrap-servers", servers, "--client", client, *more
        )
    assert (len(topic["partitions"]), topic["bytes"], topic["retentionMs"]) == (3, None, None)


def test_a_pipe_gets_each_topic_on_a_line():
    name = "a-topic-with-a-name-as-long-as-those-that-companies-prescribe"
    with EmbeddedBroker() as broker:
        broker.create_topic(name)
        servers = broker.options["kafka.bootstrap.servers"]
        more = [f"--option={key}={text}" for key, text in broker.options.items()]
        listed = run("topics", "--bootstrap-servers", servers, *more, COLUMNS="80")
    assert listed.returncode == 0, listed.stderr
    [line] = [line for line in listed.stdout.splitlines() if name in line]
    assert line.split()[:2] == [name, "1"]


def test_limited_rights(secured, client, fresh_name, tmp_path, capsys):
    topic, user = fresh_name(), fresh_name()
    secured.cluster.create_topic(topic)
    given = [*connection(tmp_path, secured.add_user(user)), "--client", client]
    assert listed(capsys, topic, *given) == []
    secured.grant(user, "Describe", "Topic", topic)
    (found,) = listed(capsys, f"^{topic}$", *given)
    assert (found["offsets"], found["bytes"], found["retentionMs"]) == (0, None, None)
