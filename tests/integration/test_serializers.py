"""Values of other serializers are read, and ours are read by them, through several registries."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.request import Request, urlopen

import pytest

from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.values.errors import UnknownSchemaError
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from tests.servers.confluent_registry import ConfluentRegistry
from tests.servers.http_server import serving
from tests.servers.registry_stub import RegistryStub

from .serializer_matrix import APICURIO, CONFLUENT, FORMATS, OURS, REGISTRIES, framings, pairs

pytest.importorskip("authlib", reason="confluent-kafka needs its extra schemaregistry")

from .apicurio_serdes import CONTENT_IDS, FOUR_BYTES, GLOBAL_IDS, IN_FRONT, ApicurioSerdes
from .serializers import CASES, CHANGES, Case, Framed, Peer, comparable, message_peer, plain_bytes

APICURIO_REGISTRIES = {
    "apicurio-2.6": "older_schema_registry",
    "apicurio-3.0": "schema_registry",
}

JAVA_CASES = {
    "avro": CASES["avro"],
    "protobuf": Case(
        "protobuf",
        """syntax = "proto3"; package shop;
        message Line { string sku = 1; }
        message Order { int32 id = 1; Line line = 2; }""",
        ({"id": 1, "line": {"sku": "s"}}, {"id": 2}),
    ),
    "json": CASES["json"],
}

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
    if registry in APICURIO_REGISTRIES:
        yield request.getfixturevalue(APICURIO_REGISTRIES[registry])
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


@pytest.mark.parametrize("registry", APICURIO_REGISTRIES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("registry")
def test_values_as_apicurios_serializers_frame_them(form, url, fresh_name):
    """Ids have 8 or 4 bytes in front of a value, or 8 in a header, which names their kind."""
    case, topic = CASES[form], fresh_name()
    for artifact in (f"{topic}-other", f"{topic}-value"):
        found = register_at_apicurio(url, artifact, case)
    content, world = found["contentId"], found["globalId"]
    assert content != world
    row = case.native[0]
    plain = (b"\x07\x0a\x05Order" if form == "protobuf" else b"") + plain_bytes(case, row)
    in_headers: list[Framed] = [
        (plain, [("apicurio.value.globalId", world.to_bytes(8))]),
        (plain, [("apicurio.value.globalId", (0).to_bytes(8)), *header(content)]),
    ]
    for framing, number in (("apicurio", content), ("apicurio-global", world)):
        in_front: list[Framed] = [(b"\0" + number.to_bytes(size) + plain, []) for size in (8, 4)]
        read = Peer(OURS, case, url, topic, framing).read([*in_front, *in_headers])
        assert comparable(read) == comparable([row] * 4)
    with pytest.raises(AssertionError, match="set 'valueFraming' or 'keyFraming' to apicurio"):
        Peer(OURS, case, url, topic, "confluent").read([(b"\0" + content.to_bytes(8) + plain, [])])
    with pytest.raises(AssertionError, match=r"no schema with its id, schema id 999 \(globalId\)"):
        Peer(OURS, case, url, topic, "apicurio-global").read([(b"\0\0\0\3\xe7" + plain, [])])


@pytest.mark.parametrize("registry", APICURIO_REGISTRIES)
@pytest.mark.parametrize("form", APICURIO)
@pytest.mark.usefixtures("registry")
def test_apicurios_serializers_for_java(form, url, fresh_name):
    """Wherever their ids are, ours are read by their others than Protobuf's if ids have 4 bytes."""
    case, topic = JAVA_CASES[form], fresh_name()
    register_at_apicurio(url, f"{topic}-other", case)  # global ids are not content ids
    if form == "json":
        register_at_apicurio(url, f"{topic}-value", case)
    serdes = ApicurioSerdes(url, topic, case)
    wanted = comparable(list(case.native))
    by_content = CONTENT_IDS | FOUR_BYTES
    for settings, framing in (
        (GLOBAL_IDS, "apicurio"),
        (IN_FRONT, "apicurio-global"),
        (CONTENT_IDS, "apicurio"),
        (CONTENT_IDS | IN_FRONT, "apicurio"),
        (by_content, "apicurio"),
    ):
        values = serdes.write(case.native, settings)
        assert comparable(Peer(OURS, case, url, topic, framing).read(values)) == wanted
    if form == "protobuf":
        with pytest.raises(AssertionError, match="Apicurio's serializers name messages"):
            Peer(OURS, case, url, topic, "confluent").read(values)
        return
    assert comparable(Peer(OURS, case, url, topic, "confluent").read(values)) == wanted
    ours = Peer(OURS, case, url, topic, "confluent").write(case.native)
    assert comparable(serdes.read(ours, by_content)) == wanted


