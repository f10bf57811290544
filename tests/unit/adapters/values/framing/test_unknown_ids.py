"""Values that only look as if they had the id of a schema."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.framing.value_framing import MAX_LOOK_UPS, ValueFraming
from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.application.values.schema_cache import SchemaCache
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.domain.values.registry import RegistryOptions, registry_settings
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from tests.servers.http_server import Request, Response, serving

ROWS = 100

UNKNOWN = b'{"error_code": 40403, "name": "ContentNotFoundException"}'
KNOWN = b'{"schema": "\\"int\\""}'

LOOKS: dict[Framing, Callable[[int], bytes]] = {
    Framing.CONFLUENT: lambda number: b"\0" + number.to_bytes(4) + b"x",
    Framing.CONFLUENT_HEADER: lambda number: b"\1" + number.to_bytes(16) + b"x",
    Framing.APICURIO: lambda number: b"\0" + number.to_bytes(8) + b"x",
    Framing.APICURIO_GLOBAL: lambda number: b"\0" + number.to_bytes(8) + b"x",
}


class Registry:
    """A registry without schemas but ``known`` ones; it answers ``at_once`` requests together."""

    def __init__(self, known: Sequence[str] = (), at_once: int = 1) -> None:
        self.requests: Counter[str] = Counter()
        self._known = frozenset(known)
        self._barrier = threading.Barrier(at_once) if at_once > 1 else None

    def respond(self, request: Request) -> Response:
        self.requests[request.path] += 1
        number = request.path.rpartition("/")[2]
        if number in self._known:
            return Response(KNOWN)
        if self._barrier is not None and sum(self.requests.values()) > 1:
            self._barrier.wait(20)
        return Response(UNKNOWN, 404)


@pytest.fixture
def registry(request) -> Iterator[tuple[Registry, SchemaCache]]:
    found = Registry(*getattr(request, "param", ()))
    with serving(found.respond, keeps_alive=True) as url:
        settings = registry_settings(RegistryOptions(f"{url}/apis/ccompat/v7"))
        cache = SchemaCache(HttpSchemaRegistry(settings), unknown_s=600, patience_s=0)
        yield found, cache
        cache.close()


def reasons(framing: ValueFraming, values: Sequence[bytes]) -> Any:
    headers = pa.array([[] for _ in values], HEADERS)
    return framing.payloads(pa.array(values, pa.binary()), headers).reasons


def framing_of(framing: Framing, cache: SchemaCache) -> ValueFraming:
    return ValueFraming(ValueOptions("value", "avro", framing=framing), cache)


@pytest.mark.parametrize("framing", LOOKS)
def test_an_unknown_id_is_requested_once(framing, registry):
    """With any id: of Confluent's registry, GUIDs, and Apicurio's content and global ids."""
    server, cache = registry
    values = [LOOKS[framing](1_000_000 + row) for row in range(ROWS)]
    column = framing_of(framing, cache)
    for _ in range(3):
        assert set(reasons(column, values)) == {FailureReason.UNKNOWN_SCHEMA}
    assert set(server.requests.values()) == {1}
    assert len(server.requests) == ROWS


@pytest.mark.parametrize("registry", [((), MAX_LOOK_UPS)], indirect=True)
def test_many_unknown_ids_are_requested_at_the_same_time(registry, caplog):
    """The server answers after the first one only to as many requests as may be at once."""
    server, cache = registry
    rows = 1 + 3 * MAX_LOOK_UPS
    values = [LOOKS[Framing.CONFLUENT](1_000_000 + row) for row in range(rows)]
    found = reasons(framing_of(Framing.CONFLUENT, cache), values)
    assert set(found) == {FailureReason.UNKNOWN_SCHEMA}
    assert len(server.requests) == rows
    assert "Connection pool is full" not in caplog.text


@pytest.mark.parametrize("registry", [(("8", "1000005"),)], indirect=True)
def test_ids_that_are_known_among_unknown_ones(registry):
    _, cache = registry
    ids = [8, *range(1_000_000, 1_000_050), 8]
    values = [LOOKS[Framing.CONFLUENT](number) for number in ids]
    found = reasons(framing_of(Framing.CONFLUENT, cache), values)
    assert [ids[row] for row in (found == FailureReason.NONE).nonzero()[0]] == [8, 1_000_005, 8]
