"""Checks of a cluster, and of what a query needs to use it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..adapters.system.diagnostics import NetworkProbe, environment
from ..application.cluster.doctor import Doctor, Resources, Surroundings
from ..domain.cluster.finding import SECRET_OPTIONS, SparkFacts
from ..domain.errors import OptionsError
from ..domain.options.client_settings import api_timeout_ms, read_java_settings, server_problems
from .container import closing_clients, container_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from ..domain.options.source import SourceOptions

_MAX_CONNECT_S: Final = 5.0


@contextmanager
def doctor_for(
    options: SourceOptions,
    resources: Resources,
    java: Callable[[], str],
    spark: Callable[[], SparkFacts] | None = None,
) -> Iterator[Doctor]:
    """Yield what checks a cluster, and close its clients afterwards.

    ``java`` returns the path of a Java for Spark, or raises. ``spark`` starts a session, and
    returns what it has.

    :raises OptionsError: if the value of the option ``client`` is unknown, or if a bootstrap server
        is not ``host:port``.
    """
    if problems := server_problems(options.bootstrap_servers):
        raise OptionsError(problems)
    settings = dict(options.kafka)
    timeout_s = min(api_timeout_ms(settings) / 1_000, _MAX_CONNECT_S)
    with closing_clients(container_for(options)) as container:
        surroundings = Surroundings(
            environment(),
            NetworkProbe(read_java_settings(settings), timeout_s),
            container.clock(),
            java,
            spark,
        )
        yield Doctor(options, resources, surroundings, container.cluster_describer)


def facts_of(spark: SparkSession) -> SparkFacts:
    """Return the environments of a session's executors, and which secrets it shows."""
    from ..adapters.spark.jobs import executor_environments
    from ..adapters.spark.session import shown_options

    return SparkFacts(executor_environments(spark), shown_options(spark, SECRET_OPTIONS))
