import pickle
from collections.abc import Mapping
from typing import Any, Final

import pytest

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import DisallowedOptionError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import ignored_sink_options, parse_sink_options
from pyspark_kafka.domain.options.source import ignored_options, parse_source_options
from pyspark_kafka.domain.security.policy import (
    UNRESTRICTED,
    AllowList,
    OptionPolicy,
    allowing,
    check_parsed,
    disallowing,
)
from pyspark_kafka.domain.values.registry import RegistryOptions
from pyspark_kafka.domain.values.value_options import (
    LATEST,
    Framing,
    OnNewSchema,
    ParseMode,
    SubjectNameStrategy,
    ValueOptions,
)

from .given import BASE, BOTH, SERVERS, problems, sink_problems

URL: Final = "https://registry:8081"
JSON: Final = {"valueFormat": "json", "valueSchema": "a int"}
AVRO: Final = {"valueFormat": "avro", "schema.registry.url": URL}
A_KEEPING_MODE: Final = "the mode PERMISSIVE, which keeps records that cannot be decoded"

NO_MODE: Final = "mode must be one of 'FAILFAST', 'PERMISSIVE', 'DROPMALFORMED', got 'strict'"
FAILS_FIRST: Final = (
    "Option 'deadLetterTopic' needs another mode: FAILFAST fails the query at the first record "
    "that cannot be decoded"
)


def read(given: Mapping[str, str], policy: OptionPolicy = UNRESTRICTED) -> tuple[ValueOptions, ...]:
    return parse_source_options({**BASE, **given}, QueryKind.STREAM, policy).values


def written(given: Mapping[str, str]) -> tuple[ValueOptions, ...]:
    return parse_sink_options({**SERVERS, **given}, QueryKind.STREAM, UNRESTRICTED).values


def test_values_are_bytes_by_default():
    options = parse_source_options(BASE | {"valueFormat": "BYTES"}, QueryKind.BATCH)
    assert (options.values, options.registry, options.dead_letter_topic) == ((), None, None)
    assert parse_sink_options(SERVERS, QueryKind.BATCH).values == ()


def test_the_least_that_a_format_needs():
    assert read({"valueFormat": " JSON "}) == (ValueOptions("value", "json"),)
    assert written({"keyFormat": "avro"}) == (ValueOptions("key", "avro"),)


def test_all_options_of_a_read():
    given = {
        "keyFormat": "json",
        "keySchema": "a int",
        "keyFraming": "none",
        "flattenKey": "true",
        "allowComments": "true",
        "valueFormat": "protobuf",
        "valueMessage": "shop.Order",
        "valueFraming": "Confluent-Header",
        "valueSubject": "orders",
        "valueSchemaVersion": "3",
        "subjectNameStrategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        "emit.default.values": "true",
        "mode": "permissive",
        "columnNameOfCorruptRecord": "bad",
        "includeErrors": "true",
        "deadLetterTopic": "bad",
        "onNewSchema": "fail",
        "schema.registry.url": URL,
        "schema.registry.basic.auth.user.info": "ada:hush",
    }
    options = parse_source_options(BASE | given, QueryKind.STREAM, UNRESTRICTED)
    shared: dict[str, Any] = {
        "subject_name_strategy": SubjectNameStrategy.RECORD_NAME,
        "mode": ParseMode.PERMISSIVE,
        "include_errors": True,
        "on_new_schema": OnNewSchema.FAIL,
    }
    assert options.values == (
        ValueOptions(
            "key",
            "json",
            schema="a int",
            framing=Framing.NONE,
            corrupt_record_column="bad",
            flatten=True,
            settings=(("allowcomments", "true"),),
            **shared,
        ),
        ValueOptions(
            "value",
            "protobuf",
            message="shop.Order",
            framing=Framing.CONFLUENT_HEADER,
            subject="orders",
            schema_version=3,
            settings=(("emit.default.values", "true"),),
            **shared,
        ),
    )
    assert options.registry == RegistryOptions(URL, (("basic.auth.user.info", "ada:hush"),))
    assert options.dead_letter_topic == "bad"
    assert "hush" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301
    assert ignored_options(given, QueryKind.BATCH) == []


def test_options_of_a_read_are_ignored_by_a_write():
    given = {
        **AVRO,
        "mode": "nonsense",
        "includeErrors": "true",
        "deadLetterTopic": "x",
        "valueSchemaVersion": "3",
        "flattenValue": "true",
        "subjectNameStrategy": "TopicRecordNameStrategy",
    }
    assert written(given) == (
        ValueOptions(
            "value",
            "avro",
            framing=Framing.CONFLUENT,
            schema_version=3,
            subject_name_strategy=SubjectNameStrategy.TOPIC_RECORD_NAME,
        ),
    )
    assert sorted(ignored_sink_options(given, QueryKind.STREAM)) == [
        "deadLetterTopic",
        "flattenValue",
        "includeErrors",
        "mode",
    ]


