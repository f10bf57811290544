"""Global ids, which only Apicurio's own API has."""

import json
from collections.abc import Callable
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


@pytest.mark.parametrize("other", [{"groupId": "g"}, {"version": "1.0"}, {"version": "0"}])
def test_imports_that_the_compatible_api_cannot_name(other):
    with (
        serving(answering([REFERENCE | other])) as url,
        pytest.raises(RegistryRefusedError, match="only numbers and the group 'default'"),
    ):
        connected(url).by_global_id(5, SchemaType.AVRO)


@pytest.mark.parametrize("references", [{}, [1], [{"name": "a"}], [REFERENCE | {"groupId": 1}]])
def test_nonsense(references):
    with serving(answering(references)) as url, pytest.raises(RegistryUnavailableError):
        connected(url).by_global_id(5, SchemaType.AVRO)


def test_schemas_that_are_no_text():
    with serving(answering([], b"\xff")) as url, pytest.raises(RegistryUnavailableError):
        connected(url).by_global_id(5, SchemaType.AVRO)


def test_where_apicurios_own_api_is():
    assert native_url("https://r:1/x/apis/ccompat/v6") == "https://r:1/x/apis/registry/v2"
    assert native_url("https://r/apis/ccompat/v7/x") is None
