"""What went wrong, out of all that Spark says when something does."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..domain.errors import Fault, PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS: Final = re.compile(
    r"^\S*pyspark_kafka\.\S+: \[[A-Z_.]+\] (?P<message>.+?)"
    r"(?=\n\s*\n|\n\s*SQLSTATE|\s+SQLSTATE:|\n\s+at |\n=== |\Z)",
    re.DOTALL | re.MULTILINE,
)
"""An error of this library as Python prints it, up to what Spark puts behind it."""


class SparkQueryError(PysparkKafkaError):
    """Spark could not start, or a query of it failed."""

    condition = "SPARK_QUERY_FAILED"
    fault = Fault.ENVIRONMENT


def plain_message(text: str) -> str:
    """Give this library's own message in a text of Spark's, or else the text's first line."""
    ours = _OURS.search(text)
    if ours is not None:
        return ours["message"].strip()
    first = text.strip().partition("\n")[0]
    return f"Spark failed: {first} (--spark-log FILE keeps all that it says)"


@contextmanager
def plain_spark_errors() -> Iterator[None]:
    """Turn what Spark raises into a ``SparkQueryError`` of few words."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkQueryError(plain_message(str(error))) from error
