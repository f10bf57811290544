"""The settings of Kafka's Java clients, and how this library handles each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

from .option import INT32_MAX, INT64_MAX, PREFIX, boolean, clamp, integer, positive_integer

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Values(Generic[T]):
    """The values that Java's clients accept for a setting; ``text`` describes them."""

    text: str
    parse: Callable[[str], T]

    def read(self, name: str, value: str) -> T:
        """Return the parsed value of the setting ``name``.

        :raises ValueError: if it is not one of these values.
        """
        try:
            return self.parse(value)
        except (KeyError, ValueError):
            raise ValueError(
                f"Option '{PREFIX}{name}' must be {self.text}, got '{value}'"
            ) from None


def at_least(minimum: int) -> Values[int]:
    """Return the integers from ``minimum`` on; those above an ``int`` are read as its maximum."""

    def parse(text: str) -> int:
        if integer(text) < minimum:
            raise ValueError(text)
        return min(integer(text), INT32_MAX)

    return Values(f"a whole number from {minimum} on", parse)


def between(minimum: int, maximum: int = INT32_MAX) -> Values[int]:
    """Return the integers within these bounds."""

    def parse(text: str) -> int:
        if not minimum <= integer(text) <= maximum:
            raise ValueError(text)
        return integer(text)

    return Values(f"a whole number from {minimum} to {maximum}", parse)


def one_of(*words: str) -> Values[str]:
    """Return these words, in upper or lower case."""
    by_key = {word.lower(): word for word in words}
    return Values(f"one of {', '.join(words)}", lambda text: by_key[text.lower()])


def exactly(text: str, values: Mapping[str, T]) -> Values[T]:
    """Return the keys of a mapping, which are parsed as its values."""
    return Values(text, lambda value: values[value])


BOOLEAN: Final = Values("true or false", boolean)


@final
@dataclass(frozen=True, slots=True)
class Ignored:
    """The setting is accepted without effect."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """The setting is refused with any value; ``message`` is the whole error message."""

    message: str


@final
@dataclass(frozen=True, slots=True)
class NeedsJvm:
    """The setting is refused, unless its value is empty or ``default``, Java's own."""

    instead: str
    default: str = ""


@final
@dataclass(frozen=True, slots=True)
class ProducerField:
    """The setting fills this field of ``ProducerSettings``.

    Without a name it is the level of a codec. ``java_default`` is set if Java has another default.
    """

    values: Values[Any]
    name: str = ""
    java_default: str = ""


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A client's number: its bounds, its name if not Java's, and its equivalent of Java's -1."""

    minimum: int = 0
    maximum: int = INT32_MAX
    name: str = ""
    unlimited: int | None = None

    def nearest(self, number: int) -> int:
        """Return the nearest number that the client accepts."""
        if number < 0 and self.unlimited is not None:
            return self.unlimited
        return clamp(self.minimum, number, self.maximum)


@final
@dataclass(frozen=True, slots=True)
class Text:
    """A client's text, under Java's name."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of Kafka's Java clients.

    ``values`` are those that a consumer or any client accepts; a setting without them is a text.
    ``kafka_python`` and ``librdkafka`` describe how the setting is passed to the client, unless it
    is passed unchanged under Java's name. ``read`` and ``write`` describe what a read and a write
    do with it instead. ``jvm`` marks a setting that only a JVM can have.
    """

    name: str
    values: Values[Any] | None = None
    kafka_python: Number | Text | Ignored | None = None
    librdkafka: Number | Ignored | None = None
    read: Ignored | Refused | None = None
    write: ProducerField | Ignored | Refused | None = None
    jvm: NeedsJvm | None = None
    is_security: bool = False


BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
CLIENT_RACK: Final = "client.rack"
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
"""The partitioner that takes one partition after another and ignores the key."""

KAFKA_PYTHON: Final = "kafka-python"

KAFKA_PYTHON_NAMES: Final[Mapping[str, str]] = {
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.ciphers": "ssl.cipher.suites",
    "ssl.crlfile": "ssl.crl.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
}
"""kafka-python's own names, with dots for underscores, and the common names of the same."""

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


_GZIP: Final = between(1, 9)
_HOUR_MS: Final = 3_600_000
_ACKS: Final = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "0": 0, "1": 1}
_NO_CLASS: Final = "no Java class runs here"
OAUTH_SETTINGS: Final = (
    "enable.sasl.oauthbearer.unsecure.jwt",
    "https.ca.location",
    "https.ca.pem",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.grant.type",
    "sasl.oauthbearer.metadata.authentication.type",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
)
"""librdkafka's settings for tokens; Java has the last two as well."""

_OAUTH_JAVA: Final = (
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.sub.claim.name",
)

CALLBACK_HANDLERS: Final = (
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
)
"""Java's classes that get tokens; here they, or Python functions, name where tokens come from."""

