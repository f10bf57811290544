"""The machine of a run."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_kafka.brokers import connector_jars, require_java
from pyspark_kafka.brokers.jars import KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parents[1]
CODE: Final = ("benchmarks", "kernel_build", "src")
PACKAGES: Final = ("pyspark", "pyarrow", "kafka-python", "confluent-kafka")
PROCESSORS: Final = Path("/proc/cpuinfo")
MODEL: Final = re.compile(r"model name\s*: (.+)")


def describe_machine() -> Mapping[str, str]:
    """Return the machine, the commit and the versions of packages, by name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Java": _java(),
        "Python": platform.python_version(),
        "pyspark-kafka": describe_commit(),
        **{package: version(package) for package in PACKAGES},
        "broker": f"Apache Kafka {KAFKA_VERSION}, one, on the same machine",
        "JVM connector": ", ".join(f"`{jar.stem}`" for jar in connector_jars()),
    }


def describe_commit() -> str:
    """Return the commit, and a digest of later changes to the code."""
    commit = _git("rev-parse", "--short=12", "HEAD").decode().strip()
    changes = _git("diff", "HEAD", "--", *CODE)
    digest = hashlib.sha256(changes).hexdigest()[:12]
    return f"commit `{commit}`" + (f" with changes `{digest}`" if changes else "")


def _processor() -> str:
    found = MODEL.search(PROCESSORS.read_text())
    return found[1] if found else platform.machine()


def _java() -> str:
    answer = subprocess.run(  # noqa: S603 - Java, and nothing from outside
        [str(require_java()), "-version"], capture_output=True, text=True, check=True
    )
    # It prints its version to stderr.
    return answer.stderr.splitlines()[0]


def _git(*arguments: str) -> bytes:
    return subprocess.run(  # noqa: S603 - git, and nothing from outside
        ["git", *arguments],  # noqa: S607 - of the path
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
