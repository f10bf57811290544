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

from .adapter import PortFaults, wrong_with

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


class ForgetsType(Registering):
    """Returns every schema as Avro."""

    def by_id(self, schema_id: int) -> Schema:
        return replace(super().by_id(schema_id), type=SchemaType.AVRO)


class ReadsAscii(Registering):
    """Returns only the ASCII characters of a schema."""

    def by_id(self, schema_id: int) -> Schema:
        found = super().by_id(schema_id)
        return replace(found, text=found.text.encode("ascii", "ignore").decode())


class NumbersEverySchema(Registering):
    """Gives a schema another id each time."""

    def id_of(self, schema: Schema) -> int:
        self.kept.schemas.append(schema)
        return len(self.kept.schemas)


class NumbersBySubject(Registering):
    """Gives a schema an id of each subject."""

    def register(self, subject: str, schema: Schema) -> int:
        known = self.kept.subjects.get(subject, [])
        same = [each for each in known if self.by_id(each) == schema]
        if same:
            return same[0]
        self.kept.schemas.append(schema)
        self.kept.subjects[subject] = [*known, len(self.kept.schemas)]
        return len(self.kept.schemas)


class CountsFromZero(Registering):
    """Counts the versions from 0."""

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        found = super().version(subject, None if version is None else version + 1)
        return replace(found, version=found.version - 1)


class KeepsOneVersion(Registering):
    """Replaces the version of a subject."""

    def register(self, subject: str, schema: Schema) -> int:
        schema_id = self.id_of(schema)
        self.kept.subjects[subject] = [schema_id]
        return schema_id


class KeepsLatest(Registering):
    """Returns the first latest version again."""

    def __init__(self, subjects: Subjects) -> None:
        super().__init__(subjects)
        self._latest: dict[str, SubjectVersion] = {}

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        if version is not None:
            return super().version(subject, version)
        if subject not in self._latest:
            self._latest[subject] = super().version(subject)
        return self._latest[subject]


class MovesOldSchemas(Registering):
    """Makes an old version the latest if it is registered again."""

    def register(self, subject: str, schema: Schema) -> int:
        schema_id = super().register(subject, schema)
        ids = self.kept.subjects[subject]
        ids.remove(schema_id)
        ids.append(schema_id)
        return schema_id


class LooksUpLatest(Registering):
    """Returns the latest version for every schema."""

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        return self.version(subject)


class LooksUpAndRegisters(Registering):
    """Registers a schema that it does not find."""

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        self.register(subject, schema)
        return super().look_up(subject, schema)


class UnknownIsKeyError(Registering):
    """Raises another error for an unknown id."""

    def by_id(self, schema_id: int) -> Schema:
        try:
            return self.kept.schemas[schema_id - 1]
        except IndexError as error:
            raise KeyError(schema_id) from error


class UnknownIsUnavailable(Registering):
    """Takes a subject that does not exist for a failure."""

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        try:
            return super().version(subject, version)
        except UnknownSchemaError as error:
            raise RegistryUnavailableError(URL, str(error)) from error


class ReturnsLatestForUnknown(Registering):
    """Returns the latest version for one that does not exist."""

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        known = len(self.kept.subjects.get(subject, []))
        return super().version(subject, None if version and version > known else version)


class KeepsUnknown(Registering):
    """Does not look again for a subject that it did not find."""

    def __init__(self, subjects: Subjects) -> None:
        super().__init__(subjects)
        self._unknown: set[str] = set()

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        if subject in self._unknown:
            raise UnknownSchemaError(URL, subject)
        try:
            return super().version(subject, version)
        except UnknownSchemaError:
            self._unknown.add(subject)
            raise


class LosesReferences(Registering):
    """Returns schemas without their references."""

    def by_id(self, schema_id: int) -> Schema:
        return replace(super().by_id(schema_id), references=())


