"""A Spark session of which nothing is seen but its answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ..domain.errors import MissingDependencyError
from .spark_errors import SparkQueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_STOP_SECONDS: Final = 20.0

_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM lives for seconds: its second compiler would only take time from the first."""

_CONFIG: Final = {
    "spark.app.name": "pyspark-kafka demo",
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


def require_pyspark() -> str:
    """Give Spark's version; ``MissingDependencyError`` when it is not installed."""
    try:
        import pyspark
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise MissingDependencyError("pyspark", "spark") from error
    return pyspark.__version__


@contextmanager
def spark_session(directory: Path, log: Path) -> Iterator[SparkSession]:
    """Run Spark with its files in a directory, and all that it prints in a log.

    The JVM writes what its Python workers print to its own stderr, so that the log has it too.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    _prepare_workers()
    conf = SparkConf(loadDefaults=False)
    conf.setAll([*_CONFIG.items(), *_settings_of(directory)])
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))
        with _interrupts_held_back():
            gateway = _launch(conf, output)
            stack.callback(_end, gateway)
        spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        stack.callback(spark.stop)
        yield spark


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at the end: a launch cut short leaves a JVM without an owner."""
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


def _launch(conf: SparkConf, output: IO[bytes]) -> Any:
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(  # type: ignore[no-untyped-call]
            conf, {"stdout": output, "stderr": output}
        )
    except OSError as error:
        # SPARK_HOME, if it is set, may hold no Spark.
        raise SparkQueryError(f"Spark could not be started: {error}") from error


def _settings_of(directory: Path) -> list[tuple[str, str]]:
    return [
        ("spark.local.dir", str(directory)),
        ("spark.sql.warehouse.dir", str(directory / "warehouse")),
        ("spark.driver.extraJavaOptions", f'{_SHORT_LIVED} -Djava.io.tmpdir="{directory}"'),
    ]


def _prepare_workers() -> None:
    """Let Spark's Python workers be this Python, and find this package, from where they look."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    home = str(Path(__file__).parents[2])
    if home != sysconfig.get_path("purelib"):
        path = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([home, path] if path else [home])


def _end(gateway: Any) -> None:
    """End the JVM, which outlives its last session; it exits when its standard input closes."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
