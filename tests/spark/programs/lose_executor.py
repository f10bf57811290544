"""Kill the executor of a continuous query's task, and Spark's driver; print what comes as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_kafka.adapters.spark.jobs import SparkTaskRunner
from pyspark_kafka.testing import await_until
from pyspark_kafka.testing.task_runner_contract import MAX_SECONDS, Rendezvous, await_end


def main(directory: Path) -> None:
    """Start a job of one task in an executor of its own, kill that, and then Spark's driver."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[1,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    rendezvous = Rendezvous(directory)

    def run(slot: int, attempt: str) -> None:
        (directory / f"process of {attempt}").write_text(str(os.getpid()))
        rendezvous.arrive(slot, attempt)
        while True:
            time.sleep(1)

    runner = SparkTaskRunner(spark)
    runner.start(1, run)
    await_until(lambda: len(rendezvous.arrivals()) == 1, MAX_SECONDS)
    [(_, attempt)] = rendezvous.arrivals()
    worker = int((directory / f"process of {attempt}").read_text())
    found: dict[str, object] = {
        "slots": runner.available_slots(),
        "runs failed tasks again": runner.runs_failed_tasks_again(),
    }
    kill_executor_of(worker)
    await_until(lambda: len(rendezvous.arrivals()) == 2, MAX_SECONDS)
    found |= {
        "slots run": [slot for slot, _ in rendezvous.arrivals()],
        "running": runner.is_running(),
        "old worker": Path(f"/proc/{worker}").exists(),
    }
    runner.cancel(MAX_SECONDS)
    found |= {"running after cancel": runner.is_running(), "failure": runner.failure()}
    runner.start(1, run)
    await_until(lambda: len(rendezvous.arrivals()) == 3, MAX_SECONDS)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    gateway.proc.kill()
    await_end(runner)
    found["failure without JVM"] = runner.failure()
    runner.cancel(MAX_SECONDS)
    print(json.dumps(found))


def kill_executor_of(worker: int) -> None:
    """Kill the JVM that started the daemon that forked a Python worker."""
    executor = parent_of(parent_of(worker))
    command = Path(f"/proc/{executor}/cmdline").read_text()
    assert "CoarseGrainedExecutorBackend" in command, command
    os.kill(executor, signal.SIGKILL)


def parent_of(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
