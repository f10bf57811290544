"""Features that the running Spark offers to Python data sources, each detected once.

Version numbers do not identify features: vendors number their own builds, such as ``4.0.2-amzn-0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Final, final

import pyspark
from pyspark.sql import datasource
from pyspark.util import local_connect_and_auth

from ...domain.errors import UnsupportedFeatureError
from ...domain.options.source_table import (
    ALLOW_LIMITS_WITHOUT_TRIGGER,
    MAX_BYTES_PER_TRIGGER,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
)
from ...domain.reading.admission import ReadAllAvailable

if TYPE_CHECKING:
    from ...domain.options.source import SourceOptions

HAS_READ_LIMITS: Final = hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
"""Whether ``latestOffset`` gets a start and a limit, and the trigger is known by them."""

HAS_UNIX_SOCKETS: Final = "conn_info" in signature(local_connect_and_auth).parameters
"""Whether Python workers can connect to their JVM by Unix domain sockets."""

if hasattr(datasource, "DataSourceStreamArrowWriter"):
    from pyspark.sql.datasource import (
        DataSourceStreamArrowWriter as DataSourceStreamArrowWriter,  # noqa: PLC0414
    )
else:

    class DataSourceStreamArrowWriter(  # type: ignore[no-redef, misc]
        datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter
    ):
        """Gets Arrow batches from Spark 4.0, which looks for ``DataSourceArrowWriter`` alone."""


@final
@dataclass(frozen=True, slots=True)
class SparkFeature:
    """A feature that older releases of Spark lack: for refusals, and for the page of versions.

    ``since`` is the first release with it. An error states that Spark cannot ``action``, and what
    to do ``instead``. ``before`` is the behavior of older releases.
    """

    name: str
    since: str
    before: str
    action: str = ""
    instead: str = ""

    def refusal(self) -> UnsupportedFeatureError:
        """Return the error for a query that needs this feature."""
        return UnsupportedFeatureError(
            f"Spark {pyspark.__version__}",
            f"{self.action}; Spark {self.since} or newer can. {self.instead}",
        )


_LIMITS: Final = (MAX_OFFSETS_PER_TRIGGER, MIN_OFFSETS_PER_TRIGGER, MAX_BYTES_PER_TRIGGER)

READ_LIMITS: Final = SparkFeature(
    ", ".join(f"`{option.name}`" for option in _LIMITS),
    "4.2",
    "Refused, because Spark does not tell the trigger: with `availableNow` and `once`, a query "
    f"would end after one limited batch. With `{ALLOW_LIMITS_WITHOUT_TRIGGER.name}` it does, and "
    "queries with other triggers are limited as usual.",
    "tell a Python source the trigger of its query: with a limit, availableNow and once would end "
    "the query after one batch, although there are more records",
    f"Remove {', '.join(repr(option.name) for option in _LIMITS)}, or set "
    f"'{ALLOW_LIMITS_WITHOUT_TRIGGER.name}' to 'true' if this is what you want, or if the query "
    "has another trigger",
)
LATEST_OFFSET: Final = SparkFeature(
    "`latestOffset` in the progress of a query",
    "4.2",
    "It is the end of the batch. `LagListener` therefore needs `source_options`: without them it "
    "exports no lag of streams of this source, and logs a warning.",
    "report the latest offsets of a Python source, so that the lag of streams is unknown",
    "Set 'source_options' to measure it in Kafka",
)
REGISTRATION: Final = SparkFeature(
    "`register()` of an installed package with lists of allowed or disallowed options in Spark's "
    "settings",
    "4.1",
    "Refused, because these lists would have no effect. Without such lists, `register()` keeps the "
    "source that Spark has found.",
    "register a source again that it has found by its name, so that lists of allowed or disallowed "
    "options in its settings would have no effect",
    "Set the environment variables 'PYSPARK_KAFKA_*' of Spark instead of these settings, or do "
    "without 'register'",
)
FEATURES: Final = (
    READ_LIMITS,
    SparkFeature(
        "`availableNow` after a failure",
        "4.2",
        "If the last run failed in a batch, the next run repeats this batch and ends, with a "
        "warning in the log of the JVM. Run it again to read the records after it.",
    ),
    LATEST_OFFSET,
    REGISTRATION,
    SparkFeature(
        "Unix domain sockets between Spark and Python",
        "4.1",
        "`session()` does not set them; Spark uses TCP.",
    ),
    SparkFeature("Declarative Pipelines", "4.1", "Spark does not have them."),
)
"""Everything that differs between the supported releases of Spark."""


def check_limits(options: SourceOptions) -> None:
    """Check that the running Spark supports the limits of a stream.

    :raises UnsupportedFeatureError: if it does not, and the options do not allow them anyway.
    """
    is_limited = options.read_limit != ReadAllAvailable()
    if is_limited and not HAS_READ_LIMITS and not options.allow_limits_without_trigger:
        raise READ_LIMITS.refusal()
