"""Registries that break a promise of ``SchemaRegistry``."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Final

import pytest

from pyspark_kafka.domain.values.errors import (
    IncompatibleSchemaError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.testing import SchemaRegistryContract as Suite
from pyspark_kafka.testing.schema_registry_contract import avro

from .adapter import Faults

SECRET: Final = "not-to-be-seen"  # noqa: S105
URL: Final = "http://registry"
GUID: Final = "89791762-2336-4186-9674-299b90a802e2"


@dataclass
class Subjects:
    """Schemas by id, and their ids by subject."""

    fails: bool = False
    strict: str = ""
    schemas: list[Schema] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    guids: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


class Registering(SchemaRegistry):
    """Keeps schemas in subjects that several registries share."""

    def __init__(self, subjects: Subjects) -> None:
        self._kept = subjects
        self.is_closed = False

    @property
    def url(self) -> str:
        return URL

    @property
    def kept(self) -> Subjects:
        """The subjects; every method looks at them."""
        if self._kept.fails:
            raise RegistryUnavailableError(URL, "it is down")
        return self._kept

    def by_id(self, schema_id: int) -> Schema:
        if not 1 <= schema_id <= len(self.kept.schemas):
            raise UnknownSchemaError(URL, f"schema {schema_id}")
        return self.kept.schemas[schema_id - 1]

    def by_guid(self, guid: str) -> Schema:
        if guid not in self.kept.guids:
            raise UnknownSchemaError(URL, f"schema {guid}")
        return self.by_id(self.kept.guids[guid])

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        ids = self.kept.subjects.get(subject, [])
        number = len(ids) if version is None else version
        if not 1 <= number <= len(ids):
            raise UnknownSchemaError(URL, f"version {version} of {subject}")
        schema_id = ids[number - 1]
        return SubjectVersion(subject, number, schema_id, self.by_id(schema_id))

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        for number, schema_id in enumerate(self.kept.subjects.get(subject, []), start=1):
            if self.by_id(schema_id) == schema:
                return self.version(subject, number)
        raise UnknownSchemaError(URL, f"version of {subject} with this schema")

    def register(self, subject: str, schema: Schema) -> int:
        with self.kept.lock:
            schema_id = self.id_of(schema)
            ids = self.kept.subjects.setdefault(subject, [])
            if schema_id not in ids:
                self.check(subject, len(ids))
                ids.append(schema_id)
            return schema_id

    def id_of(self, schema: Schema) -> int:
        """Return the id of a schema, which is a new one if it is."""
        if schema not in self.kept.schemas:
            self.kept.schemas.append(schema)
        return self.kept.schemas.index(schema) + 1

    def check(self, subject: str, versions: int) -> None:
        """Refuse a second version of the strict subject."""
        if subject == self.kept.strict and versions:
            raise IncompatibleSchemaError(f"The schema for {subject}", "a field has another type")

    def close(self) -> None:
        self.is_closed = True


def _suite(adapter: type[Registering]) -> type:
    class Held(Suite):
        @pytest.fixture
        def kept(self):
            return Subjects()

        @pytest.fixture
        def registry(self, kept):
            return adapter(kept)

        @pytest.fixture
        def strict(self, kept):
            kept.strict = "strict"
            return "strict"

        @pytest.fixture
        def failing(self):
            return adapter(Subjects(fails=True))

        @pytest.fixture
        def guid(self, kept):
            kept.schemas += [avro("First", "id"), avro("Second", "id")]
            kept.guids[GUID] = 2
            return GUID, kept.schemas[1]

        @pytest.fixture
        def secrets(self):
            return (SECRET,)

    return Held


wrong: Final = Faults(Registering, _suite)


@wrong(Suite.test_a_schema_is_found_by_its_id, "by_id")
def returns_every_schema_as_avro(self, schema_id):
    return replace(Registering.by_id(self, schema_id), type=SchemaType.AVRO)


@wrong(Suite.test_a_schema_has_one_id, "id_of")
def gives_a_schema_another_id_each_time(self, schema):
    self.kept.schemas.append(schema)
    return len(self.kept.schemas)


@wrong(Suite.test_versions_count_from_one, "version")
def counts_the_versions_from_0(self, subject, version=None):
    found = Registering.version(self, subject, None if version is None else version + 1)
    return replace(found, version=found.version - 1)


@wrong(Suite.test_the_latest_version)
class KeepsLatest(Registering):
    """Returns the first latest version again."""

    def __init__(self, subjects):
        super().__init__(subjects)
        self._latest: dict[str, SubjectVersion] = {}

    def version(self, subject, version=None):
        if version is not None:
            return super().version(subject, version)
        if subject not in self._latest:
            self._latest[subject] = super().version(subject)
        return self._latest[subject]


@wrong(Suite.test_an_old_schema_stays_an_old_version, "register")
def makes_an_old_version_the_latest_if_it_is_registered_again(self, subject, schema):
    schema_id = Registering.register(self, subject, schema)
    ids = self.kept.subjects[subject]
    ids.remove(schema_id)
    ids.append(schema_id)
    return schema_id


@wrong(Suite.test_a_schema_is_looked_up, "look_up")
def returns_the_latest_version_for_every_schema(self, subject, schema):
    return self.version(subject)


@wrong(Suite.test_what_is_unknown, "by_id")
def raises_another_error_for_an_unknown_id(self, schema_id):
    try:
        return self.kept.schemas[schema_id - 1]
    except IndexError as error:
        raise KeyError(schema_id) from error


@wrong(Suite.test_what_was_unknown_is_found)
class KeepsUnknown(Registering):
    """Does not look again for a subject that it did not find."""

    def __init__(self, subjects):
        super().__init__(subjects)
        self._unknown: set[str] = set()

    def version(self, subject, version=None):
        if subject in self._unknown:
            raise UnknownSchemaError(URL, subject)
        try:
            return super().version(subject, version)
        except UnknownSchemaError:
            self._unknown.add(subject)
            raise


@wrong(Suite.test_references_are_returned, "by_id")
def returns_schemas_without_their_references(self, schema_id):
    return replace(Registering.by_id(self, schema_id), references=())


@wrong(Suite.test_names_of_subjects)
class CutsSubjects(Registering):
    """Keeps a subject's name up to its first space."""

    def register(self, subject, schema):
        return super().register(subject.partition(" ")[0], schema)

    def version(self, subject, version=None):
        return super().version(subject.partition(" ")[0], version)


