"""A home of the installed Spark that starts fast."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from pyspark_kafka.brokers.jars import SILENT

_JAVA_OPTIONS: Final = (
    # The second compiler, and threads for garbage, cost tests more than they save.
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    # A killed JVM leaves its file behind.
    "-XX:-UsePerfData",
    *SILENT,
)

_FILE_MANAGERS: Final = tuple(
    f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    for package in ("checkpointing.", "")
)
"""Where Spark has it since 4.1, and before.

Spark's own for other storages. Its default for local files runs `readlink` for each of them, ten
times or more in a batch."""

_INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To generate and compile code for a query takes several times as long as a test's few rows."""

_SUBMIT: Final = """#!/bin/sh
export SPARK_LAUNCHER_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
exec {installed} --properties-file {properties} "$@"
"""
"""Java lets no directory with files be in the class path of archived classes: `conf` is empty."""


def class_archive(home: Path) -> Path:
    return home / "classes.jsa"


def java_options(*more: str) -> str:
    return " ".join((*_JAVA_OPTIONS, *more))


def make_spark_home(directory: Path, *, is_stock: bool = False) -> Path:
    """Return a home of the installed Spark, in a new directory, in which pyspark is not zipped.

    A Python that Spark starts, as it does for each stream, compiles pyspark again if it comes out
    of a zip. That takes longer than the rest of its start. JVMs have options that a short run gains
    by, before a session's options. With ``is_stock``, queries run as users have them: compiled, and
    with Spark's default for files of checkpoints.
    """
    unzipped = directory / "python" / "lib" / "pyspark.zip"
    unzipped.mkdir(parents=True)
    installed = _location("pyspark")
    for package in (installed, _location("py4j")):
        (unzipped / package.name).symlink_to(package)
    (directory / "jars").symlink_to(installed / "jars")
    for name in ("bin", "conf"):
        (directory / name).mkdir()
    for script in (installed / "bin").iterdir():
        (directory / "bin" / script.name).symlink_to(script)
    files = {"spark.sql.streaming.checkpointFileManagerClass": _file_manager(directory / "jars")}
    settings = {} if is_stock else {**files, **_INTERPRETED}
    _replace_submit(directory, installed / "bin" / "spark-submit", settings)
    return directory


def _replace_submit(home: Path, installed: Path, settings: Mapping[str, str]) -> None:
    options = java_options(f"-XX:SharedArchiveFile={class_archive(home)}")
    properties = home / "spark.properties"
    given = {
        "spark.driver.defaultJavaOptions": options,
        "spark.executor.defaultJavaOptions": options,
        **settings,
    }
    properties.write_text("".join(f"{name} {value}\n" for name, value in given.items()))
    submit = home / "bin" / "spark-submit"
    submit.unlink()
    submit.write_text(_SUBMIT.format(installed=installed, properties=properties))
    submit.chmod(0o755)


def _file_manager(jars: Path) -> str:
    [jar] = jars.glob("spark-sql_*.jar")
    with ZipFile(jar) as archive:
        classes = set(archive.namelist())
    return next(name for name in _FILE_MANAGERS if f"{name.replace('.', '/')}.class" in classes)


def _location(package: str) -> Path:
    """Return the directory of a package, without importing it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
