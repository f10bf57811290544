"""Start sessions as a user would, and print what came of it as JSON."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyspark_kafka

BUFFER = "spark.buffer.size"
VARIABLE = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
SETTING = "spark.sql.kafka.disallowedOptions"
REDACTION = "spark.redaction.regex"
ALLOWED = "spark.pyspark_kafka.allowedOptions"
KINIT = "sasl.kerberos.kinit.cmd"
PLUGIN = "plugin.library.paths"


def main() -> None:
    """Ask for a session while a plain one is there, and start another one."""
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("pyspark_kafka").addHandler(handler)
    plain = local().getOrCreate()
    found: dict[str, object] = {"same": pyspark_kafka.session() is plain, "late": warnings[:]}
    plain.stop()
    warnings.clear()
    builder = local().config(SETTING, "linger.ms")
    builder = builder.config(ALLOWED, KINIT)
    spark = pyspark_kafka.session(builder)
    conf = spark.sparkContext.getConf()
    spared, loaded = spark.sparkContext.parallelize([0], 1).map(worker).collect()[0]
    found |= {
        "buffer": conf.get(BUFFER),
        "sockets": conf.get("spark.python.unix.domain.socket.enabled"),
        "socket directory": conf.get("spark.python.unix.domain.socket.dir"),
        "kernels": "pyspark_kafka.adapters.kafka_format.decode_kernel" in loaded,
        "spared": spared,
        "python": spark.sparkContext.pythonExec == sys.executable,
        "warnings": warnings,
        "redaction": conf.get(REDACTION),
    }
    lift_bans(spark)
    found |= {
        "refused": refusal(spark, "kafka.acks"),
        "unregistered": refusal(spark, "kafka.linger.ms"),
        "not allowed": refusal(spark, f"kafka.{KINIT}"),
    }
    pyspark_kafka.register(spark)
    found |= {
        "refused later": refusal(spark, "kafka.acks"),
        "registered": refusal(spark, "kafka.linger.ms"),
        "partly allowed": refusal(spark, f"kafka.{KINIT}", f"kafka.{PLUGIN}"),
    }
    spark.stop()
    print(json.dumps(found))


def lift_bans(spark: SparkSession) -> None:
    """Change what a program can of the lists that its JVM was started with."""
    del os.environ[VARIABLE]
    spark.sql(f"SET spark.executorEnv.{VARIABLE}=")
    spark.sql(f"SET {ALLOWED}={KINIT},{PLUGIN}")
    spark.sql(f"SET spark.executorEnv.PYSPARK_KAFKA_ALLOWED_OPTIONS={PLUGIN}")


def refusal(spark: SparkSession, *options: str) -> str:
    given = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", **dict.fromkeys(options, "1")}
    try:
        spark.read.format("pyspark_kafka").options(**given).load()
    except AnalysisException as error:
        return str(error)
    return ""


def local() -> SparkSession.Builder:
    return (
        SparkSession.Builder()
        .master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )


def worker(_nothing: int) -> tuple[bool, list[str]]:
    """Return what a worker has before it was asked for anything: spared objects, modules."""
    return gc.get_freeze_count() > 0, list(sys.modules)


if __name__ == "__main__":
    main()
