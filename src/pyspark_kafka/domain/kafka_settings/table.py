"""Every setting of Kafka's Java clients, once.

The checks of reads and writes, the translations for kafka-python and librdkafka and the reference
page (``docs/options.md``) are made from this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..option_values import INT32_MAX, INT64_MAX, positive_integer
from .setting import (
    BOOLEAN,
    Ignored,
    NeedsJvm,
    Number,
    ProducerField,
    Refused,
    Setting,
    Text,
    Values,
    at_least,
    between,
    exactly,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
GROUP_ID: Final = "group.id"
ISOLATION_LEVEL: Final = "isolation.level"
READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
API_TIMEOUT_MS: Final = "default.api.timeout.ms"
DEFAULT_API_TIMEOUT_MS: Final = 30_000
"""Half of Java's default: a wrong address should be reported within less than a minute."""

ALL_REPLICAS: Final = -1
"""``acks`` of a record that is acknowledged once all in-sync replicas have it."""

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
ROUND_ROBIN: Final = "round-robin"
"""The partitioner that takes one partition after the other, whatever the key."""

UNIFORM_STICKY: Final = "org.apache.kafka.clients.producer.UniformStickyPartitioner"
_ROUND_ROBIN_CLASS: Final = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
_DEFAULT_PARTITIONER: Final = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"


def _partitioner(text: str) -> str | None:
    if text in ("", _DEFAULT_PARTITIONER, UNIFORM_STICKY):
        return None
    if text == _ROUND_ROBIN_CLASS:
        return ROUND_ROBIN
    module, _, function = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        raise ValueError(text)
    return text


_GZIP_LEVELS: Final = between(1, 9)
_HOUR_MS: Final = 3_600_000

_NO_CLASS: Final = "no Java class runs here"
OAUTH: Final = NeedsJvm(
    f"{_NO_CLASS}. For OAuth, use the client 'confluent' with "
    "'kafka.sasl.mechanism' OAUTHBEARER, 'kafka.sasl.oauthbearer.method' oidc, and "
    "'kafka.sasl.oauthbearer.client.id', '.client.secret', '.scope' and '.token.endpoint.url'"
)
MSK_IAM: Final = NeedsJvm(
    f"{_NO_CLASS}. For AWS MSK IAM, use the client 'kafka-python' with the package "
    "'botocore', 'kafka.sasl.mechanism' AWS_MSK_IAM and no 'kafka.sasl.jaas.config'"
)
LOGIN_MODULE: Final = NeedsJvm(f"{_NO_CLASS}; use the login module of PLAIN, SCRAM or Kerberos")

_NO_GROUP: Final = Ignored("no consumer group is joined")
_NO_COMMIT: Final = Ignored("the client commits no offsets")
_NO_METRICS: Final = Ignored("the client's metrics are not collected; Spark shows the query's")
_NO_WRITE: Final = Ignored("it is a producer's setting, and this is a read")
_NO_LOGIN_THREAD: Final = Ignored("it belongs to the login thread of a JVM")
_NO_JVM_TLS: Final = Ignored("it names a class of a JVM; TLS is OpenSSL's here")
_BROKER_SIDE: Final = Ignored("it belongs to a broker, which validates tokens")
_REBOOTSTRAP: Final = Ignored("kafka-python always returns to the bootstrap servers")
_TICKET_CACHE: Final = Ignored("kafka-python uses the ticket cache as it is")
_CONNECT_TIMEOUT: Final = Ignored("kafka-python's consumer has no such setting")


def _each(names: Iterable[str], **effect: Any) -> Iterable[Setting]:
    return (Setting(name, **effect) for name in names)


def _producer(
    name: str,
    values: Values[Any],
    field: str = "",
    java_default: str = "",
    librdkafka: Number | None = None,
) -> Setting:
    return Setting(
        name,
        read=_NO_WRITE,
        write=ProducerField(values, field, java_default),
        librdkafka=librdkafka,
    )


