"""Run a query with a shuffle before its sink to the end of its input, or to its failure.

The argument is a file of JSON, which ``verification.soak.write_stage_soak`` writes. Its directory
gets a file ``outcome`` with "ended" or "failed"; then this process waits to be killed, as Spark's
own end logs more than the failure.
"""

import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from verification.soak.session import session, settings_in
from verification.soak.stage_faults import StageFaults


def add_workers(spark: SparkSession, hosts: list[str], directory: Path) -> None:
    """Add a worker of Spark on each host: a speculative task is never on the host of the first."""
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    cluster = scala_object(jvm.org.apache.spark.deploy, "LocalSparkCluster").get().get()
    field = cluster.getClass().getDeclaredField("masterRpcEnvs")
    field.setAccessible(True)
    masters = gateway.new_array(jvm.String, 1)
    masters[0] = field.get(cluster).head().address().toSparkURL()
    worker = scala_object(jvm.org.apache.spark.deploy.worker, "Worker")
    none = scala_object(jvm.scala, "None")
    conf = spark.sparkContext._jsc.sc().conf()
    for number, host in enumerate(hosts):
        work = str(directory / f"worker-{number}")
        worker.startRpcEnvAndEndpoint(host, 0, 0, 1, 700, masters, work, none, conf, none)


def scala_object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def run(path: Path) -> None:
    config = settings_in(path)
    spark = session(path.parent, config["master"], config["settings"])
    if config["hosts"]:
        add_workers(spark, config["hosts"], path.parent)
    faults = StageFaults(**config["faults"])
    (
        spark.readStream.format("pyspark_kafka")
        .options(**config["read"])
        .load()
        .select("value")
        .repartition(config["tasks"])
        .selectExpr(f"cast(concat(value, repeat('.', {config['padding']})) as binary) as value")
        .mapInArrow(lambda batches: faults(batches), "value binary")  # noqa: PLW0108  # a function
        .writeStream.format("pyspark_kafka")
        .options(**config["write"])
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def main(path: Path) -> None:
    outcome = "ended"
    try:
        run(path)
    except Exception:  # noqa: BLE001  # it is in the log
        traceback.print_exc()
        outcome = "failed"
    (path.parent / "outcome").write_text(outcome)
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