_NO_WRITE: Final = Ignored("it is a producer's setting, and this is a read")
_REBOOTSTRAP: Final = Ignored("the client always returns to the bootstrap servers")
_NO_KINIT: Final = Ignored("kafka-python gets and renews tickets without kinit")


def _producer(
    name: str,
    accepted: Values[Any],
    field: str = "",
    java_default: str = "",
    librdkafka: Number | None = None,
) -> Setting:
    write = ProducerField(accepted, field, java_default)
    return Setting(name, read=_NO_WRITE, write=write, librdkafka=librdkafka)


def _spark(name: str, read: str | None = None, write: str | None = None, jvm: str = "") -> Setting:
    start = f"Kafka option '{name}' is not supported"
    return Setting(
        name,
        read=None if read is None else Refused(start + read),
        write=None if write is None else Refused(start + write),
        jvm=NeedsJvm(jvm) if jvm else None,
    )


def _ignored(names: str, reason: str) -> Iterable[Setting]:
    return (Setting(name, read=Ignored(reason)) for name in names.split())


def _security(names: str) -> Iterable[Setting]:
    return (Setting(name, is_security=True) for name in names.split())


SETTINGS: Final[tuple[Setting, ...]] = (
    # Spark's own refusals, in the order and the words of KafkaSourceProvider's
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
    *(
        _spark(
            f"{part}.deserializer",
            f" as {part}s are deserialized as byte arrays with ByteArrayDeserializer. "
            f"Use DataFrame operations to explicitly deserialize the {part}s.",
        )
        for part in ("key", "value")
    ),
    _spark("enable.auto.commit", ""),
    _spark(
        "key.serializer",
        write=" as keys are serialized with ByteArraySerializer.",
        jvm=f"{_NO_CLASS}; keys are bytes",
    ),
    _spark(
        "value.serializer",
        write=" as value are serialized with ByteArraySerializer.",
        jvm=f"{_NO_CLASS}; values are bytes",
    ),
    _spark("interceptor.classes", "", f": {_NO_CLASS}; change rows before they are written."),
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
        Text(),
    ),
    Setting("client.id", None, Text()),
    Setting(CLIENT_RACK, None, Text()),
    Setting(
        "connections.max.idle.ms",
        at_least(-1),
        Number(1, unlimited=INT32_MAX),
        Number(1, unlimited=0),
    ),
    Setting("enable.metrics.push", BOOLEAN, Ignored("kafka-python pushes no metrics to brokers")),
    Setting(
        "metadata.max.age.ms",
        at_least(0),
        Number(1),
        Number(1, _HOUR_MS, "topic.metadata.refresh.interval.ms"),
    ),
    Setting("metadata.recovery.rebootstrap.trigger.ms", at_least(0), _REBOOTSTRAP, Number()),
    Setting("metadata.recovery.strategy", one_of("none", "rebootstrap"), _REBOOTSTRAP),
    *(
        Setting(
            f"{side}.buffer.bytes",
            at_least(-1),
            Number(name="socket_options"),
            Number(0, 100_000_000, f"socket.{side}.buffer.bytes"),
        )
        for side in ("receive", "send")
    ),
    Setting("reconnect.backoff.max.ms", at_least(0), Number(), Number(0, _HOUR_MS)),
    Setting("reconnect.backoff.ms", at_least(0), Number(), Number(0, _HOUR_MS)),
    Setting("request.timeout.ms", at_least(0), Number(1), Number(10, 300_000, "socket.timeout.ms")),
    Setting(
        "retry.backoff.max.ms",
        at_least(0),
        Ignored("kafka-python's backoff between retries is constant"),
        Number(1, 300_000),
    ),
    Setting("retry.backoff.ms", at_least(0), Number(), Number(1, 300_000)),
    Setting("security.protocol", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    Setting(
        "socket.connection.setup.timeout.max.ms",
        at_least(0),
        Number(1),
        Ignored("librdkafka's time-out of connecting is constant"),
    ),
    Setting("socket.connection.setup.timeout.ms", at_least(0), Number(1), Number(1_000)),
    # The consumer.
    Setting("check.crcs", BOOLEAN),
    Setting("fetch.max.bytes", at_least(0), Number(), Number(1_000, 2_147_483_135)),
    Setting("fetch.max.wait.ms", at_least(0), Number(), Number(0, 300_000, "fetch.wait.max.ms")),
    Setting("fetch.min.bytes", at_least(0), Number(), Number(1, 100_000_000)),
    Setting("max.partition.fetch.bytes", at_least(0), Number(), Number(1, 1_000_000_000)),
    Setting(GROUP_ID, None, Text()),
    Setting(
        ISOLATION_LEVEL,
        exactly(
            f"'{READ_UNCOMMITTED}' or '{READ_COMMITTED}'",
            {level: level for level in (READ_UNCOMMITTED, READ_COMMITTED)},
        ),
        Text(),
    ),
    *_ignored(
        """group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
        internal.leave.group.on.close max.poll.interval.ms partition.assignment.strategy
        session.timeout.ms share.acknowledgement.mode share.acquire.mode""",
        "no consumer group is joined",
    ),
    *_ignored(
        "auto.commit.interval.ms internal.throw.on.fetch.stable.offset.unsupported",
        "the client commits no offsets",
    ),
    *_ignored("allow.auto.create.topics", "a read never creates a topic"),
    *_ignored("exclude.internal.topics", "'subscribePattern' never matches internal topics"),
    *_ignored("max.poll.records", "the size of a batch of records is not configurable"),
    # The producer.
    _producer("acks", exactly("all, -1, 0 or 1", _ACKS), "acks"),
    _producer("batch.size", between(0), "batch_size", "16384", Number(1)),
    _producer("buffer.memory", between(0, INT64_MAX), "buffer_memory"),
    _producer(
        "compression.gzip.level",
        Values(_GZIP.text, lambda text: None if text == "-1" else _GZIP.parse(text)),
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
    *(
        Setting(name, read=_NO_WRITE, write=Ignored(reason))
        for name, reason in {
            "linger.ms": "a batch is sent when it is full or when its task ends",
            "metadata.max.idle.ms": "metadata is dropped with the producer, after ten idle minutes",
            "partitioner.adaptive.partitioning.enable": "records without a key switch to another "
            "partition with every batch",
            "partitioner.availability.timeout.ms": "records wait for a partition's leader",
            "transaction.two.phase.commit.enable": "transactions are chosen with the option "
            "'deliveryGuarantee'",
        }.items()
    ),
    # Logins, TLS and metrics.
    *_security(
        """sasl.jaas.config sasl.kerberos.keytab sasl.kerberos.principal sasl.kerberos.service.name
        sasl.mechanism sasl.mechanisms sasl.password sasl.plain.password sasl.plain.username
        sasl.username ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
        ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
        ssl.keystore.password ssl.keystore.type ssl.truststore.certificates ssl.truststore.location
        ssl.truststore.password ssl.truststore.type"""
    ),
    *(Setting(name, is_security=True) for name in (*OAUTH_SETTINGS, *_OAUTH_JAVA)),
    *(Setting(name, is_security=True) for name in CALLBACK_HANDLERS),
    Setting("sasl.kerberos.kinit.cmd", None, _NO_KINIT),
    Setting(
        "sasl.kerberos.min.time.before.relogin",
        at_least(0),
        _NO_KINIT,
        Number(0, 24 * _HOUR_MS),
    ),
    *_ignored(
        """sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
        sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms""",
        "it belongs to the login thread of a JVM",
    ),
    *_ignored(
        """sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.scope.claim.name""",
        "it belongs to a broker, which validates tokens",
    ),
    *_ignored(
        "ssl.keymanager.algorithm ssl.secure.random.implementation ssl.trustmanager.algorithm",
        "it names a class of a JVM; TLS is OpenSSL's here",
    ),
    *_ignored("ssl.protocol", "Java's client offers 'ssl.enabled.protocols' regardless"),
    *_ignored(
        """auto.include.jmx.reporter metrics.num.samples metrics.recording.level
        metrics.sample.window.ms""",
        "the client's metrics are not collected; Spark shows the query's",
    ),
    # Settings that need a JVM.
    *(
        Setting(name, jvm=instead)
        for name, instead in {
            "bootstrap.controllers": NeedsJvm(
                "only brokers are asked; set 'kafka.bootstrap.servers'"
            ),
            "config.providers": NeedsJvm(f"{_NO_CLASS}; set the values themselves"),
            "metric.reporters": NeedsJvm(
                f"{_NO_CLASS}; Spark shows the query's metrics",
                "org.apache.kafka.common.metrics.JmxReporter",
            ),
            "sasl.login.class": NeedsJvm(f"{_NO_CLASS}; set 'kafka.sasl.jaas.config'"),
            "security.providers": NeedsJvm(f"{_NO_CLASS}; TLS is OpenSSL's"),
            "ssl.engine.factory.class": NeedsJvm(
                f"{_NO_CLASS}; set 'kafka.ssl.truststore.*' and 'kafka.ssl.keystore.*'"
            ),
            "ssl.provider": NeedsJvm(
                "it names a provider of a JVM, and TLS is OpenSSL's here; leave it out", "SunJSSE"
            ),
        }.items()
    ),
)

KAFKA_PYTHON_IGNORED: Final = frozenset(
    {
        "bootstrap.timeout.ms",
        "enable.incremental.fetch.sessions",
        "max.in.flight.requests.per.connection",
    }
)
"""Settings of kafka-python that are accepted without effect: this library connects and fetches.

A write reads the last one as a setting of its producer.
"""

BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}
