"""Refusals of Spark's data source before there is a task."""

import gc
from functools import cache, partial
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_kafka.adapters.spark import stream_reader
from pyspark_kafka.adapters.spark.data_source import CatalogTableError
from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.writing.errors import SinkSchemaError

SCHEMA = StructType([StructField("value", BinaryType())])
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
KERBEROS = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
}


def test_a_writer_connects_no_client(client):
    source = DefaultSource(OPTIONS | {"client": client})
    source.writer(SCHEMA, overwrite=False)
    source.streamWriter(SCHEMA, overwrite=False)


@pytest.mark.parametrize(
    ("client", "settings", "problem"),
    [
        ("confluent", KERBEROS, "no GSSAPI provider"),
        ("confluent", {"kafka.no.such": "1"}, "'kafka.no.such'"),
        ("kafka-python", {"kafka.no.such": "1"}, "'kafka.no.such'"),
        ("none", {}, "'none' is not known"),
    ],
)
def test_what_a_client_cannot_do_is_refused_on_the_driver(client, settings, problem):
    source = DefaultSource(OPTIONS | settings | {"client": client})
    for write in (source.writer, source.streamWriter):
        with pytest.raises(OptionsError, match=problem):
            write(SCHEMA, False)


@pytest.mark.parametrize("invalid", ["kafka.compression.type", "kafka.batch.size"])
def test_settings_of_dead_letters_are_refused_on_the_driver(client, invalid):
    given = {
        **OPTIONS,
        "client": client,
        "subscribe": "t",
        "valueFormat": "json",
        "valueSchema": "id bigint",
        invalid: "rar",
    }
    del given["topic"]
    DefaultSource(given).schema()
    with pytest.raises(OptionsError, match=invalid):
        DefaultSource(given | {"deadLetterTopic": "letters"}).schema()


def test_what_a_stream_has_loaded_is_frozen_once(client, monkeypatch):
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    frozen_once = cache(stream_reader.freeze_loaded_objects.__wrapped__)
    monkeypatch.setattr(stream_reader, "freeze_loaded_objects", frozen_once)
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "client": client}
    for _ in range(2):
        reader: Any = DefaultSource(given).streamReader(SCHEMA)
        reader._stream()
        reader.stop()
        assert frozen == [True]


def test_a_table_with_columns_is_refused_by_name():
    """Spark asks for its schema only if the statement has no columns, and passes no options."""
    source = DefaultSource({"provider": "pyspark_kafka", "path": "file:/warehouse/orders"})
    reads = (source.reader, source.streamReader)
    writes = (
        partial(source.writer, overwrite=False),
        partial(source.streamWriter, overwrite=False),
    )
    for make in (*reads, *writes):
        with pytest.raises(CatalogTableError, match="CREATE TEMPORARY VIEW"):
            make(SCHEMA)


def test_two_columns_of_one_name_are_refused_before_a_task():
    schema = StructType([*SCHEMA.fields, *SCHEMA.fields])
    source = DefaultSource(OPTIONS)
    for write in (source.writer, source.streamWriter):
        with pytest.raises(SinkSchemaError, match="Column 'value' exists 2 times"):
            write(schema, False)
