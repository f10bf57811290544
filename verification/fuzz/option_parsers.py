"""The parsers of options, JAAS lines and settings, held against any texts."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pyspark_kafka.adapters.checkpoints.storages import location_of
from pyspark_kafka.adapters.confluent.settings import client_config as librdkafka_config
from pyspark_kafka.adapters.kafka_python.settings import check_settings
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import OptionsError, PysparkKafkaError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.settings_table import KAFKA_PYTHON
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import ignored_options, parse_source_options
from pyspark_kafka.domain.security.login import jaas_entry
from pyspark_kafka.domain.security.policy import AllowList, allowing, disallowing
from pyspark_kafka.domain.security.tls import pem

from .parsers import Parser

_SERVERS: Final = "kafka.bootstrap.servers=b:9092"
_SCRAM: Final = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="u" password="p\\"q" tokenauth=true;'
)
_OAUTH: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'clientId="c" clientSecret="s" scope="x" extension_a="b";'
)
_KERBEROS: Final = (
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    'keyTab="/k" principal="me@R" serviceName="kafka";'
)


def _given(content: bytes) -> dict[str, str]:
    """Return options, one on each line with an equals sign after its name."""
    lines = content.decode(errors="replace").split("\n")
    return {name: value for name, _, value in (line.partition("=") for line in lines) if name}


def _source(content: bytes) -> None:
    given = _given(content)
    for query in QueryKind:
        ignored_options(given, query)
        try:
            options = parse_source_options(given, query)
        except OptionsError:
            continue
        assert str(options.subscription)
        if options.metadata_path:
            location_of(options.metadata_path)


def _sink(content: bytes) -> None:
    for query in QueryKind:
        try:
            options = parse_sink_options(_given(content), query)
        except OptionsError:
            continue
        if options.metadata_path:
            location_of(options.metadata_path)


def _settings(content: bytes) -> None:
    given = {"bootstrap.servers": "b:9092", **_given(content)}
    for client, configure in ((KAFKA_PYTHON, check_settings), ("confluent", librdkafka_config)):
        with suppress(OptionsError):
            configure(read_java_settings(given, client))


def _jaas(content: bytes) -> None:
    module, options = jaas_entry(content.decode(errors="replace"))
    assert module is not None
    assert all(isinstance(value, str) for value in options.values())


def _pem(content: bytes) -> None:
    blocks = pem("ssl.keystore.key", content.decode(errors="replace"))
    assert pem("ssl.keystore.key", blocks) == blocks


def _policy(content: bytes) -> None:
    names, _, rest = content.decode(errors="replace").partition("\n")
    policy = disallowing(names, "VARIABLE")
    for entries in AllowList:
        policy |= allowing(entries, rest, "VARIABLE")
    policy.problems({"sasl.oauthbearer.token.endpoint.url": rest}, "kafka-python")


def _path(content: bytes) -> None:
    path = StoragePath(content.decode(errors="replace"))
    assert path.child("a").url.endswith("/a")
    assert str(path)
    location_of(path)


def _lines(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def _all() -> Iterator[Parser]:
    limits = ("maxOffsetsPerTrigger=10", "minOffsetsPerTrigger=5", "maxTriggerDelay=1m")
    storage = ("metadataPath=s3://bucket/path", 'metadataStorageOptions={"key":"k"}')
    sources = [
        _lines(_SERVERS, 'assign={"t":[0,1]}', 'startingOffsets={"t":{"0":23,"1":-2}}'),
        _lines(_SERVERS, "subscribe=t,u", "startingOffsets=earliest", *limits),
        _lines(_SERVERS, "subscribePattern=t.*[0-9]{2}", "endingTimestamp=17"),
        _lines(_SERVERS, "subscribe=t", 'startingOffsetsByTimestamp={"t":{"0":17}}'),
        _lines(_SERVERS, "subscribe=t", 'startingOffsets={"t":"latest"}', "minPartitions=3"),
        _lines(_SERVERS, "subscribe=t", *storage, "startingOffsets=group", "kafka.group.id=g"),
    ]
    yield Parser("source-options", _source, (PysparkKafkaError,), sources)
    sinks = [
        _lines(_SERVERS, "topic=t", "deliveryGuarantee=exactly-once", "metadataPath=/m"),
        _lines(_SERVERS, "kafka.acks=all", "kafka.linger.ms=5", "kafka.compression.type=zstd"),
    ]
    yield Parser("sink-options", _sink, (PysparkKafkaError,), sinks)
    server = "bootstrap.servers=b:9092"
    tls = ("security.protocol=SSL", "ssl.enabled.protocols=TLSv1.2", "ssl.cipher.suites=TLS_AES_1")
    logins = (("SCRAM-SHA-256", _SCRAM), ("OAUTHBEARER", _OAUTH), ("GSSAPI", _KERBEROS))
    settings = [_lines(server, *tls, "reconnect.backoff.ms=7")]
    for mechanism, jaas in logins:
        login = (f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}")
        settings.append(_lines(server, "security.protocol=SASL_PLAINTEXT", *login))
    yield Parser("settings", _settings, (PysparkKafkaError,), settings)
    lines = [_SCRAM.encode(), _OAUTH.encode(), _KERBEROS.encode(), b"/* x */ a.B optional; // y"]
    yield Parser("jaas", _jaas, (ValueError,), lines)
    block = b"-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n"
    yield Parser("pem", _pem, (ValueError,), [block])
    yield Parser("policy", _policy, (PysparkKafkaError,), [b"kafka.a, b\nhttps://h/p, m.f"])
    yield Parser("storage-path", _path, (ValueError,), [b"s3://k:s@bucket/a b?x=1", b"hdfs:///a"])


PARSERS: Final = tuple(_all())
