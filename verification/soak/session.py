"""A small Spark session for the drivers."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import pyspark_kafka

from .processes import end_with_parent


def settings_in(path: Path) -> Any:
    """Return the settings of a driver, which ends with the process that has started it."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    return json.loads(path.read_text())


def session(
    directory: Path, master: str, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, which keeps its own files in a directory."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    options = f"-Djava.io.tmpdir={temporary}"
    builder = (
        SparkSession.Builder()
        .master(master)
        .appName("soak")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.executor.extraJavaOptions", options)
        .config("spark.local.dir", str(temporary))
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return pyspark_kafka.session(builder)
