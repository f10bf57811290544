"""The data source, from which Spark makes readers and writers.

Spark starts a process for each step of a query, and each of them imports this module: to find the
format, to make the source, to plan, and to read or write. Each step imports what it needs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.datasource import DataSource

from ...domain.errors import FactsError, Fault, Recovery
from .tasks import strip_tracebacks

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from ...application.use_cases import UseCases
    from ...domain.options.option import QueryKind
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.values.typed_schema import TypedSchema
    from .tasks import Columns

log = logging.getLogger("pyspark_kafka")

FORMAT = "pyspark_kafka"

_PROVIDER: Final = "provider"
"""A property of tables that Spark's catalog adds to their options."""


class SaveModeError(FactsError, ValueError):
    """A batch query is to overwrite a topic: Kafka can only be appended to."""

    condition = "KAFKA_SAVE_MODE"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    # The words of Spark's KafkaSourceProvider.createRelation.
    text = (
        "Save mode {mode} not allowed for Kafka. "
        "Allowed save modes are Append and ErrorIfExists (default)."
    )
    mode: str


class CatalogTableError(FactsError, ValueError):
    """A table in Spark's catalog is to be a topic: Spark passes no options to such a table."""

    condition = "KAFKA_CATALOG_TABLE"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "Spark does not pass the options of a table in its catalog to a Python data source. "
        "Use CREATE TEMPORARY VIEW ... USING pyspark_kafka OPTIONS (...) instead of CREATE "
        "TABLE: such a view can be read, and written with INSERT INTO ... BY NAME."
    )


class KafkaDataSource(DataSource):
    """Kafka as a Python data source; a subclass defines its use cases."""

    use_cases: ClassVar[UseCases]

    _typed: TypedSchema | None = None
    """The result of ``schema``; Spark pickles it with this object before it asks for a reader."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Return the JVM connector's schema, less the columns that options leave out.

        Spark calls this in ``load()``, before it knows whether the query is a stream, and never for
        a write (``DataFrameReader``, ``DataStreamReader``). With a schema of the user's it is not
        called: then the options are first checked by ``reader`` or ``streamReader``.

        :raises CatalogTableError: if it is for a table in Spark's catalog; for a table with
            columns, the other methods raise it.
        :raises DisallowedOptionError: if the operator forbids an option.
        :raises OptionsError: if neither a batch nor a streaming query accepts the options, there is
            no such client, or it does not know a setting.
        """
        from ...domain.options.source import parse_any_source_options
        from .schema import spark_schema, typed_spark_schema

        with strip_tracebacks():
            self._refuse_table()
            options = parse_any_source_options(self.options, self.use_cases.option_policy())
            self.use_cases.check_client(options)
            if not options.values:
                return spark_schema(options.projection)
            with self.use_cases.driver(options) as driver:
                self._typed = driver.value_schemas().resolve()
            return typed_spark_schema(self._typed)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader; ``schema`` is from ``schema()`` or the user's own."""
        from ...domain.options.option import QueryKind
        from .batch_reader import KafkaBatchReader

        with strip_tracebacks():
            options = self._parse(QueryKind.BATCH)
            return KafkaBatchReader(self.use_cases, options, self._columns(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a micro-batch reader; ``schema`` and the error are as in ``reader``."""
        from ...domain.options.option import QueryKind
        from ...domain.values.typed_schema import TypedSchema
        from .spark_api import check_limits
        from .stream_reader import stream_reader_class

        with strip_tracebacks():
            options = self._parse(QueryKind.STREAM)
            columns = self._columns(options, schema)
            check_limits(options)
            if isinstance(columns, TypedSchema):
                with self.use_cases.driver(options) as driver:
                    driver.value_schemas().keep(columns)
            return stream_reader_class()(self.use_cases, options, columns)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a batch writer.

        :raises OptionsError: if options are invalid, or the client does not know a setting.
        :raises SaveModeError: if the mode is to overwrite.
        :raises SinkSchemaError: if rows of this schema cannot be converted to records.
        :raises IncompatibleSchemaError: if the registry refuses the schema of a column.
        """
        from ...domain.options.option import QueryKind
        from .sink_writers import KafkaBatchWriter

        with strip_tracebacks():
            if overwrite:
                raise SaveModeError("Overwrite")
            return KafkaBatchWriter(self.use_cases, self._parse_sink(schema, QueryKind.BATCH))

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002  # Spark's name
    ) -> DataSourceStreamWriter:
        """Return a micro-batch writer.

        ``overwrite`` is true in complete mode: each batch is the whole result, and is appended, as
        by the JVM connector.

        :raises SinkSchemaError: if rows of this schema cannot be converted to records.
        """
        from ...domain.options.option import QueryKind
        from .sink_writers import KafkaStreamWriter

        with strip_tracebacks():
            return KafkaStreamWriter(self.use_cases, self._parse_sink(schema, QueryKind.STREAM))

    def _parse_sink(self, schema: StructType, query: QueryKind) -> SinkOptions:
        from ...domain.options.sink import ignored_sink_options, parse_sink_options
        from ...domain.writing.sink_schema import check_sink_schema
        from .schema import sink_types

        self._refuse_table()
        for name in ignored_sink_options(self.options, query):
            log.warning("%s option ignored in %s writes", name, query.value)
        options = parse_sink_options(self.options, query, self.use_cases.option_policy())
        columns = {field.name: field.dataType.simpleString() for field in schema.fields}
        formats = [value.column for value in options.values]
        check_sink_schema(
            columns,
            has_topic_option=options.topic is not None,
            encoded=formats,
            names=schema.fieldNames(),
        )
        self.use_cases.check_client(options)
        if not options.values:
            return options
        with self.use_cases.sink(options) as sink:
            return sink.sink_encoding().prepare(sink_types(schema, formats))

    def _columns(self, options: SourceOptions, schema: StructType) -> Columns:
        """Return the columns of a read; typed ones have all that tasks need to decode them."""
        from .schema import projection_of, requested_type, typed_spark_schema

        if not options.values:
            return projection_of(schema)
        if self._typed is None or typed_spark_schema(self._typed) != schema:
            with self.use_cases.driver(options) as driver:
                self._typed = driver.value_schemas().resolve(requested_type(schema))
        return self._typed

    def _refuse_table(self) -> None:
        if _PROVIDER in self.options:
            raise CatalogTableError

    def _parse(self, query: QueryKind) -> SourceOptions:
        from ...domain.options.source import ignored_options, parse_source_options

        self._refuse_table()
        for name in ignored_options(self.options, query):
            log.warning("%s option ignored in %s queries", name, query.value)
        return parse_source_options(self.options, query, self.use_cases.option_policy())