@wrong(Suite.test_an_incompatible_schema_is_refused, "check")
def checks_no_compatibility(self, subject, versions):
    pass


@wrong(Suite.test_a_schema_is_found_by_its_guid, "by_guid")
def returns_the_first_schema_for_every_guid(self, guid):
    return self.by_id(1)


@wrong(Suite.test_threads_share_a_registry)
class LooksBeforeItRegisters(Registering):
    """Registers a schema later than it looks for it."""

    def id_of(self, schema):
        if schema in self.kept.schemas:
            return self.kept.schemas.index(schema) + 1
        time.sleep(0.02)
        self.kept.schemas.append(schema)
        return len(self.kept.schemas)

    def register(self, subject, schema):
        schema_id = self.id_of(schema)
        ids = self.kept.subjects.setdefault(subject, [])
        if schema_id not in ids:
            ids.append(schema_id)
        return schema_id


@wrong(Suite.test_a_registry_that_fails)
class FailsAsUnknown(Registering):
    """Takes a registry that is down for one without schemas."""

    @property
    def kept(self):
        if self._kept.fails:
            raise UnknownSchemaError(URL, "schema")
        return self._kept


@wrong(Suite.test_credentials_are_hidden)
class ShowsLogin(Registering):
    """Has a URL with its login."""

    @property
    def url(self):
        return f"http://user:{SECRET}@registry"


@wrong(Suite.test_closing_twice, "close")
def fails_at_a_second_close(self):
    if self.is_closed:
        raise RuntimeError("it is closed")
    Registering.close(self)
