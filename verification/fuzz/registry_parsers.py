"""The parsers of what schema registries answer, and of framed values, held against any bytes."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.adapters.values.registry import http_registry, rest_client
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from tests.unit.adapters.values.framing.plain_framing import plain_payload

from .guarded import guarded_array
from .parsers import Parser

_VERSION: Final = {
    "subject": "s",
    "version": 1,
    "id": 7,
    "schemaType": "PROTOBUF",
    "schema": "message M {}",
    "references": [{"name": "a.proto", "subject": "a", "version": 3}],
}
_ERROR: Final = {"error_code": 40403, "message": "Schema not found"}
_KNOWN: Final = {1, 2, 3}
_REGISTRY: Final = MemorySchemaRegistry()
for _id in _KNOWN:
    _REGISTRY.register("s", Schema(SchemaType.AVRO, str(_id)))


def _answered(parse: Callable[[Mapping[str, Any]], object], content: bytes) -> None:
    hash(parse(rest_client.json_object(content)))


def _refused(content: bytes) -> None:
    code, message = rest_client.error_of(content)
    assert isinstance(code, int)
    assert isinstance(message, str)


def _framed(form: str, content: bytes) -> None:
    """Find the payloads of a value and of its halves, in memory that ends where they end."""
    half = len(content) // 2
    values = [content, content[:half], content[half:], content]
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    array = guarded_array(values)
    options = ValueOptions("value", form, framing=Framing.CONFLUENT)
    found = ValueFraming(options, _REGISTRY).payloads(array)
    for row, value in enumerate(values):
        payload, reason, _ = plain_payload(value, None, Framing.CONFLUENT, form, _KNOWN)
        assert payload is not None
        assert found.ends[row] == offsets[row + 1]
        assert found.ends[row] - found.starts[row] == len(payload)
        assert FailureReason(found.reasons[row]) is reason


_VALID: Final = [json.dumps(each).encode() for each in (_VERSION, _ERROR)]
_FRAMED: Final = [id_prefix(1) + b"payload", id_prefix(2, (0,)) + b"x", id_prefix(3, (1, 300, 2))]
_PARSED: Final = {
    "registry-schema": http_registry.parse_schema,
    "registry-version": http_registry.parse_version,
    "registry-id": http_registry.parse_id,
}

PARSERS: Final = (
    *(
        Parser(name, partial(_answered, parse), (rest_client.NonsenseError,), _VALID)
        for name, parse in _PARSED.items()
    ),
    Parser("registry-error", _refused, (), _VALID),
    *(
        Parser(f"framing-{each}", partial(_framed, each), (), _FRAMED)
        for each in ("avro", "protobuf")
    ),
)
