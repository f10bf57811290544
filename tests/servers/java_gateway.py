"""A JVM whose classes a test uses, by Py4J."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from pyspark_kafka.brokers.java import require_java

_OPTIONS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def java_gateway(jars: Path) -> Iterator[Any]:
    """Yield the packages of a JVM with all jars of a directory.

    The JVM ends with this process, even if that is killed.
    """
    (py4j,) = (Path(str(files("pyspark"))) / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{jars}/*",
        javaopts=list(_OPTIONS),
        java_path=str(require_java()),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
