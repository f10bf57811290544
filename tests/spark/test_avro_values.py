from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT
from tests.unit.adapters.values.avro.corpus import CASES, Case
from tests.unit.adapters.values.avro.decoding import options_of, payloads_of, plain, reasons_of

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

CASES_A_JOB: Final = 50


@pytest.fixture(scope="module")
def permissive(spark):
    found: dict[str, pa.Array[Any]] = {}
    for start in range(0, len(CASES), CASES_A_JOB):
        found |= _read(spark, CASES[start : start + CASES_A_JOB])
    return found


def _read(spark: SparkSession, cases: tuple[Case, ...]) -> dict[str, pa.Array[Any]]:
    rows = list(zip_longest(*(case.payloads() for case in cases)))
    names = [case.name for case in cases]
    columns = [pa.array(column, pa.binary()) for column in zip(*rows, strict=True)]
    frame = spark.createDataFrame(pa.table(columns, names))
    table = frame.select([_column(case) for case in cases]).toArrow()
    return {case.name: table.column(case.name).combine_chunks() for case in cases}


def _column(case: Case) -> Column:
    from pyspark.sql.avro.functions import from_avro

    settings = {**case.settings, "mode": "PERMISSIVE"}
    return from_avro(f"`{case.name}`", case.text, settings).alias(case.name)


@pytest.fixture(scope="module")
def failures(spark):
    jvm: Any = spark._jvm
    types = jvm.org.apache.spark.sql.types.DataTypes
    none = jvm.org.apache.spark.sql.catalyst.expressions.Literal.create(None, types.BinaryType)

    def fails(expression: Any, payload: bytes) -> bool:
        try:
            expression.nullSafeEval(bytearray(payload))
        except Py4JJavaError as error:
            assert "Malformed records are detected" in str(error)  # noqa: PT017
            return True
        return False

    found = {}
    for case in CASES:
        options = jvm.java.util.HashMap()
        for name, value in {**case.settings, "mode": "FAILFAST"}.items():
            options[name] = value
        settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(options)
        expression = jvm.org.apache.spark.sql.avro.AvroDataToCatalyst(none, case.text, settings)
        found[case.name] = [fails(expression, payload) for payload in case.payloads()]
    return found


def test_the_corpus_is_large():
    assert sum(len(case.values) for case in CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


def test_values_equal_those_of_from_avro(permissive, failures):
    """Each value is read as ``from_avro`` reads it, or fails where it fails in FAILFAST.

    Decision 29 says which values differ, and why.
    """
    unequal = []
    for case in CASES:
        options = options_of(case.text, case.settings)
        struct = VALUE_FORMAT.data_type(options, None)
        decoded = VALUE_FORMAT.decoder(options, None, struct).decode(payloads_of(case.payloads()))
        decoded.column.validate(full=True)
        reasons, theirs = reasons_of(decoded), permissive[case.name]
        for number, fails in enumerate(failures[case.name]):
            expected = None if fails else plain(theirs[number])
            found = plain(decoded.column[number])
            if not pa.types.is_struct(theirs.type) and found is not None:
                found = found["value"]
            is_same = fails == (reasons[number] != "NONE") and found == expected
            if is_same == (number in case.differs):
                unequal.append((case.name, number, expected, found, reasons[number]))
    assert unequal == []
