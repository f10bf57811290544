import json
from collections.abc import Sequence
from typing import Final
from urllib.request import Request, urlopen

import pytest

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry, guid_of
from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.application.values.schema_cache import SchemaCache
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, registry_settings
from pyspark_kafka.testing import SchemaRegistryContract
from pyspark_kafka.testing.schema_registry_contract import avro

from ..servers.http_server import Response, serving
from ..servers.registry_stub import RegistryStub

PASSWORD: Final = "pass+of/a:test"  # noqa: S105


def http_registry(url: str, timeout_ms: int = 30_000) -> HttpSchemaRegistry:
    settings = {"basic.auth.user.info": f"user:{PASSWORD}", "request.timeout.ms": str(timeout_ms)}
    return HttpSchemaRegistry(registry_settings(RegistryOptions(url, tuple(settings.items()))))


def backward(new: Schema, versions: Sequence[Schema]) -> str | None:
    """Refuse a record that has not all fields of the version before."""
    before, after = (json.loads(each.text)["fields"] for each in (versions[-1], new))
    return None if after[: len(before)] == before else "a field is missing or has another type"


class OverMemory(SchemaRegistryContract):
    """The contract over a registry in memory; a subclass provides the fixture ``registry``."""

    @pytest.fixture
    def memory(self):
        return MemorySchemaRegistry()

    @pytest.fixture
    def strict(self, memory, subject):
        memory.set_compatibility(subject, backward)
        return subject

    @pytest.fixture
    def context(self):
        return ".other"

    @pytest.fixture
    def guid(self, memory, subject):
        schema = avro("Event", "id")
        memory.register(subject, schema)
        return guid_of(schema), schema

    def test_versions_have_guids(self, registry, guid, subject):
        known, schema = guid
        assert registry.version(subject).guid == registry.look_up(subject, schema).guid == known


class TestMemorySchemaRegistry(OverMemory):
    @pytest.fixture
    def registry(self, memory):
        return memory


class OverHttp(SchemaRegistryContract):
    """The contract over HTTP, and of a server that is no registry."""

    @pytest.fixture
    def failing(self):
        """Return the registry of a server that answers with a page."""
        with serving(lambda _: Response(b"<html>")) as url:
            yield http_registry(url, timeout_ms=50)

    @pytest.fixture
    def secrets(self):
        return (PASSWORD,)


class TestHttpSchemaRegistry(OverHttp, OverMemory):
    @pytest.fixture
    def registry(self, memory):
        """Return the registry of a server that has one in memory."""
        with serving(RegistryStub(memory).respond) as url:
            registry = http_registry(url)
            yield registry
            registry.close()


class TestSchemaCache(OverMemory):
    @pytest.fixture
    def registry(self, memory):
        return SchemaCache(memory, patience_s=0)

    @pytest.fixture
    def failing(self):
        return SchemaCache(http_registry("http://127.0.0.1:1", timeout_ms=20))


class TestApicurio(OverHttp):
    @pytest.fixture
    def registry(self, schema_registry):
        """Return the real registry."""
        registry = http_registry(schema_registry)
        yield registry
        registry.close()

    @pytest.fixture
    def strict(self, schema_registry, subject):
        """Return a subject with the compatibility level BACKWARD."""
        body = b'{"compatibility": "BACKWARD"}'
        url = f"{schema_registry}/config/{subject}"
        # A server of ours.
        request = Request(url, body, {"Content-Type": "application/json"}, method="PUT")  # noqa: S310
        with urlopen(request, timeout=30):  # noqa: S310
            return subject