IMPORTS: Final = {
    "avro": (
        '{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"}]}',
        '{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}',
        '{"type":"record","name":"Inner","fields":[{"name":"y","type":"string"}]}',
        b"\x0a",
    ),
    "protobuf": (
        'syntax = "proto3"; message Inner { int32 x = 1; }',
        'syntax = "proto3"; package shop; import "Inner"; message Order { Inner i = 1; }',
        'syntax = "proto3"; message Inner { string y = 1; }',
        b"\x07\x0a\x05Order\x0a\x02\x08\x05",
    ),
    "json": (
        '{"type":"object","properties":{"x":{"type":"integer"}}}',
        '{"type":"object","properties":{"i":{"$ref":"Inner"}}}',
        '{"type":"object"}',
        b'{"i": {"x": 5}}',
    ),
}
"""A schema, one that imports it, another one that has its name, and a value."""


@pytest.mark.parametrize("registry", APICURIO_REGISTRIES)
@pytest.mark.parametrize("group", ["default", "mine"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("registry")
def test_schemas_of_apicurio_that_import_others(form, group, url, fresh_name):
    """Serializers that register schemas register each record of a record, too."""
    topic = fresh_name()
    inner, outer, other, value = IMPORTS[form]
    for place in ("default", "mine"):
        text = inner if place == group else other
        register_at_apicurio(url, f"{topic}-inner", Case(form, text, ()), group=place)
    imported = {
        "name": "Inner", "artifactId": f"{topic}-inner", "version": "1", "groupId": group,
    }  # fmt: skip
    ddl = "i struct<x: int>" if form == "json" else ""
    found = register_at_apicurio(url, f"{topic}-value", Case(form, outer, ()), [imported])
    alone = outer.replace('import "Inner";', "message Inner { int32 x = 1; }")
    case = Case(form, alone, ({"i": {"x": 5}},), ddl)
    for framing, number in (("apicurio", "contentId"), ("apicurio-global", "globalId")):
        values: list[Framed] = [(b"\0" + found[number].to_bytes(8) + value, [])]
        assert Peer(OURS, case, url, topic, framing).read(values) == [*case.native]


@pytest.mark.parametrize("registry", APICURIO_REGISTRIES)
@pytest.mark.parametrize("text", ['{"type":"object"}', '{"type":"string"}', "true"])
@pytest.mark.usefixtures("registry")
def test_json_schemas_that_apicurio_cannot_tell_from_others(text, url, fresh_name):
    """Apicurio 3.0 guesses the type of a schema by its text."""
    topic, case = fresh_name(), Case("json", text, (), ddl="x int")
    number = register_at_apicurio(url, f"{topic}-value", case)["contentId"]
    for framing, size in (("apicurio", 8), ("apicurio", 4), ("confluent", 4)):
        values: list[Framed] = [(b"\0" + number.to_bytes(size) + b'{"x": 5}', [])]
        assert Peer(OURS, case, url, topic, framing).read(values) == [{"x": 5}]


@pytest.mark.parametrize("registry", APICURIO_REGISTRIES)
@pytest.mark.usefixtures("registry")
def test_subjects_in_groups_of_apicurio(url, fresh_name):
    name, schema = fresh_name(), Schema(SchemaType.AVRO, '"int"')
    registry = open_registry(RegistryOptions(url))
    number = registry.register(f":.mine:{name}", schema)
    for found in (registry.version(f":.mine:{name}"), registry.look_up(f":.mine:{name}", schema)):
        assert (found.subject, found.schema_id) == (f":.mine:{name}", number)
        assert found.schema.text == schema.text
    for group in ("", ":.other:"):
        with pytest.raises(UnknownSchemaError):
            registry.version(f"{group}{name}")


def header(content_id: int) -> list[tuple[str, bytes]]:
    return [("apicurio.value.contentId", content_id.to_bytes(8))]


def register_at_apicurio(
    url: str,
    artifact: str,
    case: Case,
    imported: Sequence[Mapping[str, str]] = (),
    group: str = "default",
) -> dict[str, int]:
    """Register a schema by the API that Apicurio's serializers use, and return its ids."""
    request = Request(  # noqa: S310 - a server of ours
        f"{url.partition('/ccompat/')[0]}/registry/v2/groups/{group}/artifacts",
        json.dumps({"content": case.schema, "references": imported}).encode(),
        {
            "Content-Type": "application/create.extended+json",
            "X-Registry-ArtifactId": artifact,
            "X-Registry-ArtifactType": case.form.upper(),
        },
    )
    with urlopen(request) as answer:  # noqa: S310 - a server of ours
        found: dict[str, int] = json.load(answer)
    return found
