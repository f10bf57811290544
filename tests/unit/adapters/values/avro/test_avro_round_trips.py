import io
import json
from typing import Any

import fastavro
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .decoding import decoder_of, payloads_of, plain, reasons_of
from .strategies import evolved, expected, records, values_of

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def written(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


@settings(max_examples=80, deadline=None, suppress_health_check=_SLOW)
@given(st.data())
def test_values_that_fastavro_writes_are_read(data):
    schema = data.draw(records())
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=5))
    decoded = decoder_of(schema).decode(payloads_of([written(schema, one) for one in values]))
    decoded.column.validate(full=True)
    assert set(reasons_of(decoded)) == {"NONE"}
    assert [plain(one) for one in decoded.column] == [expected(one, schema) for one in values]


@settings(max_examples=120, deadline=None, suppress_health_check=_SLOW)
@given(st.data())
def test_values_are_read_with_another_schema_as_fastavro_reads_them(data):
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    values = data.draw(st.lists(values_of(writer), min_size=1, max_size=3))
    payloads = [written(writer, one) for one in values]
    read = [fastavro.schemaless_reader(io.BytesIO(payload), writer, reader) for payload in payloads]
    decoder = decoder_of(writer, settings={"avroSchema": json.dumps(reader)})
    decoded = decoder.decode(payloads_of(payloads))
    decoded.column.validate(full=True)
    assert set(reasons_of(decoded)) == {"NONE"}
    assert [plain(one) for one in decoded.column] == [expected(one, reader) for one in read]
