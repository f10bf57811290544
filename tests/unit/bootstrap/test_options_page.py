"""Every option on the page is read by each kind of query that the page names for it.

The settings of Kafka's clients have tests of their own, by the client.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from pyspark_kafka import continuous
from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.adapters.spark.spark_api import HAS_READ_LIMITS
from pyspark_kafka.adapters.values.avro import value_format as avro
from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.adapters.values.json.value_format import parse_json_options
from pyspark_kafka.adapters.values.protobuf.spark_types import protobuf_settings
from pyspark_kafka.bootstrap import checks, container
from pyspark_kafka.bootstrap import continuous as continuous_queries
from pyspark_kafka.bootstrap.pool import POOL
from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import value_table
from pyspark_kafka.domain.options.option import REGISTRY_PREFIX, Option, QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.options.sink_table import SINK_TABLE
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.options.source_table import STRATEGIES, TABLE
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.registry import (
    REGISTRY_SETTINGS,
    Schema,
    SchemaType,
    registry_settings,
)
from pyspark_kafka.domain.values.value_options import ValueOptions

Options = dict[str, str]
SERVERS: Final = {"kafka.bootstrap.servers": "dummy:9092"}
SUBSCRIBED: Final = {**SERVERS, "subscribe": "dummy"}
AVRO: Final = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
LOGIN: Final = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "OAUTHBEARER"}
PEM: Final = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"
WIDER: Final = AVRO.replace("int", "long")
SCHEMAS: Final = {
    "json": "a int",
    "avro": AVRO,
    "protobuf": 'syntax = "proto3"; message R { int32 a = 1; } message S { int32 a = 1; }',
}


def typed(name: str, column: str = "value") -> Options:
    return {f"{column}Format": name, f"{column}Schema": SCHEMAS[name], f"{column}Framing": "none"}


REGISTRY: Final = {f"{REGISTRY_PREFIX}url": "http://registry"}
REGISTERED: Final = typed("avro") | REGISTRY


COMPATIBLE: Final = "groupIdPrefix"
"""Accepted, and has no effect, as the page says."""


@dataclass(frozen=True)
class Case:
    """A value that has an effect, what it needs for that, and a value that is refused."""

    value: str | None = "7"
    needed: Options = field(default_factory=dict)
    refused: str | None = None
    """``None`` if the parser of the table knows one, or none is refused."""


CASES: Final[dict[str, Case]] = {
    "allowLimitsWithoutTrigger": Case("true"),
    "assign": Case('{"t":[0]}', refused="x"),
    "avroSchema": Case(WIDER, refused="x"),
    "checkpointLocation": Case("/c"),
    "client": Case("confluent", refused="x"),
    "clientRackFrom": Case("environment"),
    "columnNameOfCorruptRecord": Case("c", typed("json")),
    "commitOffsetsToGroup": Case("g"),
    "dateFormat": Case("yyyy", refused="EEE"),
    "deadLetterTopic": Case("d", typed("json")),
    "deliveryGuarantee": Case("exactly-once", {"metadataPath": "/a"}),
    "endingOffsets": Case('{"dummy":{"0":7}}'),
    "endingOffsetsByTimestamp": Case('{"dummy":{"0":7}}'),
    COMPATIBLE: Case("p"),
    "includeErrors": Case("true", typed("json")),
    "keyFormat": Case("bytes", typed("json") | {"keyFormat": "avro"} | REGISTRY),
    "locale": Case(None, refused="de-DE"),
    "maxTriggerDelay": Case("7s", {"minOffsetsPerTrigger": "7"}),
    "metadataPath": Case("/a"),
    "metadataStorageOptions": Case('{"a":1}', {"metadataPath": "/a"}),
    "maxNestingDepth": Case(refused="x"),
    "maxNumLen": Case(refused="x"),
    "mode": Case("PERMISSIVE", typed("json")),
    "onNewSchema": Case("fail", {"valueFormat": "avro"} | REGISTRY),
    "pushFilters": Case(None, refused="true"),
    "recursive.fields.max.depth": Case(refused="x"),
    "recursiveFieldMaxDepth": Case(refused="x"),
    "stableIdentifierPrefixForUnionType": Case(
        needed={"enableStableIdentifiersForUnionType": "true"}
    ),
    "startingOffsets": Case('{"dummy":{"0":7}}'),
    "startingOffsetsByTimestamp": Case('{"dummy":{"0":7}}'),
    "startingOffsetsByTimestampStrategy": Case("latest", {"startingTimestamp": "7"}),
    "startingOffsetsGroupFallback": Case(
        "earliest", {"startingOffsets": "group", "kafka.group.id": "g"}
    ),
    "subjectNameStrategy": Case("RecordNameStrategy", REGISTERED),
    "subscribe": Case("t", refused=","),
    "subscribePattern": Case("t", refused="("),
    "timeZone": Case("+01:00", refused="Nowhere"),
    "timestampFormat": Case("yyyy", refused="EEE"),
    "timestampNTZFormat": Case("yyyy", refused="EEE"),
    "tokenProvider": Case(None, LOGIN),
    "topic": Case("u"),
    "transactionalIdPrefix": Case("p"),
    "valueFormat": Case("bytes", typed("json", "key") | {"valueFormat": "avro"} | REGISTRY),
    **{
        f"{column}{name}": replace(case, needed=typed(form, column) | case.needed)
        for column in ("key", "value")
        for name, form, case in (
            ("Framing", "avro", Case("confluent", REGISTRY)),
            ("Message", "protobuf", Case("S")),
            ("Schema", "avro", Case(WIDER)),
            ("Subject", "avro", Case("s", REGISTRY)),
            ("SchemaVersion", "avro", Case("7", REGISTRY)),
        )
    },
    "flattenKey": Case("true", typed("json", "key")),
    "flattenValue": Case("true", typed("json")),
    "autoRegisterSchemas": Case("false", REGISTERED),
    "useLatestVersion": Case("true", REGISTERED),
    f"{REGISTRY_PREFIX}url": Case("http://other", REGISTERED),
    **{
        f"{REGISTRY_PREFIX}{name}": replace(
            case,
            needed=REGISTERED
            | {f"{REGISTRY_PREFIX}{key}": text for key, text in case.needed.items()},
        )
        for name, case in {
            **{name: Case() for name in REGISTRY_SETTINGS},
            "basic.auth.credentials.source": Case(None, refused="x"),
            "basic.auth.user.info": Case("u:p", refused="x"),
            "bearer.auth.credentials.source": Case(None, refused="x"),
            "bearer.auth.token": Case(refused=" "),
            "bearer.auth.logical.cluster": Case(refused=" "),
            "bearer.auth.identity.pool.id": Case(refused=" "),
            "request.timeout.ms": Case(refused="x"),
            "ssl.cipher.suites": Case("TLS_AES_128_GCM_SHA256", refused="TLS_X"),
            "ssl.enabled.protocols": Case("TLSv1.3", refused="x"),
            "ssl.endpoint.identification.algorithm": Case("", refused="x"),
            "ssl.keystore.certificate.chain": Case(None, {"ssl.keystore.key": PEM}, "x"),
            "ssl.keystore.key": Case(None, {"ssl.keystore.certificate.chain": PEM}, "x"),
            "ssl.keystore.password": Case(needed={"ssl.keystore.location": "/k"}),
            "ssl.keystore.type": Case(None, refused="x"),
            "ssl.truststore.certificates": Case(PEM, refused="x"),
            "ssl.truststore.password": Case(needed={"ssl.truststore.location": "/t"}),
            "ssl.truststore.type": Case(None, refused="x"),
        }.items()
    },
}
"""Any other option needs nothing but its format, and has the other value if it is a flag."""

TABLES: Final = {
    "read": ((*TABLE, *value_table.TABLE), value_table.FORMAT_OPTIONS),
    "write": ((*SINK_TABLE, *value_table.SINK_TABLE), value_table.SINK_FORMAT_OPTIONS),
}
KINDS: Final = {
    "batch": QueryKind.BATCH,
    "micro-batch": QueryKind.STREAM,
    "continuous": QueryKind.STREAM,
}
BY_ARGUMENT: Final = ("write", "continuous", "checkpointLocation")
"""``continuous.start`` sets this option."""

WITHOUT_EFFECT: Final = {
    ("write", "batch", "deliveryGuarantee"): "a batch refuses the other value",
    ("write", "batch", "metadataStorageOptions"): "they are for files of schemas, which are read",
}


def page() -> Iterator[tuple[str, str, str]]:
    for direction, (table, _) in TABLES.items():
        shared = {f"{REGISTRY_PREFIX}{name}": frozenset(QueryKind) for name in REGISTRY_SETTINGS}
        for name, queries in ({option.name: option.queries for option in table} | shared).items():
            rows = ((direction, kind, name) for kind in KINDS if KINDS[kind] in queries)
            yield from (row for row in rows if row != BY_ARGUMENT)


def case_of(direction: str, name: str) -> Case:
    """Return what is known of an option, with a text that its parser refuses."""
    table, formats = TABLES[direction]
    option = next((option for option in table if option.name == name), None)
    case = CASES.get(name, Case())
    if option is None:
        return case
    needs = [typed(each) for each, options in formats.items() if option in options]
    if isinstance(option.default, bool) and name not in CASES:
        case = replace(case, value=str(not option.default).lower())
    refused = case.refused or next((text for text in ("", "?") if is_refused(option, text)), None)
    return replace(case, needed=(needs[0] if needs else {}) | case.needed, refused=refused)


def is_refused(option: Option[Any], text: str) -> bool:
    try:
        option.parse(text)
    except ValueError:
        return True
    return False


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Let all registries have the same schemas; none looks for plug-ins, which takes long."""
    made = MemorySchemaRegistry()
    for subject in ("dummy-value", "dummy-key"):
        made.register(subject, Schema(SchemaType.AVRO, AVRO))
    monkeypatch.setattr(container, "open_registry", lambda _: made)
    monkeypatch.setattr(checks, "has_plugins", lambda _: False)
    yield
    POOL.close()


