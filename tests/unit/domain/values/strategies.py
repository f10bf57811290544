from typing import Final

from hypothesis import strategies as st

from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

ATOMIC: Final = (
    types.BOOLEAN,
    types.BYTE,
    types.SHORT,
    types.INTEGER,
    types.LONG,
    types.FLOAT,
    types.DOUBLE,
    types.STRING,
    types.BINARY,
    types.DATE,
    types.TIMESTAMP,
    types.TIMESTAMP_NTZ,
    types.DAY_TIME_INTERVAL,
)

decimals: Final = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
_leaves: Final[st.SearchStrategy[DataType]] = st.one_of(st.sampled_from(ATOMIC), decimals)
field_names: Final = st.one_of(
    st.sampled_from(["a", "b", "struct", "select", "not", "_", "ä", "a b", "a`b", "1", "x.y"]),
    st.text(min_size=1, max_size=8),
)


def structs(members: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(StructField, field_names, members)
    unique = st.lists(fields, min_size=1, max_size=4, unique_by=lambda field: field.name)
    return unique.map(lambda fields: StructType(tuple(fields)))


def _nested(members: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.one_of(
        structs(members), st.builds(ArrayType, members), st.builds(MapType, _leaves, members)
    )


data_types: Final[st.SearchStrategy[DataType]] = st.recursive(_leaves, _nested, max_leaves=8)
struct_types: Final = structs(data_types)