def test_options_of_the_registration_of_a_write():
    assert [one.auto_register_schemas for one in written(AVRO)] == [True]
    assert [one.use_latest_version for one in written(AVRO)] == [False]
    given = {"autoRegisterSchemas": "false", "useLatestVersion": "true"}
    [one] = written(AVRO | given)
    assert (one.auto_register_schemas, one.use_latest_version) == (False, True)
    assert sink_problems(SERVERS | JSON | given, QueryKind.STREAM) == needs(A_URL, *given)
    assert sink_problems(SERVERS | given, QueryKind.STREAM) == needs(A_FORMAT, *given)


def test_options_of_the_formats_of_a_write():
    [one] = written(JSON | {"ignoreNullFields": "false"})
    assert one.settings == (("ignorenullfields", "false"),)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, ParseMode.FAILFAST),
        ({"includeErrors": "false"}, ParseMode.FAILFAST),
        ({"includeErrors": "true"}, ParseMode.PERMISSIVE),
        ({"columnNameOfCorruptRecord": "c"}, ParseMode.PERMISSIVE),
        ({"deadLetterTopic": "d"}, ParseMode.DROPMALFORMED),
        ({"deadLetterTopic": "d", "includeErrors": "true"}, ParseMode.PERMISSIVE),
        ({"deadLetterTopic": "d", "mode": "PERMISSIVE"}, ParseMode.PERMISSIVE),
        ({"mode": "dropMalformed"}, ParseMode.DROPMALFORMED),
    ],
)
def test_the_mode_is_the_one_that_the_other_options_need(given, mode):
    assert [one.mode for one in read(JSON | given)] == [mode]


def test_framing_is_confluents_where_there_is_a_registry():
    given = AVRO | {"keyFormat": "json", "keyFraming": "NONE"}
    assert [one.framing for one in read(given)] == [Framing.NONE, Framing.CONFLUENT]


def test_framing_without_a_registry_is_for_reads_only():
    given = JSON | {"valueFraming": "confluent"}
    assert [one.framing for one in read(given)] == [Framing.CONFLUENT]
    assert sink_problems(SERVERS | given, QueryKind.STREAM) == (
        "valueFraming 'confluent' needs 'schema.registry.url'",
    )


@pytest.mark.parametrize("framing", [Framing.APICURIO, Framing.APICURIO_GLOBAL])
def test_the_framings_of_apicurio_are_for_reads(framing):
    given = AVRO | {"valueFraming": framing.value}
    assert [one.framing for one in read(given)] == [framing]
    [problem] = sink_problems(SERVERS | given, QueryKind.STREAM)
    assert problem.startswith(
        f"valueFraming '{framing.value}' is for reads. Write with 'confluent'"
    )


@pytest.mark.parametrize(
    ("given", "version"),
    [({}, None), ({"valueSchemaVersion": "Latest"}, LATEST), ({"valueSchemaVersion": " 7 "}, 7)],
)
def test_a_version_is_a_number_or_the_latest_one(given, version):
    assert [one.schema_version for one in read(AVRO | given)] == [version]


@pytest.mark.parametrize("path", ["/s/o.avsc", "/s/O.AVSC", "s3://s/o.desc", "/s/o.pb", "/o.proto"])
def test_the_path_of_a_schema_is_kept_for_the_driver(path):
    given = {"valueFormat": "avro", "valueSchema": path, "metadataStorageOptions": '{"key":"k"}'}
    assert [one.schema for one in read(given | {"valueSchema": '"string"'})] == ['"string"']
    [value] = read(given)
    assert (value.schema, value.schema_file) == (None, StoragePath(path, '{"key": "k"}'))


def test_a_formats_options_are_passed_without_its_name():
    given = {"valueFormat": "thrift", "thrift.protocol": "Compact", "keyFormat": "json"}
    assert [one.settings for one in read(given)] == [(), (("protocol", "Compact"),)]
    assert [one.settings for one in written(given)] == [(), (("protocol", "Compact"),)]
    assert problems(BASE | {"thrift.protocol": "x"}, QueryKind.BATCH) == (
        "Option 'thrift.protocol' is not known.",
    )


def needs(needed: str, *names: str) -> tuple[str, ...]:
    return tuple(f"Option '{name}' needs {needed}" for name in names)