LIMITS: Final = {"maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"}
ALLOWED: Final = {"allowLimitsWithoutTrigger": "true"}
"""The option that older releases of Spark need for limits."""


@pytest.fixture
def plan(monkeypatch, tmp_path):
    """Return what plans a query as Spark does, or ``continuous.start``, and returns its options."""

    def execution(*given: Any, **_: object) -> Any:
        return given[4](0, 0)

    def started(
        _identity: object, program: Any, _progress: object, close: Callable[[], None]
    ) -> Any:
        close()
        return program

    monkeypatch.setattr(continuous_queries, "ContinuousExecution", execution)
    monkeypatch.setattr(continuous_queries, "ContinuousQuery", started)

    def planned(direction: str, kind: str, given: Options) -> SourceOptions | SinkOptions:
        is_limited = not HAS_READ_LIMITS and kind == "micro-batch" and given.keys() & LIMITS
        spark: Any = DefaultSource(CaseInsensitiveDict(given | ALLOWED if is_limited else given))
        rows = StructType().add("topic", StringType())
        for column in ("key", "value"):
            struct = StructType().add("a", IntegerType())
            rows = rows.add(
                column, BinaryType() if given.get(f"{column}Format", "bytes") == "bytes" else struct
            )
        match kind, direction:
            case "batch", "read":
                return spark.reader(spark.schema())._options
            case "batch", _:
                return spark.writer(rows, False)._options
            case "micro-batch", "read":
                return spark.streamReader(spark.schema())._options
            case "micro-batch", _:
                return spark.streamWriter(rows, False)._options
        client = {"client": given["client"]} if "client" in given else {}
        is_read = direction == "read"
        program: Any = continuous.start(
            None,
            lambda _: None,
            source=given if is_read else SUBSCRIBED | client,
            sink=SERVERS | client | {"topic": "t"} if is_read else given,
            checkpointLocation=str(tmp_path),
        )
        # The types of rows are known in tasks only, and JSON has no other check of its options.
        if {given.get(f"{column}Format", "json") for column in ("key", "value")} == {"json"}:
            with program._encoding() as encode:
                numbers = pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))
                encode and encode(pa.record_batch({"key": numbers, "value": numbers}))
        return program.source if is_read else program.sink

    return planned


