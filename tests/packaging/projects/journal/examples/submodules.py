"""The public submodules after an import of the package alone. It is never run."""

from typing import assert_type

import pyspark_kafka


def submodules() -> None:
    """Name something of each."""
    assert_type(pyspark_kafka.continuous.RestartLimits(), pyspark_kafka.continuous.RestartLimits)
    assert_type(pyspark_kafka.brokers.EmbeddedBroker(), pyspark_kafka.brokers.EmbeddedBroker)
    assert_type(pyspark_kafka.testing.unique_name(), str)
    assert_type(pyspark_kafka.domain.errors.Fault("x"), pyspark_kafka.domain.errors.Fault)
    pyspark_kafka.continous.start()  # type: ignore[attr-defined]
