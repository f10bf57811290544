"""Global ids and groups, which only Apicurio's own API has, and ids that its other API refuses."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.adapters.values.registry.rest_client import native_url
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.values.errors import (
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import (
    ImportedSchema,
    RegistryOptions,
    Schema,
    SchemaReference,
    SchemaType,
    registry_settings,
)
from tests.servers.http_server import Request, Response, serving

API = "/apis/registry/v2/ids/globalIds"
CONTENT = "/apis/registry/v2/ids/contentIds"
CONFLUENT = "/apis/ccompat/v7"
INNER = '{"type":"record","name":"n.Inner","fields":[]}'
REFERENCE = {"name": "n.Inner", "artifactId": "inner", "version": "3"}


def answering(references: Any, text: bytes = b'"n.Inner"') -> Callable[[Request], Response]:
    """Return what answers as Apicurio with one schema, whose global id is 5."""
    found = {
        f"{API}/5": text,
        f"{API}/5/references": json.dumps(references).encode(),
        "/apis/ccompat/v7/subjects/inner/versions/3?deleted=true": json.dumps(
            {"subject": "inner", "version": 3, "id": 1, "schema": INNER}
        ).encode(),
    }

    def respond(request: Request) -> Response:
        if request.target in found:
            return Response(found[request.target])
        name = "VersionNotFoundException" if API in request.path else "NotFoundException"
        return Response(json.dumps({"error_code": 404, "name": name}).encode(), 404)

    return respond


def connected(url: str, path: str = "/apis/ccompat/v7") -> HttpSchemaRegistry:
    options = RegistryOptions(f"{url}{path}", (("request.timeout.ms", "400"),))
    return HttpSchemaRegistry(registry_settings(options))


@pytest.mark.parametrize("group", [{}, {"groupId": "default"}])
def test_schemas_of_global_ids_have_their_imports(group):
    with serving(answering([REFERENCE | group])) as url:
        found = connected(url).by_global_id(5, SchemaType.AVRO)
        reference = SchemaReference("n.Inner", "inner", 3)
        assert found == Schema(SchemaType.AVRO, '"n.Inner"', (reference,))
        registry = open_registry(RegistryOptions(f"{url}/apis/ccompat/v7"))
        found = registry.by_global_id(5, SchemaType.AVRO)
    # It is cached.
    assert registry.by_global_id(5, SchemaType.AVRO) is found
    assert found.imports == (ImportedSchema("n.Inner", INNER),)


def test_unknown_global_ids():
    with (
        serving(answering([])) as url,
        pytest.raises(UnknownSchemaError, match="has no schema with the global id 6"),
    ):
        connected(url).by_global_id(6, SchemaType.PROTOBUF)


@pytest.mark.parametrize("path", ["", "/apis/ccompat", "/apis/ccompat/v7/contexts/.a"])
def test_registries_that_have_no_global_ids(path):
    with pytest.raises(RegistryRefusedError, match="only Apicurio has global ids"):
        connected("http://localhost:1", path).by_global_id(5, SchemaType.AVRO)


def test_an_api_that_is_not_there_is_no_unknown_id():
    def respond(_: Request) -> Response:
        return Response(b'{"error_code": 404, "name": "NotFoundException"}', 404)

    with serving(respond) as url, pytest.raises(RegistryUnavailableError, match="HTTP 404"):
        connected(url).by_global_id(5, SchemaType.AVRO)


@pytest.mark.parametrize("other", [{"groupId": "g:h"}, {"version": "1.0"}, {"version": "0"}])
def test_imports_that_the_compatible_api_cannot_name(other):
    with (
        serving(answering([REFERENCE | other])) as url,
        pytest.raises(RegistryRefusedError, match="versions must be numbers, and groups have"),
    ):
        connected(url).by_global_id(5, SchemaType.AVRO)


@pytest.mark.parametrize("references", [{}, [1], [{"name": "a"}], [REFERENCE | {"groupId": 1}]])
def test_nonsense(references):
    with serving(answering(references)) as url, pytest.raises(RegistryUnavailableError):
        connected(url).by_global_id(5, SchemaType.AVRO)


def test_schemas_that_are_no_text():
    with serving(answering([], b"\xff")) as url, pytest.raises(RegistryUnavailableError):
        connected(url).by_global_id(5, SchemaType.AVRO)


def in_groups(found: Mapping[tuple[str, str], Any]) -> Callable[[Request], Response]:
    """Return what answers by groups and targets; other ids have no type, as Apicurio 3.0 says."""

    def respond(request: Request) -> Response:
        answer = found.get((request.headers.get("X-Registry-GroupId", ""), request.target))
        if answer is None:
            message = "Failed to discover artifact type from content."
            return Response(json.dumps({"error_code": 0, "message": message}).encode(), 400)
        return Response(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    return respond


@pytest.mark.parametrize(
    ("text", "kind"),
    [("message M {}", SchemaType.PROTOBUF), ('{"type": "object"}', SchemaType.JSON)],
)
def test_content_ids_whose_type_apicurio_cannot_guess(text, kind):
    answers = {("", f"{CONTENT}/5"): text.encode(), ("", f"{CONTENT}/5/references"): []}
    with serving(in_groups(answers)) as url:
        assert connected(url).by_id(5, "s") == Schema(kind, text)
        with pytest.raises(RegistryUnavailableError, match="HTTP 400"):
            connected(url).by_id(6)
        with pytest.raises(RegistryUnavailableError, match="HTTP 400"):
            connected(url, "").by_id(5)


def version(text: str, subject: str, *imported: Mapping[str, Any]) -> dict[str, Any]:
    found = {"schema": text, "subject": subject, "version": 3, "id": 5}
    return found | ({"references": imported} if imported else {})


@pytest.mark.parametrize(
    ("group", "by_default", "by_mine"),
    [
        ("default", "inner", ":.:inner"),
        ("mine", ":.mine:inner", "inner"),
        ("g", ":.g:inner", ":.g:inner"),
    ],
)
def test_imports_are_of_their_group(group, by_default, by_mine):
    """Confluent's API leaves groups out, and another group may have the same artifact."""
    imported = {"name": "n.Inner", "subject": "inner", "version": 3}
    answers: dict[tuple[str, str], Any] = {
        ("", f"{CONFLUENT}/schemas/ids/5"): {"schema": '"n.Inner"', "references": [imported]},
        ("", f"{CONTENT}/5/references"): [REFERENCE | {"groupId": group}],
        ("mine", f"{CONFLUENT}/subjects/o/versions/latest"): version('"n.Inner"', "o", imported),
        ("mine", f"{CONFLUENT}/subjects/o"): version('"n.Inner"', "o", imported),
        ("mine", f"{CONFLUENT}/subjects/o/versions"): {"id": 5},
    }
    for place in ("", "mine", "g"):
        text = INNER if place == group.removeprefix("default") else '"int"'
        target = f"{CONFLUENT}/subjects/inner/versions/3?deleted=true"
        answers[place, target] = version(text, "inner")
    with serving(in_groups(answers)) as url:
        registry = open_registry(RegistryOptions(f"{url}{CONFLUENT}"))
        found = registry.by_id(5)
        assert found.imports == (ImportedSchema("n.Inner", INNER),)
        assert [each.subject for each in found.references] == [by_default]
        for one in (registry.version(":.mine:o"), registry.look_up(":.mine:o", found)):
            assert (one.subject, one.schema.imports) == (":.mine:o", found.imports)
            assert [each.subject for each in one.schema.references] == [by_mine]
        assert registry.register(":.mine:o", found) == 5


@pytest.mark.parametrize("native", [None, [REFERENCE | {"version": "4", "groupId": "g"}]])
def test_imports_of_an_apicurio_whose_ids_are_global_ids(native):
    """Another schema has the content id, or none has."""
    imported = {"name": "n.Inner", "subject": "inner", "version": 3}
    answers = {
        ("", f"{CONFLUENT}/schemas/ids/5"): {"schema": '"n.Inner"', "references": [imported]},
        ("", f"{CONTENT}/5/references"): native,
    }

    def respond(request: Request) -> Response:
        if native is None and request.target.startswith(CONTENT):
            return Response(b'{"error_code": 404, "name": "ContentNotFoundException"}', 404)
        return in_groups(answers)(request)

    with serving(respond) as url:
        found = connected(url).by_id(5).references
    assert found == (SchemaReference("n.Inner", "inner", 3),)


def test_where_apicurios_own_api_is():
    assert native_url("https://r:1/x/apis/ccompat/v6") == "https://r:1/x/apis/registry/v2"
    assert native_url("https://r/apis/ccompat/v7/x") is None
