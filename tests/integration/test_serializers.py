"""Values of other serializers are read, and ours are read by them, through several registries."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.servers.confluent_registry import ConfluentRegistry
from tests.servers.http_server import serving
from tests.servers.registry_stub import RegistryStub

from .serializer_matrix import CONFLUENT, FORMATS, OURS, REGISTRIES, framings, pairs

pytest.importorskip("authlib", reason="confluent-kafka needs its extra schemaregistry")

from .serializers import CASES, CHANGES, Peer, comparable, message_peer

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
@pytest.mark.parametrize("reader", [OURS, CONFLUENT])
@pytest.mark.parametrize("writer", [OURS, CONFLUENT])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("registry")
def test_schemas_that_change(form, writer, reader, url, fresh_name):
    """Fields are added, removed and reordered; readers have the older or the newer schema."""
    topic, change = fresh_name(), CHANGES[form]
    written = [
        value
        for case in (change.old, change.new)
        for value in Peer(writer, case, url, topic, "confluent").write(case.native)
    ]
    as_old, as_new = change.old.native + change.new_as_old, change.old_as_new + change.new.native
    if form == "json" and reader == CONFLUENT:  # it has no schema to read with
        as_old = as_new = change.old.native + change.new.native
    for case, wanted in ((change.old, as_old), (change.new, as_new)):
        read = Peer(reader, case, url, topic, "confluent").read(written)
        assert comparable(read) == comparable(wanted)
