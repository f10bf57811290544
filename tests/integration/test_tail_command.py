import json
import signal
from typing import Any

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, numbered

from .commands import running

SCHEMA = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}'


def given(world: KafkaWorld, topic: str, *more: str) -> list[str]:
    servers = ("--bootstrap-servers", world.addresses["kafka.bootstrap.servers"])
    return ["tail", topic, *servers, "--client", world.client, *more]


def records(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> list[Any]:
    assert main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_parts_of_a_topic(world, capsys):
    topic = world.topic(2)
    one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    world.produce(one, [Record(b"a%d" % n, timestamp=1_000 * (n + 1)) for n in range(5)])
    world.produce(other, [Record(b'{"b": 0}', b"key", (("h", b"1"),), 9_000)])

    def values(*more: str) -> list[Any]:
        return sorted(each["value"] for each in records(capsys, given(world, topic, *more)))

    assert values("--from", "earliest", "--once") == ["a0", "a1", "a2", "a3", "a4", '{"b": 0}']
    assert values("--from", "3", "--partition", "0", "--once") == ["a3", "a4"]
    assert values("--from", "-1", "--partition", "0", "--count", "1") == ["a4"]
    assert values("--from", "1970-01-01T00:00:05Z", "--once") == ["a4", '{"b": 0}']
    assert values("--once") == []
    left_out = [f"--option=include{name}=false" for name in ("Key", "Value", "Topic", "Timestamp")]
    assert values("--from", "3", "--partition=0", "--once", *left_out) == ["a3", "a4"]
    (found,) = records(
        capsys, given(world, topic, "--partition=1", "--from=0", "--once", "--as=json")
    )
    assert found == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": "1970-01-01T00:00:09.000Z",
        "key": "key",
        "value": {"b": 0},
        "headers": [{"key": "h", "value": "1"}],
    }
    assert main(given(world, topic, "--partition=1", "--from=0", "--once", "--as=hex")) == 0
    assert capsys.readouterr().out == (
        f"1970-01-01T00:00:09.000Z  {topic}-1 @ 0  6b6579  7b2262223a20307d\n"
    )


def test_avro_values(world, capsys):
    topic = world.topic()
    world.produce(TopicPartition(topic, 0), [Record(b"\x02"), Record(b"\xff"), Record(None)])
    more = ("--from", "earliest", "--once", "--as", "avro", f"--option=valueSchema={SCHEMA}")
    good, bad, deleted = records(capsys, given(world, topic, *more))
    assert (good["value"], deleted["value"]) == ({"id": 1}, None)
    assert bad["value"] == "\\xff"
    assert bad["error"] == "it ends too early (field 'id')"


def test_records_as_they_come(world):
    topic = world.topic()
    partition = TopicPartition(topic, 0)
    world.produce(partition, numbered(0, 1))
    with running(*given(world, topic, "--from", "earliest")) as started:
        for number in range(1, 4):
            started.await_line(lambda line, end=f"v{number - 1}\n": line.endswith(end))  # type: ignore[misc]
            world.produce(partition, numbered(number, number + 1))
        assert started.end(signal.SIGINT) == 0
        assert list(started.errors) == []


def test_a_missing_topic(world, capsys):
    for more, condition in (
        ((world.fresh_name(),), "KAFKA_UNKNOWN_TOPIC"),
        ((world.topic(), "--partition", "3"), "KAFKA_INVALID_OPTIONS"),
    ):
        assert main(given(world, *more)) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: [{condition}] ")
