import json

import pytest

from pyspark_kafka.__main__ import main
from tests.unit.cli.arguments import write_files


@pytest.fixture
def checkpoint(tmp_path):
    return write_files(
        tmp_path,
        offsets_0='v1\n{"batchTimestampMs":1795251150969}\n{"t":{"0":4,"1":2}}',
        commits_0="v1\n{}",
        offsets_1='v1\n{"batchTimestampMs":1795251160969}\n{"t":{"0":9,"1":2}}',
    )


def test_a_line_for_each_partition_has_both_offsets_and_their_difference(checkpoint, capsys):
    assert main(["offsets", "show", checkpoint]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["t", "0", "4", "9", "+5"] in lines
    assert ["t", "1", "2", "2", "0"] in lines
    assert main(["offsets", "export", checkpoint]) == 0
    assert capsys.readouterr().out == '{"t":{"0":4,"1":2}}\n'
    assert main(["offsets", "show", checkpoint, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["planned"] for each in shown["partitions"]] == [9, 2]


def test_a_rewrite_to_another_checkpoint(checkpoint, tmp_path, capsys):
    seventh = {"offsets_7": 'v1\n{}\n{"t":{"0":1}}', "commits_7": "v1\n{}"}
    other = write_files(tmp_path / "other", **seventh)
    given = ["offsets", "rewrite", checkpoint, "--to", f"checkpoint:{other}"]
    assert main(given) == 1
    assert "[KAFKA_QUERY_IS_RUNNING] " in capsys.readouterr().err
    stopped = "--query-is-stopped"
    assert main([*given, stopped, "--json"]) == 1
    assert "confirm the change with --yes" in capsys.readouterr().err
    assert main([*given, stopped, "--dry-run"]) == 0
    assert "Nothing was written." in capsys.readouterr().out
    assert main([*given, stopped, "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "batch 1, which is dropped" in shown
    assert "To undo it" in shown
    assert ["t", "0", "4", "1", "-3"] in [line.split() for line in shown.splitlines()]
    assert main(["offsets", "export", checkpoint]) == 0
    assert capsys.readouterr().out == '{"t":{"0":1,"1":2}}\n'
    assert main(["offsets", "undo", checkpoint, stopped, "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "batch 1, which is restored" in shown
    assert shown.endswith("Done.\n")
    assert main(["offsets", "undo", checkpoint, "--yes"]) == 1
    assert "There is no rewrite to undo" in capsys.readouterr().err
