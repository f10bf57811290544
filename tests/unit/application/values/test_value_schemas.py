import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.application.values.value_schemas import (
    SchemaVersions,
    ValueSchemas,
    with_schema_file,
)
from pyspark_kafka.domain.checkpoints.entries import SchemaVersion, write_schema_versions
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.errors import UnknownSchemaError
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.typed_schema import TypedSchema
from tests.line_values import VALUE_FORMAT

REGISTRY = {"schema.registry.url": "http://127.0.0.1:1"}


class Driver:
    """A driver's options, registry and files, and a log that restarts share."""

    def __init__(self, log: MemoryMetadataLog | None = None) -> None:
        self.registry = MemorySchemaRegistry()
        self.log = log
        self.files: dict[str, bytes] = {}

    def register(self, *texts: str, subject: str = "t-value") -> None:
        for text in texts:
            self.registry.register(subject, Schema(SchemaType.AVRO, text))

    def schemas(self, **options: str) -> ValueSchemas:
        given = {"kafka.bootstrap.servers": "b", "subscribe": "t", "valueFormat": "line"}
        given |= {name.replace("_", "."): value for name, value in options.items()}
        if "subscribePattern" in given:
            del given["subscribe"]
        parsed = parse_source_options(given, QueryKind.STREAM, UNRESTRICTED)
        return ValueSchemas(
            parsed,
            lambda _name: VALUE_FORMAT,
            lambda: self.registry,
            self._read,
            SchemaVersions(self.log),
        )

    def _read(self, path: StoragePath) -> bytes:
        return self.files[path.url]

    def version(self, **options: str) -> int:
        """Start a query, and return the version of the value's schema."""
        schemas = self.schemas(**REGISTRY, **options)
        found = schemas.resolve()
        schemas.keep(found)
        [column] = found.typed
        assert column.version is not None
        assert column.data_type == parse_struct(column.version.schema.text)
        return column.version.version


def types(schema: TypedSchema) -> list[str]:
    return [str(column.data_type) for column in schema.typed]


def test_the_options_schema_takes_precedence_over_the_registrys():
    driver = Driver()
    assert types(driver.schemas(valueSchema="a bigint").resolve()) == ["struct<a:bigint>"]
    schemas = driver.schemas(**REGISTRY, valueSchema="a bigint")
    assert types(schemas.resolve()) == ["struct<a:bigint>"]


def test_the_content_of_a_schema_file_travels_to_the_tasks():
    driver = Driver()
    driver.files = {"/s/a.avsc": b"a bigint", "/s/b.avsc": b"\xff", "/s/a.desc": b"\xff\0"}
    [column] = driver.schemas(valueSchema="/s/a.avsc").resolve().typed
    assert (column.options.schema, column.options.schema_file) == ("a bigint", None)
    with pytest.raises(OptionsError, match=r"'valueSchema': the file /s/b.avsc is not a text"):
        driver.schemas(valueSchema="/s/b.avsc").resolve()
    schemas = driver.schemas(valueSchema="/s/a.desc")
    [value] = schemas._options.values
    read = with_schema_file(value, schemas._read_file)
    assert (read.descriptor, read.schema, read.schema_file) == (b"\xff\0", None, None)


def test_a_users_schema_chooses_fields_or_is_the_schema():
    driver = Driver()
    requested = parse_struct("offset bigint, value struct<b:string>")
    chosen = driver.schemas(valueSchema="a bigint, b string").resolve(requested)
    assert [column.name for column in chosen.columns] == ["offset", "value"]
    assert types(chosen) == types(driver.schemas().resolve(requested)) == ["struct<b:string>"]

    flat = parse_struct("offset bigint, b string, valueError string")
    options = {"flattenValue": "true", "includeErrors": "true"}
    assert types(driver.schemas(**options).resolve(flat)) == ["struct<b:string>"]
    for nothing in ("offset bigint", "value string"):
        with pytest.raises(OptionsError, match="Option 'valueSchema' is needed"):
            driver.schemas().resolve(parse_struct(nothing))
    with pytest.raises(OptionsError, match="Option 'valueSchema' is needed"):
        driver.schemas(**options).resolve(parse_struct("offset bigint"))


@pytest.mark.parametrize(
    ("log", "options"), [(None, {}), (MemoryMetadataLog(), {"valueSchemaVersion": "latest"})]
)
def test_without_a_log_each_start_reads_the_latest_version(log, options):
    driver = Driver(log)
    driver.register("a bigint")
    assert driver.version(**options) == 1
    driver.register("a bigint, b string")
    assert driver.version(**options) == 2
    assert log is None or log.latest() is None


def test_a_restart_reads_with_the_version_of_the_first_start():
    driver = Driver(MemoryMetadataLog())
    driver.register("a bigint", "a bigint, b string")
    assert driver.version() == 2
    driver.register("a bigint, b string, c string")
    assert driver.version() == 2
    assert driver.version(valueSchemaVersion="3") == 3
    driver.register("a bigint, c string")
    assert driver.version() == 3
    assert driver.log is not None
    assert [*driver.log.batch_ids()] == [0, 1]
    assert driver.log.get(0) == write_schema_versions({"value": SchemaVersion("t-value", 2)})


def test_another_subject_has_versions_of_its_own():
    driver = Driver(MemoryMetadataLog())
    driver.register("a bigint")
    driver.register("a string", "a string, b string", subject="u")
    assert driver.version() == 1
    assert driver.version(valueSubject="u") == 2


def test_of_two_queries_with_one_log_the_second_has_the_same_versions_or_fails():
    log = MemoryMetadataLog()
    first, second, third = (SchemaVersions(log) for _ in range(3))
    for versions in (first, second, third):
        assert versions.stored() == {}
    first.store({"value": SchemaVersion("t", 1)})
    second.store({"value": SchemaVersion("t", 1)})
    assert [*log.batch_ids()] == [0]
    with pytest.raises(MetadataLogError, match="Another query has stored other versions"):
        third.store({"value": SchemaVersion("t", 2)})


def test_an_error_names_a_log_that_cannot_be_read():
    log = MemoryMetadataLog()
    log.add(0, b"nonsense")
    driver = Driver(log)
    driver.register("a bigint")
    with pytest.raises(MetadataLogError, match="failed to read correct log version"):
        driver.version()


def test_an_error_names_a_missing_subject_and_its_topic():
    with pytest.raises(UnknownSchemaError, match="t-value"):
        Driver().version()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"subscribe": "t,u"}, "the query can read several topics"),
        ({"subscribePattern": "t.*"}, "the query can read several topics"),
        ({"subjectNameStrategy": "RecordNameStrategy"}, "RecordNameStrategy names subjects by"),
    ],
)
def test_a_subject_that_is_not_known_names_the_option(options, problem):
    driver = Driver()
    driver.register("a bigint", subject="s")
    with pytest.raises(OptionsError, match=f"{problem}.*: set 'valueSubject' or 'valueSchema'"):
        driver.version(**options)
    assert driver.version(valueSubject="s", **options) == 1