SETTINGS: Final[tuple[Setting, ...]] = (
    # Spark's own refusals first: in the order and the words of KafkaSourceProvider's
    # validateGeneralOptions and kafkaParamsForProducer.
    Setting(
        "auto.offset.reset",
        read=Refused("""
Kafka option 'auto.offset.reset' is not supported.
Instead set the source option 'startingoffsets' to 'earliest' or 'latest'
to specify where to start. Structured Streaming manages which offsets are consumed
internally, rather than relying on the kafkaConsumer to do it. This will ensure that no
data is missed when new topics/partitions are dynamically subscribed. Note that
'startingoffsets' only applies when a new Streaming query is started, and
that resuming will always pick up from where the query left off. See the docs for more
details.
         """),
    ),
    Setting(
        "key.deserializer",
        read=Refused(
            "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte "
            "arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly "
            "deserialize the keys."
        ),
    ),
    Setting(
        "value.deserializer",
        read=Refused(
            "Kafka option 'value.deserializer' is not supported as values are deserialized as "
            "byte arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly "
            "deserialize the values."
        ),
    ),
    Setting(
        "enable.auto.commit",
        read=Refused("Kafka option 'enable.auto.commit' is not supported"),
    ),
    Setting(
        "key.serializer",
        write=Refused(
            "Kafka option 'key.serializer' is not supported as keys are serialized with "
            "ByteArraySerializer."
        ),
        jvm=NeedsJvm(f"{_NO_CLASS}; keys are bytes"),
    ),
    Setting(
        "value.serializer",
        write=Refused(
            "Kafka option 'value.serializer' is not supported as value are serialized with "
            "ByteArraySerializer."
        ),
        jvm=NeedsJvm(f"{_NO_CLASS}; values are bytes"),
    ),
    Setting(
        "interceptor.classes",
        read=Refused("Kafka option 'interceptor.classes' is not supported"),
        write=Refused(
            "Kafka option 'interceptor.classes' is not supported: no Java class runs here; "
            "change rows before they are written."
        ),
    ),
    Setting(
        "transactional.id",
        read=_NO_WRITE,
        write=Refused(
            "Kafka option 'transactional.id' is not supported: set the option "
            "'deliveryGuarantee' to 'exactly-once', and 'transactionalIdPrefix'."
        ),
    ),
    # The connection.
    Setting(
        API_TIMEOUT_MS,
        Values("a positive number of milliseconds", positive_integer(API_TIMEOUT_MS)),
    ),
    Setting(
        "client.dns.lookup",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        kafka_python=Text(),
    ),
    Setting("client.id", kafka_python=Text()),
    Setting("client.rack", kafka_python=Text()),
    Setting(
        "connections.max.idle.ms",
        at_least(-1),
        kafka_python=Number(1, unlimited=INT32_MAX),
        librdkafka=Number(1, unlimited=0),
    ),
    Setting(
        "enable.metrics.push",
        BOOLEAN,
        kafka_python=Ignored("kafka-python pushes no metrics to brokers"),
    ),
    Setting(
        "metadata.max.age.ms",
        at_least(0),
        kafka_python=Number(1),
        librdkafka=Number(1, _HOUR_MS, "topic.metadata.refresh.interval.ms"),
    ),
    Setting(
        "metadata.recovery.rebootstrap.trigger.ms",
        at_least(0),
        kafka_python=_REBOOTSTRAP,
        librdkafka=Number(),
    ),
    Setting("metadata.recovery.strategy", one_of("none", "rebootstrap"), kafka_python=_REBOOTSTRAP),
    Setting(
        "receive.buffer.bytes",
        at_least(-1),
        kafka_python=Number(name="socket_options"),
        librdkafka=Number(0, 100_000_000, "socket.receive.buffer.bytes"),
    ),
    Setting(
        "reconnect.backoff.max.ms",
        at_least(0),
        kafka_python=Number(),
        librdkafka=Number(0, _HOUR_MS),
    ),
    Setting(
        "reconnect.backoff.ms", at_least(0), kafka_python=Number(), librdkafka=Number(0, _HOUR_MS)
    ),
    Setting(
        "request.timeout.ms",
        at_least(0),
        kafka_python=Number(1),
        librdkafka=Number(10, 300_000, "socket.timeout.ms"),
    ),
    Setting(
        "retry.backoff.max.ms",
        at_least(0),
        kafka_python=Ignored("kafka-python's backoff between retries is constant"),
        librdkafka=Number(1, 300_000),
    ),
    Setting("retry.backoff.ms", at_least(0), kafka_python=Number(), librdkafka=Number(1, 300_000)),
    Setting("security.protocol", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    Setting(
        "send.buffer.bytes",
        at_least(-1),
        kafka_python=Number(name="socket_options"),
        librdkafka=Number(0, 100_000_000, "socket.send.buffer.bytes"),
    ),
    Setting(
        "socket.connection.setup.timeout.max.ms",
        at_least(0),
        kafka_python=_CONNECT_TIMEOUT,
        librdkafka=Ignored("librdkafka's time-out of connecting is constant"),
    ),
    Setting(
        "socket.connection.setup.timeout.ms",
        at_least(0),
        kafka_python=_CONNECT_TIMEOUT,
        librdkafka=Number(1_000),
    ),
    # The consumer.
    Setting("check.crcs", BOOLEAN),
    Setting(
        "fetch.max.bytes",
        at_least(0),
        kafka_python=Number(),
        librdkafka=Number(1_000, 2_147_483_135),
    ),
    Setting(
        "fetch.max.wait.ms",
        at_least(0),
        kafka_python=Number(),
        librdkafka=Number(0, 300_000, "fetch.wait.max.ms"),
    ),
    Setting(
        "fetch.min.bytes",
        at_least(0),
        kafka_python=Number(),
        librdkafka=Number(1, 100_000_000),
    ),
    Setting(GROUP_ID, kafka_python=Text()),
    Setting(
        ISOLATION_LEVEL,
        exactly(
            f"'{READ_UNCOMMITTED}' or '{READ_COMMITTED}'",
            {level: level for level in (READ_UNCOMMITTED, READ_COMMITTED)},
        ),
        kafka_python=Text(),
    ),
    Setting(
        "max.partition.fetch.bytes",
        at_least(0),
        kafka_python=Number(),
        librdkafka=Number(1, 1_000_000_000),
    ),
    *_each(
        (
            "group.instance.id",
            "group.protocol",
            "group.remote.assignor",
            "heartbeat.interval.ms",
            "internal.leave.group.on.close",
            "max.poll.interval.ms",
            "partition.assignment.strategy",
            "session.timeout.ms",
            "share.acknowledgement.mode",
            "share.acquire.mode",
        ),
        read=_NO_GROUP,
    ),
    *_each(
        ("auto.commit.interval.ms", "internal.throw.on.fetch.stable.offset.unsupported"),
        read=_NO_COMMIT,
    ),
    Setting("allow.auto.create.topics", read=Ignored("a read never creates a topic")),
    Setting(
        "exclude.internal.topics",
        read=Ignored("'subscribePattern' never matches internal topics"),
    ),
    Setting(
        "max.poll.records", read=Ignored("records are read in batches whose size is chosen here")
    ),
    # The producer.
    _producer(
        "acks",
        exactly("all, -1, 0 or 1", {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "0": 0, "1": 1}),
        "acks",
    ),
    _producer("batch.size", between(0), "batch_size", "16384", Number(1)),
    _producer("buffer.memory", between(0, INT64_MAX), "buffer_memory"),
    _producer(
        "compression.gzip.level",
        Values(_GZIP_LEVELS.text, lambda text: None if text == "-1" else _GZIP_LEVELS.parse(text)),
    ),
    _producer("compression.lz4.level", between(1, 17)),
    _producer(
        "compression.type",
        exactly(f"one of {', '.join(COMPRESSIONS)}", {codec: codec for codec in COMPRESSIONS}),
        "compression",
    ),
    _producer("compression.zstd.level", between(-131_072, 22)),
    _producer(
        "delivery.timeout.ms",
        between(1),
        "delivery_timeout_ms",
        librdkafka=Number(1, name="message.timeout.ms"),
    ),
    _producer("enable.idempotence", BOOLEAN, "is_idempotent"),
    _producer(
        "max.block.ms",
        between(0, INT64_MAX),
        "max_block_ms",
        "60000",
        Number(0, _HOUR_MS, "topic.metadata.propagation.max.ms"),
    ),
    Setting(
        "max.in.flight.requests.per.connection",
        write=ProducerField(between(1), "max_in_flight"),
        librdkafka=Number(1, 1_000_000),
    ),
    _producer(
        "max.request.size",
        between(0),
        "max_request_size",
        librdkafka=Number(1_000, 1_000_000_000, "message.max.bytes"),
    ),
    _producer(
        "partitioner.class",
        Values(
            f"{_ROUND_ROBIN_CLASS}, or a function of Python's as 'module:function': {_NO_CLASS}",
            _partitioner,
        ),
        "partitioner",
    ),
    _producer("partitioner.ignore.keys", BOOLEAN, "ignores_keys"),
    _producer("retries", between(0), "retries", librdkafka=Number()),
    _producer("transaction.timeout.ms", between(1), "transaction_timeout_ms", "60000"),
    Setting(
        "linger.ms",
        read=_NO_WRITE,
        write=Ignored("a batch is sent when it is full or when its task ends"),
    ),
    Setting(
        "metadata.max.idle.ms",
        read=_NO_WRITE,
        write=Ignored("metadata is dropped with the producer, after ten idle minutes"),
    ),
    Setting(
        "partitioner.adaptive.partitioning.enable",
        read=_NO_WRITE,
        write=Ignored("records without a key switch to another partition with every batch"),
    ),
    Setting(
        "partitioner.availability.timeout.ms",
        read=_NO_WRITE,
        write=Ignored("records wait for a partition's leader"),
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        read=_NO_WRITE,
        write=Ignored("transactions are chosen with the option 'deliveryGuarantee'"),
    ),
    # Logins and TLS.
    *_each(
        (
            "sasl.jaas.config",
            "sasl.kerberos.keytab",
            "sasl.kerberos.principal",
            "sasl.kerberos.service.name",
            "sasl.mechanism",
            "sasl.mechanisms",
            "sasl.password",
            "sasl.plain.password",
            "sasl.plain.username",
            "sasl.username",
            "ssl.cipher.suites",
            "ssl.enabled.protocols",
            "ssl.endpoint.identification.algorithm",
            "ssl.key.password",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
            "ssl.keystore.location",
            "ssl.keystore.password",
            "ssl.keystore.type",
            "ssl.truststore.certificates",
            "ssl.truststore.location",
            "ssl.truststore.password",
            "ssl.truststore.type",
        ),
        is_security=True,
    ),
    Setting("sasl.kerberos.kinit.cmd", kafka_python=_TICKET_CACHE),
    Setting(
        "sasl.kerberos.min.time.before.relogin",
        at_least(0),
        kafka_python=_TICKET_CACHE,
        librdkafka=Number(0, 86_400_000),
    ),
    *_each(
        (
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
        ),
        read=_NO_LOGIN_THREAD,
    ),
    *_each(
        (
            "ssl.keymanager.algorithm",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
        read=_NO_JVM_TLS,
    ),
    *_each(
        (
            "sasl.oauthbearer.clock.skew.seconds",
            "sasl.oauthbearer.expected.audience",
            "sasl.oauthbearer.expected.issuer",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.oauthbearer.jwks.endpoint.url",
            "sasl.oauthbearer.scope.claim.name",
        ),
        read=_BROKER_SIDE,
    ),
    Setting(
        "ssl.protocol", read=Ignored("Java's client offers 'ssl.enabled.protocols' regardless")
    ),
    # Metrics.
    *_each(
        (
            "auto.include.jmx.reporter",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
        ),
        read=_NO_METRICS,
    ),
    # What needs a JVM.
    Setting(
        "bootstrap.controllers",
        jvm=NeedsJvm("only brokers are asked; set 'kafka.bootstrap.servers'"),
    ),
    Setting("config.providers", jvm=NeedsJvm(f"{_NO_CLASS}; set the values themselves")),
    Setting(
        "metric.reporters",
        jvm=NeedsJvm(
            f"{_NO_CLASS}; Spark shows the query's metrics",
            "org.apache.kafka.common.metrics.JmxReporter",
        ),
    ),
    Setting("sasl.client.callback.handler.class", jvm=LOGIN_MODULE),
    Setting("sasl.login.callback.handler.class", jvm=LOGIN_MODULE),
    Setting("sasl.login.class", jvm=NeedsJvm(f"{_NO_CLASS}; set 'kafka.sasl.jaas.config'")),
    Setting("sasl.oauthbearer.jwt.retriever.class", jvm=OAUTH),
    Setting("sasl.oauthbearer.jwt.validator.class", jvm=OAUTH),
    Setting("security.providers", jvm=NeedsJvm(f"{_NO_CLASS}; TLS is OpenSSL's")),
    Setting(
        "ssl.engine.factory.class",
        jvm=NeedsJvm(f"{_NO_CLASS}; set 'kafka.ssl.truststore.*' and 'kafka.ssl.keystore.*'"),
    ),
    Setting(
        "ssl.provider",
        jvm=NeedsJvm(
            "it names a provider of a JVM, and TLS is OpenSSL's here; leave it out", "SunJSSE"
        ),
    ),
)

BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}
