"""The types of Arrow columns."""

import pyarrow as pa
import pytest

from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import StructField, StructType
from pyspark_kafka.ports.values.value_types import ATOMIC, arrow_type, data_type_of

EVERY = StructType(
    (
        *(StructField(str(atomic), atomic) for atomic in ATOMIC),
        StructField("d", types.DecimalType(20, 3)),
        StructField("a", types.ArrayType(types.ArrayType(types.LONG))),
        StructField("m", types.MapType(types.STRING, types.DecimalType(38, 0))),
        StructField("s", StructType((StructField("x", types.DATE),))),
    )
)


def test_every_type_is_found_again():
    assert data_type_of(arrow_type(EVERY)) == EVERY


@pytest.mark.parametrize(
    ("layout", "found"),
    [
        (pa.large_string(), types.STRING),
        (pa.string_view(), types.STRING),
        (pa.large_binary(), types.BINARY),
        (pa.binary_view(), types.BINARY),
        (pa.dictionary(pa.int8(), pa.string()), types.STRING),
        (pa.timestamp("ns", "Europe/Berlin"), types.TIMESTAMP),
        (pa.timestamp("s"), types.TIMESTAMP_NTZ),
        (pa.date64(), types.DATE),
        (pa.large_list(pa.int32()), types.ArrayType(types.INTEGER)),
        (pa.list_(pa.int32(), 3), types.ArrayType(types.INTEGER)),
    ],
    ids=str,
)
def test_layouts_are_of_the_same_type(layout, found):
    struct = pa.struct([pa.field("x", layout)])
    assert data_type_of(struct) == StructType((StructField("x", found),))


@pytest.mark.parametrize(
    ("arrow", "reason"),
    [
        (pa.int64(), "it is of type int64, not a struct"),
        (pa.struct([("x", pa.null())]), "'x' is of type null, which values do not have"),
        (pa.struct([("x", pa.list_(pa.uint8()))]), "'x.element' is of type uint8, which"),
    ],
    ids=str,
)
def test_other_types_are_refused(arrow, reason):
    with pytest.raises(ValueError, match=reason):
        data_type_of(arrow)
