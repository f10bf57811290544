"""The contract suite of ``SchemaRegistry``."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from ..domain.values.errors import (
    IncompatibleSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from ..domain.values.registry import Schema, SchemaReference, SchemaType
from .fixtures import required_fixture
from .world import unique_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ports.values.schema_registry import SchemaRegistry

_THREADS: Final = 8
_UNKNOWN_ID: Final = 2**31 - 1
_UNKNOWN_GUID: Final = "00000000-0000-4000-8000-000000000000"


def avro(record: str, *fields: str, kind: str = "long") -> Schema:
    """Return an Avro schema: a record with fields of one type."""
    members = [{"name": name, "type": kind} for name in fields]
    text = {"type": "record", "name": record, "fields": members}
    return Schema(SchemaType.AVRO, json.dumps(text))


def protobuf(message: str, *imports: SchemaReference) -> Schema:
    """Return a Protobuf schema: a message and its imports."""
    lines = [f'import "{each.name}";' for each in imports]
    text = "\n".join(['syntax = "proto3";', *lines, f"message {message} {{ int64 id = 1; }}\n"])
    return Schema(SchemaType.PROTOBUF, text, imports)


def same(one: Schema, other: Schema) -> bool:
    """Return whether two schemas are the same, but for white space, which registries change."""
    return (one.type, one.references, _compact(one)) == (
        other.type,
        other.references,
        _compact(other),
    )


def _compact(schema: Schema) -> str:
    return "".join(schema.text.split())


class SchemaRegistryContract:
    """The contract of ``SchemaRegistry``.

    A subclass overrides the fixture ``registry``. Its subjects accept every schema, except the
    subject ``strict``. It may override the other fixtures, too.
    """

    registry = required_fixture("Return a registry; other tests may have registered schemas.")

    @pytest.fixture
    def strict(self) -> str:
        """Return an unused subject that refuses schemas that are not backward compatible."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'strict'")

    @pytest.fixture
    def failing(self) -> SchemaRegistry:
        """Return a registry that is down, or answers something else; its calls end soon."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'failing'")

    @pytest.fixture
    def guid(self) -> tuple[str, Schema]:
        """Return the GUID of a schema that is registered."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'guid'")

    @pytest.fixture
    def context(self) -> str:
        """Return a context that has no schemas; the default one has none of the subject's ids."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'context'")

    @pytest.fixture
    def secrets(self) -> Sequence[str]:
        """Return the credentials that ``registry`` was made with."""
        return ()

    @pytest.fixture
    def subject(self) -> str:
        """Return a subject that no other test uses."""
        return f"{unique_name()}-value"

    def test_a_schema_is_found_by_its_id(self, registry: SchemaRegistry, subject: str) -> None:
        """The id of a registered schema returns it, with its type and its text."""
        text = '{"type": "object", "properties": {"id": {"title": "Grüße 🎉"}}}'
        json_schema = Schema(SchemaType.JSON, text)
        for schema in (avro("Event", "id"), protobuf("Event"), json_schema):
            schema_id = registry.register(f"{subject}-{schema.type.value}", schema)
            assert 0 <= schema_id < 2**31
            assert same(registry.by_id(schema_id), schema)

    def test_a_schema_has_one_id(self, registry: SchemaRegistry, subject: str) -> None:
        """Registering a schema again, or for another subject, returns the same id."""
        schema = avro("Event", unique_name())
        schema_id = registry.register(subject, schema)
        assert registry.register(subject, schema) == schema_id
        assert registry.register(f"{subject}-other", schema) == schema_id
        assert registry.version(subject).version == 1

    def test_versions_count_from_one(self, registry: SchemaRegistry, subject: str) -> None:
        """Each new schema of a subject is its next version, and versions stay."""
        schemas = [avro("Event", "id", *("x" * count for count in range(1, n))) for n in (1, 2, 3)]
        ids = [registry.register(subject, schema) for schema in schemas]
        assert len(set(ids)) == 3
        for number, (schema_id, schema) in enumerate(zip(ids, schemas, strict=True), start=1):
            found = registry.version(subject, number)
            assert (found.subject, found.version, found.schema_id) == (subject, number, schema_id)
            assert same(found.schema, schema)

    def test_the_latest_version(self, registry: SchemaRegistry, subject: str) -> None:
        """The latest version is the one that was registered last, at any time."""
        for number in (1, 2, 3):
            schema_id = registry.register(subject, avro("Event", f"field{number}"))
            found = registry.version(subject)
            assert (found.version, found.schema_id) == (number, schema_id)

    def test_an_old_schema_stays_an_old_version(
        self, registry: SchemaRegistry, subject: str
    ) -> None:
        """Registering an older version again does not make it the latest one."""
        first = registry.register(subject, avro("Event", "id"))
        second = registry.register(subject, avro("Event", "id", "user"))
        assert registry.register(subject, avro("Event", "id")) == first
        assert registry.version(subject).schema_id == second

    def test_a_schema_is_looked_up(self, registry: SchemaRegistry, subject: str) -> None:
        """A look-up returns the version that has the schema, and registers nothing."""
        schemas = [avro("Event", "id"), avro("Event", "id", "user")]
        ids = [registry.register(subject, schema) for schema in schemas]
        for number, schema in enumerate(schemas, start=1):
            found = registry.look_up(subject, schema)
            assert (found.subject, found.version) == (subject, number)
            assert found.schema_id == ids[number - 1]
        with pytest.raises(UnknownSchemaError):
            registry.look_up(subject, avro("Event", "other"))
        assert registry.version(subject).version == 2

    def test_what_is_unknown(self, registry: SchemaRegistry, subject: str) -> None:
        """An id, subject or version that does not exist is one error, with its name."""
        with pytest.raises(UnknownSchemaError, match=str(_UNKNOWN_ID)):
            registry.by_id(_UNKNOWN_ID)
        for version in (None, 1):
            with pytest.raises(UnknownSchemaError, match=subject):
                registry.version(subject, version)
        with pytest.raises(UnknownSchemaError, match=subject):
            registry.look_up(subject, avro("Event", "id"))
        registry.register(subject, avro("Event", "id"))
        with pytest.raises(UnknownSchemaError, match="version 2"):
            registry.version(subject, 2)

    def test_what_was_unknown_is_found(self, registry: SchemaRegistry, subject: str) -> None:
        """A subject that did not exist is found as soon as it exists."""
        with pytest.raises(UnknownSchemaError):
            registry.version(subject)
        schema_id = registry.register(subject, avro("Event", "id"))
        assert registry.version(subject).schema_id == schema_id

    def test_references_are_returned(self, registry: SchemaRegistry, subject: str) -> None:
        """A schema that imports another one is returned with its reference."""
        registry.register(f"{subject}-imported", protobuf("Imported"))
        reference = SchemaReference("imported.proto", f"{subject}-imported", 1)
        schema = protobuf("Event", reference)
        schema_id = registry.register(subject, schema)
        assert same(registry.by_id(schema_id), schema)
        assert registry.version(subject).schema.references == (reference,)
        assert registry.look_up(subject, schema).version == 1

    @pytest.mark.parametrize(("suffix", "version"), [("-imported", 1), ("", 2)])
    def test_what_a_schema_imports_has_to_be_registered(
        self, registry: SchemaRegistry, subject: str, suffix: str, version: int
    ) -> None:
        """A schema is refused if it refers to a subject or a version that is not there."""
        registry.register(subject, protobuf("Imported"))
        reference = SchemaReference("imported.proto", f"{subject}{suffix}", version)
        with pytest.raises(RegistryRefusedError):
            registry.register(f"{subject}-event", protobuf("Event", reference))

    def test_names_of_subjects(self, registry: SchemaRegistry, subject: str) -> None:
        """Subjects may have any name that a topic or a record has, and are distinguished."""
        names = [f"{subject}.a_b-c", f"{subject}-com.example.Event", f"{subject} with spaces"]
        ids = [registry.register(name, avro("Event", f"f{n}")) for n, name in enumerate(names)]
        assert [registry.version(name).schema_id for name in names] == ids
        assert [registry.version(name).subject for name in names] == names

    def test_an_incompatible_schema_is_refused(self, registry: SchemaRegistry, strict: str) -> None:
        """A schema that readers cannot use is refused, and is no version of the subject."""
        registry.register(strict, avro("Event", "id"))
        with pytest.raises(IncompatibleSchemaError, match=strict):
            registry.register(strict, avro("Event", "id", kind="string"))
        assert registry.version(strict).version == 1

    def test_a_schema_is_found_by_its_guid(
        self, registry: SchemaRegistry, guid: tuple[str, Schema]
    ) -> None:
        """The GUID of a registered schema returns it; another one is unknown."""
        known, schema = guid
        assert same(registry.by_guid(known), schema)
        with pytest.raises(UnknownSchemaError, match=_UNKNOWN_GUID):
            registry.by_guid(_UNKNOWN_GUID)

    def test_ids_are_of_a_context(
        self, registry: SchemaRegistry, subject: str, context: str
    ) -> None:
        """An id is of the context of a subject, or of another if the default one lacks it."""
        qualified = f":{context}:{subject}"
        inner, outer = avro("Inner", "id"), avro("Outer", "id")
        schema_id = registry.register(qualified, inner)
        assert same(registry.by_id(schema_id, qualified), inner)
        assert same(registry.by_id(schema_id, subject), inner)
        with pytest.raises(UnknownSchemaError):
            registry.by_id(schema_id, f"{subject}-unknown")
        assert registry.register(f"{subject}-other", outer) == schema_id
        assert same(registry.by_id(schema_id, f"{subject}-other"), outer)
        assert same(registry.by_id(schema_id, qualified), inner)
        assert same(registry.version(qualified).schema, inner)

    def test_threads_share_a_registry(self, registry: SchemaRegistry, subject: str) -> None:
        """Several threads at once register the same schema as one, and find it."""
        schema = avro("Event", "id")

        def use(_: int) -> tuple[int, bool]:
            schema_id = registry.register(subject, schema)
            return schema_id, same(registry.by_id(schema_id), schema)

        with ThreadPoolExecutor(_THREADS) as pool:
            assert len(set(pool.map(use, range(_THREADS)))) == 1
        assert registry.version(subject).version == 1

    def test_a_registry_that_fails(self, failing: SchemaRegistry, subject: str) -> None:
        """A registry that is down or answers something else is no registry without the schema."""
        schema = avro("Event", "id")
        calls = (
            lambda: failing.by_id(1),
            lambda: failing.by_guid(_UNKNOWN_GUID),
            lambda: failing.version(subject),
            lambda: failing.version(subject, 1),
            lambda: failing.look_up(subject, schema),
            lambda: failing.register(subject, schema),
        )
        for call in calls:
            with pytest.raises(RegistryUnavailableError) as raised:
                call()
            assert failing.url in str(raised.value)

    def test_credentials_are_hidden(
        self, registry: SchemaRegistry, subject: str, secrets: Sequence[str]
    ) -> None:
        """Neither the URL nor ``repr`` nor an error has the credentials."""
        with pytest.raises(UnknownSchemaError) as raised:
            registry.version(subject)
        shown = f"{registry.url} {registry!r} {raised.value}"
        assert registry.url
        assert not [secret for secret in secrets if secret in shown]

    def test_closing_twice(self, registry: SchemaRegistry) -> None:
        """A second close does nothing."""
        registry.close()
        registry.close()
