"""Spark sessions of commands, and the errors of Spark in short."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from ..domain.errors import Fault, PysparkKafkaError, Recovery, requires_extra
from ..domain.text import find_error
from .output import ending_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_STOP_SECONDS: Final = 20.0

_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM runs for seconds only: the C2 compiler would only compete with C1."""

_CONFIG: Final = {
    "spark.app.name": "pyspark-kafka demo",
    "spark.master": "local[4]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


class SparkQueryError(PysparkKafkaError):
    """Spark could not start, or a query of it failed."""

    condition = "SPARK_QUERY_FAILED"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    @classmethod
    def from_spark(cls, text: str) -> Self:
        """Return the error of this library that Spark's text quotes, or else its first line."""
        ours = find_error(text)
        if ours is None:
            first = text.strip().partition("\n")[0]
            return cls(f"Spark failed: {first} (--spark-log FILE keeps all that Spark logs)")
        error = cls(ours.text)
        error.args = (error.message,)
        error.fault = _fault_of(ours.kind)
        return error


def _fault_of(name: str) -> Fault:
    kinds = [PysparkKafkaError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    return next((kind.fault for kind in kinds if kind.__name__ == name), SparkQueryError.fault)


@contextmanager
def readable_spark_errors() -> Iterator[None]:
    """Raise Spark's errors as a short ``SparkQueryError``."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkQueryError.from_spark(str(error)) from error


def require_pyspark() -> str:
    """Return the version of PySpark.

    :raises MissingDependencyError: if it is not installed.
    """
    with requires_extra("spark", "pyspark", "pyspark"):
        import pyspark
    return pyspark.__version__


@contextmanager
def spark_session(directory: Path, log: Path) -> Iterator[SparkSession]:
    """Run Spark with its files in a directory, and its output in a log.

    The JVM copies the output of its Python workers to its own stderr, and so to the log.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    _prepare_workers()
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(_CONFIG.items()))
    conf.set("spark.local.dir", str(directory))
    conf.set("spark.sql.warehouse.dir", str(directory / "warehouse"))
    conf.set("spark.driver.extraJavaOptions", f'{_SHORT_LIVED} -Djava.io.tmpdir="{directory}"')
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))
        with _interrupts_deferred():
            gateway = _launch(conf, output)
            stack.callback(_stop, gateway)
        spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        stack.callback(spark.stop)
        yield spark


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at the end: an interrupted launch would leave a JVM behind."""
    received: list[int] = []
    with ending_signals(lambda number, _frame: received.append(number)):
        yield
    if received:
        raise KeyboardInterrupt(received[0])


def _launch(conf: SparkConf, output: IO[bytes]) -> Any:
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(  # type: ignore[no-untyped-call]
            conf, {"stdout": output, "stderr": output}
        )
    except OSError as error:
        # SPARK_HOME may be set to a directory without Spark.
        raise SparkQueryError(f"Spark could not be started: {error}") from error


def _prepare_workers() -> None:
    """Set the environment so that Spark's Python workers run this Python and this package."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(Path(__file__).parents[2])
    if root != sysconfig.get_path("purelib"):
        path = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([root, path] if path else [root])


def _stop(gateway: Any) -> None:
    """Stop the JVM, which outlives its sessions; it exits when its standard input closes."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
