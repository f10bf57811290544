"""Use the client ``kafka-python`` with another ``kafka`` package than the installed one.

    python -m verification.matrix.next_release path/to/kafka-python

The folder has the package ``kafka``, as a checkout of its next release. All modules of the adapter
are imported; records are written, also in a transaction, read, and passed on continuously.
"""

import argparse
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import kafka
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka import continuous
from pyspark_kafka.adapters import kafka_python
from pyspark_kafka.brokers import KafkaCluster

COUNT: Final = 1_000
TOPICS: Final = ("written", "copied", "passed")
MODULES: Final = ("connecting", "connections", "fetcher", "transactions")
ROOT: Final = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Run the command in a process that imports the package of the folder."""
    parser = argparse.ArgumentParser("python -m verification.matrix.next_release")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder.resolve()
    path = os.pathsep.join(map(str, (folder, ROOT)))
    command = (sys.executable, "-m", "verification.matrix.next_release")
    if Path(kafka.__file__).is_relative_to(folder):
        use()
        return 0
    if os.environ.get("PYTHONPATH", "").startswith(str(folder)):
        parser.error(f"{folder} has no package 'kafka'")
    return subprocess.run(
        (*command, folder),
        env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        check=False,
    ).returncode


def use() -> None:
    """Use the library, and print what was done."""
    imported = [each.name for each in pkgutil.iter_modules(kafka_python.__path__)]
    for name in imported:
        import_module(f"{kafka_python.__name__}.{name}")
    assert {*MODULES} <= {*imported}
    say(f"kafka-python {kafka.__version__}: {len(imported)} modules are imported")
    with KafkaCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        for topic in TOPICS:
            cluster.create_topic(topic, 2)
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = spark.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "client": "kafka-python"}
        try:
            write(session, servers)
            write_in_transactions(session, servers, Path(folder))
            pass_on(session, servers, Path(folder))
        finally:
            session.stop()


def write(spark: SparkSession, servers: Mapping[str, str]) -> None:
    """Write a batch, and read it."""
    rows = spark.range(COUNT).selectExpr("cast(id as string) value")
    rows.write.format("pyspark_kafka").options(**servers, topic="written").mode("append").save()
    check(read(spark, servers, "written"), "written and read")


def write_in_transactions(spark: SparkSession, servers: Mapping[str, str], folder: Path) -> None:
    """Copy a topic with exactly-once delivery."""
    source = {**servers, "subscribe": "written", "startingOffsets": "earliest"}
    stream = spark.readStream.format("pyspark_kafka").options(**source).load()
    sink = {**servers, "topic": "copied", "deliveryGuarantee": "exactly-once"}
    query = (
        stream.select("value")
        .writeStream.format("pyspark_kafka")
        .options(**sink, checkpointLocation=str(folder / "copied"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    check(read(spark, servers, "copied"), "written in transactions")


def pass_on(spark: SparkSession, servers: Mapping[str, str], folder: Path) -> None:
    """Run a continuous query."""
    query = continuous.start(
        spark,
        values,
        source={**servers, "subscribe": "copied", "startingOffsets": "earliest"},
        sink={**servers, "topic": "passed", "deliveryGuarantee": "exactly-once"},
        checkpointLocation=str(folder / "passed"),
    )
    query.processAllAvailable()
    query.stop()
    check(read(spark, servers, "passed"), "passed on continuously")


def values(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return what is passed on."""
    return records.select(["value"])


def read(spark: SparkSession, servers: Mapping[str, str], topic: str) -> DataFrame:
    """Return the committed records of a topic."""
    options = {**servers, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    return spark.read.format("pyspark_kafka").options(**options).load()


def check(records: DataFrame, done: str) -> None:
    """Check that each record is there once."""
    found = sorted(int(row.value) for row in records.select("value").collect())
    assert found == list(range(COUNT)), f"{done}: {len(found)} records"
    say(f"{COUNT} records are {done}")


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
