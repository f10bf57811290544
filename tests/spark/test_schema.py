"""The schema, in Spark's terms and in Arrow's."""

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_kafka.adapters.spark.schema import TYPES, projection_of, spark_schema
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, COLUMNS, WITHOUT_HEADERS, Projection
from pyspark_kafka.ports.record_schema import record_schema


@pytest.mark.parametrize("projection", [ALL_COLUMNS, WITHOUT_HEADERS, Projection(("offset",))])
def test_batches_have_the_schema_that_spark_expects(projection):
    """Spark compares a batch's schema with its own to the letter, field names of lists included."""
    expected = to_arrow_schema(spark_schema(projection), timezone="UTC")
    assert record_schema(projection).equals(expected)


def test_a_schema_is_read_back_as_its_projection():
    assert projection_of(spark_schema(ALL_COLUMNS)) == ALL_COLUMNS
    assert tuple(TYPES) == COLUMNS
