"""Errors of Spark without the stack traces and repetitions around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from ..domain.errors import Fault, PysparkKafkaError
from ..domain.text import find_error


class SparkQueryError(PysparkKafkaError):
    """Spark could not start, or a query of it failed."""

    condition = "SPARK_QUERY_FAILED"
    fault = Fault.ENVIRONMENT

    @classmethod
    def from_spark(cls, text: str) -> Self:
        """Return the error of this library that Spark's text quotes, or else its first line."""
        ours = find_error(text)
        if ours is None:
            first = text.strip().partition("\n")[0]
            return cls(f"Spark failed: {first} (--spark-log FILE keeps all that Spark logs)")
        error = cls(ours.text)
        error.args = (error.message,)
        error.fault = _fault_of(ours.kind)  # type: ignore[misc]
        return error


def _fault_of(name: str) -> Fault:
    kinds = [PysparkKafkaError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    return next((kind.fault for kind in kinds if kind.__name__ == name), SparkQueryError.fault)


@contextmanager
def readable_spark_errors() -> Iterator[None]:
    """Raise what Spark raises as a short ``SparkQueryError``."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkQueryError.from_spark(str(error)) from error
