import json
from typing import Any

from pyspark_kafka.__main__ import main
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record
from pyspark_kafka.testing.dead_letters_contract import ERROR, bad
from pyspark_kafka.testing.writing_contract import MIXED_HEADERS


def write(world: KafkaWorld, topic: str, *rows: dict[str, Any]) -> None:
    letters = world.container().dead_letters(topic)
    letters.write(bad(*rows))
    letters.flush()


def given(world: KafkaWorld, action: str, topic: str, *more: str) -> list[str]:
    servers = ("--bootstrap-servers", world.addresses["kafka.bootstrap.servers"])
    return ["dead-letters", action, "--topic", topic, *servers, "--client", world.client, *more]


def test_letters_are_listed(world, capsys):
    topic = world.topic()
    write(world, topic, {"offset": 8}, {"offset": 9, "topic": "[red]"})
    write(world, topic, {"offset": 8}, {"offset": 10})
    world.produce(TopicPartition(topic, 0), [Record(b"of another program")])
    assert main(given(world, "list", topic, "--limit", "2")) == 0
    table = capsys.readouterr().out
    rows = [line.split() for line in table.splitlines()]
    assert [row[:4] for row in rows if "TYPE_MISMATCH" in row[:4]] == [
        ["orders", "3", "8", "TYPE_MISMATCH"],
        ["[red]", "3", "9", "TYPE_MISMATCH"],
    ]
    assert table.splitlines()[-3:] == [
        "and 1 more record; raise --limit to list them",
        "3 records in 4 letters: 3 TYPE_MISMATCH",
        "1 other record in the topic: no dead letters",
    ]
    assert main(given(world, "list", topic, "--limit", "1", "--json")) == 0
    shown = capsys.readouterr()
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {
            "topic": "orders",
            "partition": 3,
            "offset": 8,
            "reason": "TYPE_MISMATCH",
            "error": ERROR,
            "query": "8f1c-query",
            "letters": 2,
        }
    ]
    assert shown.err == "and 2 more records; raise --limit to list them\n"


def test_what_others_wrote_does_not_reach_the_terminal(world, capsys):
    topic = world.topic()
    texts = {"topic": b"t\x1b[2J", "partition": b"0", "offset": b"1"}
    texts |= {"exception.class.name": b"r\x1b[2J", "exception.message": b"e\x1b[2J"}
    headers = tuple((f"__connect.errors.{name}", text) for name, text in texts.items())
    world.produce(TopicPartition(topic, 0), [Record(b"v", headers=headers)])
    for action in (["list"], ["list", "--json"], ["replay", "--dry-run"]):
        assert main(given(world, action[0], topic, *action[1:])) == 0
        shown = capsys.readouterr().out
        assert "[2J" in shown
        assert "\x1b" not in shown


def test_records_are_written_back(world, capsys):
    topic, orders = world.topic(), world.topic(2)
    row = {"topic": orders, "partition": 1, "headers": MIXED_HEADERS}
    write(world, topic, {**row, "offset": 1}, {**row, "offset": 2})
    write(world, topic, {**row, "offset": 2}, {**row, "offset": 3, "topic": "other"})
    world.produce(TopicPartition(topic, 0), [Record(b"of another program")])
    replay = given(world, "replay", topic, "--from-topic", orders, "--group", world.fresh_name())
    said = [
        f"2 records to '{orders}'",
        "Skipped 1 letter: further letters of the same records",
        "Skipped 1 letter: not selected",
        "Skipped 1 record: no dead letters",
    ]
    assert main([*replay, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"Would write {said[0]}", *said[1:]]
    assert main([*replay, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "records": {orders: 2},
        "duplicates": 1,
        "unwanted": 1,
        "others": 1,
    }
    for lines in ([f"Wrote {said[0]}", *said[1:]], ["Wrote no records"]):
        assert main(replay) == 0
        assert capsys.readouterr().out.splitlines() == lines
    found = world.records(TopicPartition(orders, 1))
    assert [(each["key"], each["value"]) for each in found] == [(b"k", b"v")] * 2
    assert [each["headers"] for each in found] == [MIXED_HEADERS] * 2
    assert len(world.records(TopicPartition(topic, 0))) == 5


def test_a_record_whose_topic_is_gone_is_an_error(world, capsys):
    topic, gone = world.topic(), world.fresh_name()
    write(world, topic, {"topic": gone, "partition": 0})
    replay = given(world, "replay", topic, "--group", world.fresh_name())
    for _ in range(2):
        assert main([*replay, "--option", "kafka.max.block.ms=300"]) == 1
        assert f"'{gone}'" in capsys.readouterr().err
