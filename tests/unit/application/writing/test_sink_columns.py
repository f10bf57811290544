"""What the function of a continuous query may return."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.application.writing.sink_columns import FunctionOutput
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.writing.errors import SinkSchemaError
from pyspark_kafka.ports.reading import record_schema


def sink(**options: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": "h:1", "checkpointLocation": "/c", **options}
    return parse_sink_options(given, QueryKind.STREAM)


VALUES = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
EMPTY = VALUES.slice(0, 0)


def test_batches_come_alone_in_a_list_or_not_at_all() -> None:
    """Batches without rows are dropped."""
    output = FunctionOutput(sink(topic="t"))
    assert output.batches(VALUES) == [VALUES]
    assert output.batches([VALUES, EMPTY, VALUES]) == [VALUES, VALUES]
    assert not output.batches(None)


@pytest.mark.parametrize("returned", ["text", [VALUES, "text"], 5])
def test_anything_else_is_refused(returned: object) -> None:
    """The error says what it is."""
    with pytest.raises(TypeError, match="not a RecordBatch, a list of them, or None"):
        FunctionOutput(sink(topic="t")).batches(returned)


def test_rows_without_a_sink_are_refused() -> None:
    """They would be lost."""
    with pytest.raises(TypeError, match="the query has no sink to write them to"):
        FunctionOutput(None).batches(VALUES)


def test_all_problems_of_the_columns_are_reported() -> None:
    """The words are the JVM connector's."""
    batch = pa.RecordBatch.from_pydict({"key": [1], "partition": ["1"]})
    with pytest.raises(SinkSchemaError) as caught:
        FunctionOutput(sink()).batches(batch)
    assert [problem.rpartition(". ")[2] for problem in caught.value.problems] == [
        "Use the topic option for setting a topic.",
        "key must be a(n) string or binary",
        "Required attribute 'value' not found",
        "partition must be a(n) int",
    ]


def test_each_schema_is_checked() -> None:
    """A batch with other columns than the one before is looked at."""
    output = FunctionOutput(sink(topic="t"))
    output.batches(VALUES)
    with pytest.raises(SinkSchemaError, match="value must be"):
        output.batches(pa.RecordBatch.from_pydict({"value": [1]}))


def test_records_can_be_returned_as_they_came() -> None:
    """Columns of the source that a sink does not have are dropped, and the overridden topic."""
    row = {name: [None] for name in record_schema(ALL_COLUMNS).names}
    records = pa.RecordBatch.from_pydict(row, schema=record_schema(ALL_COLUMNS))
    kept = ["key", "value", "headers", "partition", "timestamp"]
    [batch] = FunctionOutput(sink(topic="t")).batches(records)
    assert batch.schema.names == kept
    [batch] = FunctionOutput(sink()).batches(records)
    assert batch.schema.names == ["topic", *kept]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_texts_may_be_large(kind: pa.DataType) -> None:
    """Arrow's large types are texts and bytes, too."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(["a"]).cast(kind)})
    assert FunctionOutput(sink(topic="t")).batches(batch) == [batch]


def test_headers_may_be_arrows_default_list() -> None:
    """The name of a list's field is no part of its type."""
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "k", "value": b"v"}]], kind)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"a"]), "headers": headers})
    assert FunctionOutput(sink(topic="t")).batches(batch) == [batch]