A_FORMAT: Final = "'valueFormat' or 'keyFormat'"
A_URL: Final = "'schema.registry.url'"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"valueFormat": "a b"}, ("valueFormat must be the name of a format, got 'a b'",)),
        (JSON | {"valueSchema": "a in"}, ("Option 'valueSchema': the type 'in' is not known",)),
        (
            {"valueFormat": "avro", "valueSchema": "s3://k:SECRET@b/orders"},
            ("Option 'valueSchema': the file of a schema must end with .avsc, .desc, .pb, .proto",),
        ),
        ({"valueSchema": "a int"}, needs("'valueFormat'", "valueSchema")),
        (
            JSON | {"keyFraming": "none", "flattenKey": "true"},
            needs("'keyFormat'", "keyFraming", "flattenKey"),
        ),
        (
            {"mode": "PERMISSIVE", "deadLetterTopic": "d", "onNewSchema": "fail"},
            needs(A_FORMAT, "mode", "deadLetterTopic", "onNewSchema"),
        ),
        (JSON | {"mode": "strict"}, (NO_MODE,)),
        (JSON | {"valueMessage": "M"}, needs("the format 'protobuf'", "valueMessage")),
        (JSON | {"enums.as.ints": "1"}, needs("the format 'protobuf'", "enums.as.ints")),
        (JSON | {"allowComments": "x"}, ("Option 'allowComments': For input string: \"x\"",)),
        (
            JSON | {"allowComment": "true"},
            ("Option 'allowcomment' is not known. Did you mean 'allowComments'?",),
        ),
        (
            {"valueFormat": "avro", "columnNameOfCorruptRecord": "c"},
            needs("the format 'json'", "columnNameOfCorruptRecord"),
        ),
        (JSON | {"deadLetterTopic": "d", "mode": "FAILFAST"}, (FAILS_FIRST,)),
        (
            JSON | {"mode": "FAILFAST", "includeErrors": "true", "columnNameOfCorruptRecord": "c"},
            needs(A_KEEPING_MODE, "includeErrors", "columnNameOfCorruptRecord"),
        ),
        (
            JSON | {"deadLetterTopic": "t"},
            ("deadLetterTopic 't' must not be a topic that the query reads",),
        ),
        (
            JSON | {"includeValue": "false"},
            needs("the column 'value', and 'includeValue' is false", "valueFormat"),
        ),
        (
            JSON
            | {"valueFraming": "confluent", "onNewSchema": "fail", "valueSubject": "s"}
            | {"valueSchemaVersion": "1", "schema.registry.bearer.auth.token": "hush"},
            needs(
                A_URL,
                "schema.registry.bearer.auth.token",
                "onNewSchema",
                "valueSubject",
                "valueSchemaVersion",
            ),
        ),
        (
            {"valueFormat": "avro", "valueSchemaVersion": "0"},
            (*needs(A_URL, "valueSchemaVersion"), "valueSchemaVersion must be positive"),
        ),
    ],
)
@BOTH
def test_all_problems_of_a_read_are_reported_together(given, expected, query):
    assert problems(BASE | given, query) == expected


def test_all_problems_of_a_write_are_reported_together():
    given = {"valueSchema": "a int", "schema.registry.url": "https://r", "mode": "x"}
    allowed = allowing(AllowList.URLS, "https://r", "L")
    with pytest.raises(OptionsError) as caught:
        parse_sink_options(SERVERS | given, QueryKind.BATCH, allowed)
    assert caught.value.problems == (
        *needs("'valueFormat'", "valueSchema"),
        *needs(A_FORMAT, "schema.registry.url"),
    )
    assert sink_problems(
        SERVERS | {"valueFormat": "json", "valueSchema": "x"}, QueryKind.BATCH
    ) == ("Option 'valueSchema': the schema needs a type at its end",)


@pytest.mark.parametrize("one", [{"valueSchema": "/s/o.avsc"}, {"schema.registry.url": "http://r"}])
def test_files_and_registries_need_no_permission(one):
    """Neither on the driver nor in tasks."""
    given = BASE | {"valueFormat": "avro"} | one
    check_parsed(parse_source_options(given, QueryKind.BATCH), OptionPolicy())


def test_settings_of_a_registry_can_be_forbidden():
    policy = disallowing("schema.registry.ssl.keystore.location, schema.registry.url", "L")
    given = AVRO | {"schema.registry.ssl.keystore.location": "/k"}
    expected = "The Kafka option 'schema.registry.ssl.keystore.location' is not allowed"
    with pytest.raises(DisallowedOptionError, match=expected):
        parse_source_options(BASE | given, QueryKind.BATCH, policy | UNRESTRICTED)
    with pytest.raises(DisallowedOptionError, match=expected):
        parse_sink_options(SERVERS | given, QueryKind.BATCH, policy | UNRESTRICTED)
    options = parse_source_options(BASE | given, QueryKind.BATCH, UNRESTRICTED)
    with pytest.raises(DisallowedOptionError, match=expected):
        check_parsed(options, policy | UNRESTRICTED)
