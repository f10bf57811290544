"""Values of other serializers are read, and ours are read by them, through several registries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.servers.confluent_registry import ConfluentRegistry
from tests.servers.http_server import serving
from tests.servers.registry_stub import RegistryStub

from .serializer_matrix import CONFLUENT, OURS, REGISTRIES, framings, pairs

pytest.importorskip("authlib", reason="confluent-kafka needs its extra schemaregistry")

from .serializers import CASES, Case, Peer, comparable, message_peer

CELLS = [
    (*pair, registry, framing)
    for registry in REGISTRIES
    for pair in pairs()
    for framing in framings(pair[1], pair[2], registry)
]


@contextmanager
def running(registry: str) -> Iterator[str]:
    """Yield the URL of a double: of Confluent's registry, or of one that keeps what it gets."""
    is_new = registry == "confluent-8.1"
    double = ConfluentRegistry(has_map_entries=not is_new, has_guids=is_new)
    respond = RegistryStub().respond if registry == "keeping" else double.respond
    with serving(respond) as url:
        yield url


@pytest.fixture
def url(request, registry):
    """Return the URL of a registry."""
    if registry == "apicurio":
        yield request.getfixturevalue("schema_registry")
    else:
        with running(registry) as found:
            yield found


@pytest.mark.parametrize(("form", "writer", "reader", "registry", "framing"), CELLS)
@pytest.mark.usefixtures("registry")
def test_values_are_read_as_they_were_written(form, writer, reader, framing, url, fresh_name):
    case, topic = CASES[form], fresh_name()
    written = Peer(writer, case, url, topic, framing).write(case.native)
    read = Peer(reader, case, url, topic, framing).read(written)
    assert comparable(read) == comparable(list(case.native))


ALL_REGISTRIES = (*REGISTRIES, "keeping")


@pytest.mark.parametrize("registry", ALL_REGISTRIES)
@pytest.mark.usefixtures("registry")
def test_protobuf_schemas_that_import_others(url, fresh_name):
    """Confluent's serializer registers imports, and ours writes with the registered schema."""
    topic = fresh_name()
    rows = [{"inners": {"a": {"x": 1}}, "inner": {"x": 2}}, {}]
    confluent = message_peer(CONFLUENT, url, topic)
    ours = message_peer(OURS, url, topic)
    written = confluent.write(rows)
    assert ours.read(written) == rows
    assert confluent.read(ours.write(rows)) == rows


@pytest.mark.parametrize("registry", ALL_REGISTRIES)
@pytest.mark.parametrize("writer", [OURS, CONFLUENT])
@pytest.mark.usefixtures("registry")
def test_avro_schemas_that_change(url, fresh_name, writer):
    """Values of an older and of a newer schema are read with either, whoever wrote them."""
    topic = fresh_name()
    gone = {"name": "gone", "type": "string", "default": ""}
    more = {"name": "more", "type": "long", "default": 7}
    old = avro_case({"name": "id", "type": "int"}, gone)
    new = avro_case({"name": "id", "type": "long"}, more)
    rows = [{"id": 1, "gone": "x"}], [{"id": 2**40, "more": 8}]
    written = [
        *Peer(writer, old, url, topic, "confluent").write(rows[0]),
        *Peer(writer, new, url, topic, "confluent").write(rows[1]),
    ]
    read = Peer(OURS, new, url, topic, "confluent").read(written)
    assert read == [{"id": 1, "more": 7}, {"id": 2**40, "more": 8}]
    again = Peer(OURS, replace(old, options={"valueSchemaVersion": "1"}), url, topic, "confluent")
    assert again.read(written[:1]) == [{"id": 1, "gone": "x"}]


def avro_case(*fields: object) -> Case:
    schema = {"type": "record", "name": "R", "fields": fields}
    return Case("avro", json.dumps(schema), (), ())
