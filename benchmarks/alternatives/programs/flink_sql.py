"""Flink's Table API: a bounded Kafka table into `blackhole`, or into another Kafka table."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.alternatives.task import CORES, Task, main

RECORDS: Final = """
    CREATE TEMPORARY TABLE records (
        `key` BYTES,
        `value` BYTES,
        `partition` INT METADATA VIRTUAL,
        `offset` BIGINT METADATA VIRTUAL,
        `timestamp` TIMESTAMP_LTZ(3) METADATA VIRTUAL
    ) WITH (
        'connector' = 'kafka',
        'topic' = '{task.source}',
        'properties.bootstrap.servers' = '{task.bootstrap_servers}',
        'scan.startup.mode' = 'earliest-offset',
        'scan.bounded.mode' = 'latest-offset',
        'key.format' = 'raw',
        'key.fields' = 'key',
        'value.format' = 'raw',
        'value.fields-include' = 'EXCEPT_KEY'{tuning}
    )
"""
DROPPED: Final = """
    CREATE TEMPORARY TABLE dropped (
        `key` BYTES, `value` BYTES, `partition` INT, `offset` BIGINT, `timestamp` TIMESTAMP_LTZ(3)
    ) WITH ('connector' = 'blackhole')
"""
COPIES: Final = """
    CREATE TEMPORARY TABLE copies (`key` BYTES, `value` BYTES) WITH (
        'connector' = 'kafka',
        'topic' = '{task.target}',
        'properties.bootstrap.servers' = '{task.bootstrap_servers}',
        'properties.acks' = 'all',
        'sink.delivery-guarantee' = 'at-least-once',
        'key.format' = 'raw',
        'key.fields' = 'key',
        'value.format' = 'raw',
        'value.fields-include' = 'EXCEPT_KEY'{tuning}
    )
"""
READING: Final = """,
        'properties.max.partition.fetch.bytes' = '8388608',
        'properties.fetch.max.bytes' = '67108864',
        'properties.receive.buffer.bytes' = '4194304',
        'properties.max.poll.records' = '10000'"""
WRITING: Final = """,
        'properties.batch.size' = '524288',
        'properties.linger.ms' = '20',
        'properties.buffer.memory' = '67108864'"""


def read(task: Task) -> int:
    """Read a topic into a sink that drops the rows."""
    _insert(task, DROPPED, "INSERT INTO dropped SELECT * FROM records")
    return task.records


def copy(task: Task) -> int:
    """Write the records of a topic to the other one."""
    table = COPIES.format(task=task, tuning=WRITING if task.variant == "tuned" else "")
    _insert(task, table, "INSERT INTO copies SELECT `key`, `value` FROM records")
    return task.records


def _insert(task: Task, sink: str, insert: str) -> None:
    environment = _environment(task.jars)
    for table in ("records", "dropped", "copies"):
        environment.drop_temporary_table(table)
    tuning = READING if task.variant == "tuned" else ""
    environment.execute_sql(RECORDS.format(task=task, tuning=tuning))
    environment.execute_sql(sink)
    environment.execute_sql(insert).wait()


@cache
def _environment(jars: str) -> Any:
    configuration = Configuration()
    for name, value in {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars.split(",")),
        "pipeline.object-reuse": "true",
        "parallelism.default": str(CORES),
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
    }.items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_batch_mode()
    return TableEnvironment.create(settings.with_configuration(configuration).build())


if __name__ == "__main__":
    main(read, copy)
