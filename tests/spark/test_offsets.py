"""Queries in Spark that resume after ``pyspark-kafka offsets rewrite``."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from pyspark_kafka.brokers import KafkaCluster

from ..integration.commands import run
from .queries import OURS, PEER, read_stream, run_available_now

RECORDS = 10


def rewrite(kafka: KafkaCluster, checkpoint: Path, to: str) -> None:
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    stopped = ("--yes", "--query-is-stopped")
    ended = run("offsets", "rewrite", str(checkpoint), "--to", to, *servers, *stopped)
    assert (ended.returncode, ended.stderr) == (0, "")


def offsets_of(rows: DataFrame) -> list[int]:
    return sorted(row["offset"] for row in rows.select("offset").collect())


@pytest.mark.parametrize(("source", "other"), [(OURS, PEER), (PEER, OURS)])
def test_queries_resume_at_new_offsets(spark, kafka, topics, tmp_path, source, other):
    topic = topics.create()
    topics.numbers(topic, 0, range(RECORDS))
    first, second = (
        read_stream(spark, kafka, each, subscribe=topic, startingOffsets="earliest")
        for each in (source, other)
    )
    once = list(range(RECORDS))
    assert offsets_of(run_available_now(first, tmp_path)) == once
    (tmp_path / "offsets.json").write_text(json.dumps({topic: {"0": 6}}))
    rewrite(kafka, tmp_path / "checkpoint", str(tmp_path / "offsets.json"))
    assert offsets_of(run_available_now(first, tmp_path)) == sorted([*once, 6, 7, 8, 9])
    commits = tmp_path / "checkpoint/commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    rewrite(kafka, tmp_path / "checkpoint", "earliest")
    assert offsets_of(run_available_now(second, tmp_path)) == sorted([*once, *once, 6, 7, 8, 9])
