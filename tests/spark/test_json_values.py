"""JSON values decode to what Spark's ``from_json`` returns."""

from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from pyspark_kafka.adapters.values.json.value_format import VALUE_FORMAT
from pyspark_kafka.domain.values.value_options import ValueOptions
from tests.unit.adapters.values.json.payloads import payloads_of, plain

from .json_corpus import CASES, CORRUPT, DECIDED, Cases

Row = dict[str, Any] | None
ROOT_OPTION: Final = "columnNameOfCorruptRecord"


@pytest.fixture(scope="module")
def spark_rows(spark):
    """Return whether each value is bad to Spark, and its row, in one job."""
    values = [
        (number, bytearray(value)) for number, cases in enumerate(CASES) for value in cases.values
    ]
    frame = spark.createDataFrame(values, "number int, value binary").coalesce(1)
    columns = [_from_json(number, cases) for number, cases in enumerate(CASES)]
    table = frame.select("number", *columns).toArrow()
    numbers = table["number"].to_pylist()
    found = []
    for number in range(len(CASES)):
        first, count = numbers.index(number), numbers.count(number)
        column = pa.concat_arrays(table[f"c{number}"].slice(first, count).chunks)
        found.append([_verdict(row) for row in plain(column)])
    return found


def _from_json(number: int, cases: Cases) -> Column:
    parsed = F.from_json(
        F.col("value").cast("string"),
        f"{cases.schema}, {CORRUPT} string",
        {**cases.options, ROOT_OPTION: CORRUPT},
    )
    return F.when(F.col("number") == number, parsed).alias(f"c{number}")


def _verdict(row: Row) -> tuple[bool, Row]:
    return (False, None) if row is None else (row.pop(CORRUPT) is not None, row)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_values_are_what_from_json_returns(number, spark_rows):
    """Rows are equal, and the same ones are bad; what differs is decided."""
    cases = CASES[number]
    options = ValueOptions(
        "value", "json", schema=cases.schema, settings=tuple(cases.options.items())
    )
    decoder = VALUE_FORMAT.decoder(options, None, VALUE_FORMAT.data_type(options, None))
    decoded = decoder.decode(payloads_of(cases.values))
    rows = [
        (reason != 0, row)
        for reason, row in zip(decoded.reasons.tolist(), plain(decoded.column), strict=True)
    ]
    for value, row, expected in zip(cases.values, rows, spark_rows[number], strict=True):
        decided = DECIDED.get((cases.schema, value))
        if decided is None:
            assert (value, row) == (value, expected)
        else:
            assert row[0], value
            assert {
                name: each for name, each in (row[1] or {}).items() if each is not None
            } == decided
            assert row != expected, value


def test_every_decision_is_tried():
    tried = [(cases.schema, value) for cases in CASES for value in cases.values]
    assert set(tried) >= DECIDED.keys()
    assert len(tried) > 400
