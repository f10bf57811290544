"""``pyspark-kafka doctor``: check a cluster, and what a query needs to use it."""

from __future__ import annotations

import json
import logging
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..bootstrap.tools import doctor_for, facts_of
from ..brokers import require_java
from ..domain.cluster.finding import Level, worst
from .console import quantity
from .process import ending_with_the_pipe, logs_redirected_to
from .spark_errors import SparkQueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..domain.cluster.finding import Finding, SparkFacts
    from .doctor_arguments import DoctorSettings


def run_doctor(settings: DoctorSettings) -> int:
    """Print findings as they are made, and return the exit status of the worst.

    :raises PysparkKafkaError: if the options are invalid.
    """
    show = _print_json if settings.as_json else _printer()
    spark = None if settings.master is None else partial(_facts, settings.master)
    options = settings.connection.source_options(subscribePattern=".*")
    found: list[Finding] = []
    with (
        logs_redirected_to(logging.NullHandler()),
        ending_with_the_pipe(),
        doctor_for(options, settings.resources, lambda: str(require_java()), spark) as doctor,
    ):
        for finding in doctor.examine():
            found.append(finding)
            show(finding)
        if not settings.as_json:
            print(_totals(found), flush=True)
    return worst(found).exit_status


def _facts(master: str) -> SparkFacts:
    """Return what a session on a master has.

    :raises SparkQueryError: if it runs no job.
    """
    from .spark_session import EXAMINED, require_pyspark, spark_session

    require_pyspark()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    config = {**EXAMINED, "spark.master": master}
    try:
        with tempfile.TemporaryDirectory(prefix="pyspark-kafka-doctor-") as name:
            directory = Path(name)
            with spark_session(directory, directory / "spark.log", config) as spark:
                return facts_of(spark)
    except (Py4JError, PySparkException) as error:
        raise SparkQueryError(
            f"The master '{master}' ran no job ({type(error).__name__}). Check its URL, that this "
            "machine can reach it, and that its workers have free cores."
        ) from error


def _print_json(finding: Finding) -> None:
    answer = {
        "check": finding.check,
        "level": finding.level.value,
        "summary": finding.summary,
        "advice": finding.advice,
    }
    print(json.dumps(answer), flush=True)


def _printer() -> Callable[[Finding], None]:
    from rich.console import Console

    from .doctor_view import finding_row

    console = Console(highlight=False)
    return lambda finding: console.print(finding_row(finding))


def _totals(found: Sequence[Finding]) -> str:
    counts = {level: sum(each.level is level for each in found) for level in Level}
    return (
        f"{quantity(counts[Level.ERROR], 'error')}, "
        f"{quantity(counts[Level.WARNING], 'warning')}, {counts[Level.OK]} ok"
    )