def effects(options: SourceOptions | SinkOptions) -> object:
    """Return what the options do; those of a format and a registry, as these read them."""
    values = [replace(value, settings=()) for value in options.values]
    bare: Any = replace(options, values=tuple(values), registry=None)
    if isinstance(bare, SinkOptions):
        bare = replace(bare, encoded=())
    known = options.registry and registry_settings(options.registry)
    return bare, known, [settings(options, value) for value in options.values]


def settings(options: SourceOptions | SinkOptions, value: ValueOptions) -> object:
    match value.format:
        case "json" if isinstance(options, SinkOptions):
            encoder = JsonEncoder(value, parse_struct("a int"))
            return encoder._program._settings, encoder._time_zone
        case "json":
            return repr(parse_json_options(value))
        case "avro":
            registered = Schema(SchemaType.AVRO, AVRO)
            return avro._type_options(value), avro._reader(value, registered)
        case _:
            return protobuf_settings(value)


@pytest.mark.parametrize(("direction", "kind", "name"), list(page()))
def test_an_option_is_read(plan, direction, kind, name):
    """An option changes what the query does, and the error of a bad value names it."""
    case = case_of(direction, name)
    base = SERVERS if direction == "write" else SUBSCRIBED
    is_strategy = name in {option.name for option in STRATEGIES}
    given = (SERVERS if is_strategy else base) | case.needed
    if case.value is not None and (direction, kind, name) not in WITHOUT_EFFECT:
        plain = plan(direction, kind, base | case.needed)
        changed = plan(direction, kind, given | {name: case.value})
        assert (effects(changed) == effects(plain)) is (name == COMPATIBLE)
    if case.refused is not None:
        with pytest.raises(OptionsError, match=rf"(?i)\b{re.escape(name)}\b"):
            plan(direction, kind, given | {name: case.refused})
