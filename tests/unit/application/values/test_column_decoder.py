"""Which schemas are newer than the one that a query reads with."""

from unittest.mock import Mock

import numpy as np
import pyarrow as pa

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.application.values import column_decoder
from pyspark_kafka.application.values.column_decoder import NewSchemas
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_format import Payloads, WriterSchema
from pyspark_kafka.testing import await_until

OLD, NEW = (Schema(SchemaType.AVRO, f'"{kind}"') for kind in ("long", "string"))


def payloads(schema_id: int) -> Payloads:
    """Return one value of the newer schema."""
    zero = np.zeros(1, np.int64)
    writers = np.zeros(1, np.int32)
    return Payloads(
        pa.array([b""]),
        zero,
        zero,
        zero.astype(np.uint8),
        writers,
        (WriterSchema(schema_id, NEW, ()),),
    )


def test_a_schema_that_one_server_does_not_have_yet_is_asked_for_again(monkeypatch):
    """A follower of the registry may lag, and the check of new schemas stays on."""
    monkeypatch.setattr(column_decoder, "UNKNOWN_S", 0.01)
    registry = MemorySchemaRegistry()
    registry.register("s", OLD)
    new_schemas = NewSchemas(registry, registry.look_up("s", OLD))
    assert new_schemas.first_of(payloads(8)) is None
    registry.register("s", NEW)
    await_until(lambda: new_schemas.first_of(payloads(8)) is not None)
    found = new_schemas.first_of(payloads(8))
    assert found is not None
    assert (found[0], found[1].version) == (0, 2)


def test_a_schema_of_another_subject_is_asked_for_after_a_pause(monkeypatch):
    registry = MemorySchemaRegistry()
    registry.register("s", OLD)
    new_schemas = NewSchemas(registry, registry.look_up("s", OLD))
    look_up = Mock(wraps=registry.look_up)
    monkeypatch.setattr(registry, "look_up", look_up)
    for _ in range(3):
        assert new_schemas.first_of(payloads(8)) is None
    assert look_up.call_count == 1