class CutsSubjects(Registering):
    """Keeps a subject's name up to its first space."""

    def register(self, subject: str, schema: Schema) -> int:
        return super().register(subject.partition(" ")[0], schema)

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        return super().version(subject.partition(" ")[0], version)


class AcceptsEverything(Registering):
    """Checks no compatibility."""

    def check(self, subject: str, versions: int) -> None:
        pass


class ChecksTooLate(Registering):
    """Keeps the version that it refuses."""

    def register(self, subject: str, schema: Schema) -> int:
        try:
            return super().register(subject, schema)
        except IncompatibleSchemaError:
            self.kept.subjects[subject].append(self.id_of(schema))
            raise


class IgnoresGuids(Registering):
    """Returns the first schema for every GUID."""

    def by_guid(self, guid: str) -> Schema:
        return self.by_id(1)


class LooksBeforeItRegisters(Registering):
    """Registers a schema later than it looks for it."""

    def id_of(self, schema: Schema) -> int:
        if schema in self.kept.schemas:
            return self.kept.schemas.index(schema) + 1
        time.sleep(0.02)
        self.kept.schemas.append(schema)
        return len(self.kept.schemas)

    def register(self, subject: str, schema: Schema) -> int:
        schema_id = self.id_of(schema)
        ids = self.kept.subjects.setdefault(subject, [])
        if schema_id not in ids:
            ids.append(schema_id)
        return schema_id


class FailsAsUnknown(Registering):
    """Takes a registry that is down for one without schemas."""

    @property
    def kept(self) -> Subjects:
        if self._kept.fails:
            raise UnknownSchemaError(URL, "schema")
        return self._kept


class FailsWithoutUrl(Registering):
    """Does not say which registry is down."""

    @property
    def kept(self) -> Subjects:
        if self._kept.fails:
            raise RegistryUnavailableError("the registry", "it is down")
        return self._kept


class ShowsLogin(Registering):
    """Has a URL with its login."""

    @property
    def url(self) -> str:
        return f"http://user:{SECRET}@registry"


class ShowsItself(Registering):
    """Has a ``repr`` with its login."""

    def __repr__(self) -> str:
        return f"ShowsItself({SECRET})"


class ClosesOnce(Registering):
    """Fails at a second close."""

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        super().close()


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


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Registering),
    (
        *_wrong(Suite.test_a_schema_is_found_by_its_id, ForgetsType, ReadsAscii),
        *_wrong(Suite.test_a_schema_has_one_id, NumbersEverySchema, NumbersBySubject),
        *_wrong(Suite.test_versions_count_from_one, CountsFromZero, KeepsOneVersion),
        *_wrong(Suite.test_the_latest_version, KeepsLatest),
        *_wrong(Suite.test_an_old_schema_stays_an_old_version, MovesOldSchemas),
        *_wrong(Suite.test_a_schema_is_looked_up, LooksUpLatest, LooksUpAndRegisters),
        *_wrong(
            Suite.test_what_is_unknown,
            UnknownIsKeyError,
            UnknownIsUnavailable,
            ReturnsLatestForUnknown,
        ),
        *_wrong(Suite.test_what_was_unknown_is_found, KeepsUnknown),
        *_wrong(Suite.test_references_are_returned, LosesReferences),
        *_wrong(Suite.test_names_of_subjects, CutsSubjects),
        *_wrong(Suite.test_an_incompatible_schema_is_refused, AcceptsEverything, ChecksTooLate),
        *_wrong(Suite.test_a_schema_is_found_by_its_guid, IgnoresGuids),
        *_wrong(Suite.test_threads_share_a_registry, LooksBeforeItRegisters),
        *_wrong(Suite.test_a_registry_that_fails, FailsAsUnknown, FailsWithoutUrl),
        *_wrong(Suite.test_credentials_are_hidden, ShowsLogin, ShowsItself),
        *_wrong(Suite.test_closing_twice, ClosesOnce),
    ),
)
