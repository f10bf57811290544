import time
from dataclasses import replace
from typing import Final

import pytest

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry, guid_of
from pyspark_kafka.domain.values.errors import RegistryUnavailableError, UnknownSchemaError
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.testing import SchemaRegistryContract as Suite
from pyspark_kafka.testing.schema_registry_contract import avro

from .adapter import Faults

SECRET: Final = "not-to-be-seen"  # noqa: S105
URL: Final = "http://registry"


class Passing(SchemaRegistry):
    """Passes every call to a registry in memory, if it is not down."""

    def __init__(self, memory: MemorySchemaRegistry, *, is_down: bool = False) -> None:
        self.memory = memory
        self.is_down = is_down
        self.is_closed = False

    @property
    def url(self) -> str:
        return URL

    @property
    def kept(self) -> MemorySchemaRegistry:
        """The registry in memory; every method looks at it."""
        if self.is_down:
            raise RegistryUnavailableError(URL, "it is down")
        return self.memory

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        return self.kept.by_id(schema_id, subject)

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:
        return self.kept.by_guid(guid, subject)

    def version(
        self, subject: str, version: int | None = None, *, deleted: bool = False
    ) -> SubjectVersion:
        return self.kept.version(subject, version, deleted=deleted)

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        return self.kept.look_up(subject, schema)

    def register(self, subject: str, schema: Schema) -> int:
        return self.kept.register(subject, schema)

    def close(self) -> None:
        self.is_closed = True


def _suite(adapter: type[Passing]) -> type:
    class Held(Suite):
        @pytest.fixture
        def memory(self):
            return MemorySchemaRegistry()

        @pytest.fixture
        def registry(self, memory):
            return adapter(memory)

        @pytest.fixture
        def strict(self, memory):
            memory.set_compatibility("strict", lambda *_: "a field has another type")
            return "strict"

        @pytest.fixture
        def failing(self):
            return adapter(MemorySchemaRegistry(), is_down=True)

        @pytest.fixture
        def guid(self, memory):
            first, second = avro("First", "id"), avro("Second", "id")
            for schema in (first, second):
                memory.register("known", schema)
            return guid_of(second), second

        @pytest.fixture
        def context(self):
            return ".other"

        @pytest.fixture
        def secrets(self):
            return (SECRET,)

    return Held


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_a_schema_is_found_by_its_id, "by_id")
def returns_every_schema_as_avro(self, schema_id):
    return replace(Passing.by_id(self, schema_id), type=SchemaType.AVRO)


@wrong(Suite.test_a_schema_has_one_id, "register")
def gives_a_schema_another_id_in_each_subject(self, subject, schema):
    self.kept.register(subject, schema)
    self.kept._schemas[""].append(schema)
    return len(self.kept._schemas[""])


@wrong(Suite.test_versions_count_from_one, "version")
def counts_the_versions_from_0(self, subject, version=None):
    found = Passing.version(self, subject, None if version is None else version + 1)
    return replace(found, version=found.version - 1)


@wrong(Suite.test_the_latest_version)
class KeepsLatest(Passing):
    """Returns the first latest version again."""

    def __init__(self, memory):
        super().__init__(memory)
        self._latest: dict[str, SubjectVersion] = {}

    def version(self, subject, version=None, *, deleted=False):
        if version is not None:
            return super().version(subject, version)
        if subject not in self._latest:
            self._latest[subject] = super().version(subject)
        return self._latest[subject]


@wrong(Suite.test_an_old_schema_stays_an_old_version, "register")
def makes_an_old_version_the_latest_if_it_is_registered_again(self, subject, schema):
    schema_id = Passing.register(self, subject, schema)
    ids = self.kept._subjects[subject]
    ids.remove(schema_id)
    ids.append(schema_id)
    return schema_id


@wrong(Suite.test_a_schema_is_looked_up, "look_up")
def returns_the_latest_version_for_every_schema(self, subject, schema):
    return self.version(subject)


@wrong(Suite.test_what_is_unknown, "by_id")
def raises_another_error_for_an_unknown_id(self, schema_id):
    try:
        return self.kept._schemas.get("", [])[schema_id - 1]
    except IndexError as error:
        raise KeyError(schema_id) from error


@wrong(Suite.test_what_was_unknown_is_found)
class KeepsUnknown(Passing):
    """Does not look again for a subject that it did not find."""

    def __init__(self, memory):
        super().__init__(memory)
        self._unknown: set[str] = set()

    def version(self, subject, version=None, *, deleted=False):
        if subject in self._unknown:
            raise UnknownSchemaError(URL, subject)
        try:
            return super().version(subject, version)
        except UnknownSchemaError:
            self._unknown.add(subject)
            raise


@wrong(Suite.test_references_are_returned, "by_id")
def returns_schemas_without_their_references(self, schema_id):
    return replace(Passing.by_id(self, schema_id), references=())


@wrong(Suite.test_what_a_schema_imports_has_to_be_registered, "register")
def registers_schemas_whose_imports_are_unknown(self, subject, schema):
    return Passing.register(self, subject, replace(schema, references=()))


@wrong(Suite.test_names_of_subjects)
class CutsSubjects(Passing):
    """Keeps a subject's name up to its first space."""

    def register(self, subject, schema):
        return super().register(subject.partition(" ")[0], schema)

    def version(self, subject, version=None, *, deleted=False):
        return super().version(subject.partition(" ")[0], version)


@wrong(Suite.test_an_incompatible_schema_is_refused, "register")
def checks_no_compatibility(self, subject, schema):
    self.memory._checks.clear()
    return self.kept.register(subject, schema)


@wrong(Suite.test_a_schema_is_found_by_its_guid, "by_guid")
def returns_the_first_schema_for_every_guid(self, guid):
    return self.by_id(1)


@wrong(Suite.test_ids_are_of_a_context, "by_id")
def ignores_the_subject_of_an_id(self, schema_id, _subject):
    return Passing.by_id(self, schema_id)


@wrong(Suite.test_threads_share_a_registry)
class LooksBeforeItRegisters(Passing):
    """Registers a schema later than it looks for it."""

    def register(self, subject, schema):
        schemas = self.kept._schemas.setdefault("", [])
        if schema in schemas:
            return self.kept.register(subject, schema)
        time.sleep(0.1)
        schemas.append(schema)
        self.kept._subjects.setdefault(subject, []).append(len(schemas))
        return len(schemas)


@wrong(Suite.test_a_registry_that_fails)
class FailsAsUnknown(Passing):
    """Takes a registry that is down for one without schemas."""

    @property
    def kept(self):
        if self.is_down:
            raise UnknownSchemaError(URL, "schema")
        return self.memory


@wrong(Suite.test_credentials_are_hidden)
class ShowsLogin(Passing):
    """Has a URL with its login."""

    @property
    def url(self):
        return f"http://user:{SECRET}@registry"


wrong.fails_when_closed_twice(Suite.test_closing_twice)
