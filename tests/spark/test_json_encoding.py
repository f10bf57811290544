"""Encoding rows as JSON, beside Spark's ``to_json``."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import pytest
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.value_options import ValueOptions

LONGS = [0, 1, -1, 9, 10, 99_999_999, 100_000_000, 10**16, 10**16 - 1, -(10**18), 2**63 - 1]
DAYS = [0, -1, 18_262, 11_016, -719_529, -719_528, 2_932_896, 2_932_897, -2_000_000, 11_017]
MICROS = [0, 1, 999, 1_000, -1, 1_593_606_896_789_123, 951_782_400_000_000, 2**55]
MICROS += [-62_135_596_800_000_000, -3_786_825_600_000_000, 1_585_443_599_999_999, -(2**55)]
# Summers after 2037, for which files of time zones have rules, not transitions.
MICROS += [2_540_000_000_000_000, 60_000_000_000_000_000, 13_000_000_000_000_000]
MICROS += [1_585_443_600_000_000, 1_603_587_600_000_000, 4_102_444_800_000_000]
DOUBLES = [0.0, -0.0, 1.0, 1.5, 0.001, 0.00099, 9_999_999.0, 1e7, 12_345_678.9, 1e22, 4.9e-324]
DOUBLES += [1.7976931348623157e308, 2.2250738585072014e-308, 0.1, 1 / 3, 100.0, 123456.0, 1e-5]
DOUBLES += [float("nan"), float("inf"), float("-inf"), 2.0**53, -1.25e-7, 3.14159]
# Each is a value whose shortest text Java 17 finds; later releases find it for every number.
FLOATS = [0.0, -0.0, 1.5, 16_777_216.0, 1e10, 0.1, 1e-3, 3.4028235e38]
FLOATS += [float("nan"), float("inf"), -123.456]
TEXTS = [b"", b"plain", b"a longer text without anything special", b'"', b"\\", b"/", b"</script>"]
TEXTS += [bytes([code]) for code in range(32)]
TEXTS += [b"\x7f", "é".encode(), "€uro and more".encode(), "😀".encode(), "\u2028\u2029".encode()]
TEXTS += [b"exactly8", b"exactly8\n", b'1234567"', b'12345678"', "12345678é".encode() * 3]
TEXTS += [b"a\xffb", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0x"]
TEXTS += [
    b"\xf4\x90\x80\x80",
    b"\xe0\x80\x80",
    b"\xf5",
    b"\x80\x80",
    b"\xf0\x9f\x98x",
    b"\xe2\x82x",
]
BINARIES = [b"", b"\x00", b"ab", b"abc", b"\xff\xfe\xfd\xfc", bytes(range(256)), b"abcde"]
DECIMALS = ["0", "1", "-1", "1.5", "0.000001", "0.0000001", "-123456789012345678.123456789"]
DECIMALS += ["12345678901234567890.1", "-0.000000000000000001", "99999999999999999999"]

Corpus: TypeAlias = tuple[str, str, Sequence[object], types.DataType]

COLUMNS: dict[str, Corpus] = {
    "bool": ("boolean", "{}", [True, False], types.BOOLEAN),
    "byte": ("int", "cast({} as tinyint)", [0, 127, -128], types.BYTE),
    "short": ("int", "cast({} as smallint)", [0, 32767, -32768], types.SHORT),
    "int": ("int", "{}", [0, 2**31 - 1, -(2**31), 12_345_678], types.INTEGER),
    "long": ("bigint", "{}", [*LONGS, -(2**63)], types.LONG),
    "double": ("double", "{}", DOUBLES, types.DOUBLE),
    "float": ("float", "{}", FLOATS, types.FLOAT),
    "date": ("int", "date_from_unix_date({})", DAYS, types.DATE),
    "time": ("bigint", "timestamp_micros({})", MICROS, types.TIMESTAMP),
    "ntz": ("bigint", "cast(timestamp_micros({}) as timestamp_ntz)", MICROS, types.TIMESTAMP_NTZ),
    "text": ("binary", "cast({} as string)", TEXTS, types.STRING),
    "binary": ("binary", "{}", BINARIES, types.BINARY),
    "dec38": ("string", "cast({} as decimal(38,18))", DECIMALS, types.DecimalType(38, 18)),
    "dec9": (
        "string",
        "cast({} as decimal(9,7))",
        ["0", "1.5", "-0.0000001"],
        types.DecimalType(9, 7),
    ),
    "dec5": ("string", "cast({} as decimal(5,0))", ["0", "-99999"], types.DecimalType(5, 0)),
    "list": ("bigint", "array({}, null, 2)", LONGS, types.ArrayType(types.LONG)),
    "empty": ("int", "cast(array() as array<int>)", [1], types.ArrayType(types.INTEGER)),
    "by_text": (
        "binary",
        "map(cast({} as string), 1, 'other', null)",
        TEXTS,
        types.MapType(types.STRING, types.INTEGER),
    ),
    "by_date": (
        "int",
        "map(date_from_unix_date({}), timestamp_seconds({}))",
        DAYS,
        types.MapType(types.DATE, types.TIMESTAMP),
    ),
    "by_double": ("double", "map({}, true)", DOUBLES, types.MapType(types.DOUBLE, types.BOOLEAN)),
    "by_decimal": (
        "string",
        "map(cast({} as decimal(38,18)), '')",
        DECIMALS,
        types.MapType(types.DecimalType(38, 18), types.STRING),
    ),
    "by_time": (
        "bigint",
        "map(timestamp_micros({}), 1.5D)",
        MICROS,
        types.MapType(types.TIMESTAMP, types.DOUBLE),
    ),
    "nested": (
        "int",
        (
            "named_struct('a \"b\"\\n', named_struct('x', {}, 'y', cast(null as int)), 'é', "
            "array(map('k', array(named_struct('z', {}))), map()))"
        ),
        [1, 2, None],
        types.StructType(
            (
                types.StructField(
                    'a "b"\n',
                    types.StructType(
                        (
                            types.StructField("x", types.INTEGER),
                            types.StructField("y", types.INTEGER),
                        )
                    ),
                ),
                types.StructField(
                    "é",
                    types.ArrayType(
                        types.MapType(
                            types.STRING,
                            types.ArrayType(
                                types.StructType((types.StructField("z", types.INTEGER),))
                            ),
                        )
                    ),
                ),
            )
        ),
    ),
}
"""Columns by name: the type in which Spark gets the values, an expression, values, our type."""

TYPE = types.StructType(tuple(types.StructField(name, one[3]) for name, one in COLUMNS.items()))

OPTIONS: list[dict[str, str]] = [
    {"timeZone": "Europe/Berlin"},
    {"ignoreNullFields": "false", "timeZone": "America/New_York"},
    {
        "timestampFormat": "dd/MM/yyyy 'at' HH:mm:ss.SSSSSS XXX",
        "timestampNTZFormat": "yyyy M d H m s''S",
        "dateFormat": "MM.dd.yyyy",
        "timeZone": "+05:30",
        "writeNonAsciiCharacterAsCodePoint": "true",
    },
    # Its offset had seconds until 1972.
    {"timeZone": "Africa/Monrovia"},
    {"timeZone": "Africa/Monrovia", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]"},
    {"timeZone": "Africa/Monrovia", "timestampFormat": "HH xxx XXXXX xxxxx"},
    {"timeZone": "PST"},
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=["default", "nulls", "formats", "seconds", "XXX", "XXXXX", "PST"]
)
def test_rows_equal_those_of_to_json(spark, options):
    pairs = ", ".join(
        "'{}', '{}'".format(name, value.replace("'", "\\'")) for name, value in options.items()
    )
    text = f"cast(to_json(value, map({pairs})) as binary)"
    rows, texts = encoded_by_spark(spark, COLUMNS, TYPE, expr(text))
    settings = tuple((name.lower(), value) for name, value in options.items())
    encoder = JsonEncoder(ValueOptions("value", "json", settings=settings), TYPE)
    assert encoder.encode(rows).to_pylist() == texts


def encoded_by_spark(
    spark: SparkSession,
    columns: Mapping[str, Corpus],
    data_type: types.StructType,
    encoded: SparkColumn,
) -> tuple[Any, list[bytes]]:
    ddl = ", ".join(f"{name} {one[0]}" for name, one in columns.items())
    values = list(zip_longest(*(one[2] for one in columns.values())))
    table = spark.createDataFrame(values, ddl)
    fields = ", ".join(
        f"'{name}', if({name} is null, null, {one[1].replace('{}', name)})"
        for name, one in columns.items()
    )
    # The cast makes all fields nullable, as they are in our types.
    rows = table.selectExpr(f"cast(named_struct({fields}) as {data_type}) value")
    both = rows.select("value", encoded.alias("encoded")).toArrow()
    batch = both.combine_chunks().to_batches()[0]
    found: Any = batch["encoded"].to_pylist()
    return batch["value"], found
