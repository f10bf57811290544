"""The settings of Kafka's Java client, and what becomes of each here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_GROUP: Final = "a read of a range joins no consumer group"
_NO_COMMIT: Final = "a read of a range commits no offsets"
_NO_JVM_METRICS: Final = "Spark shows the query's metrics; the client's are not collected"
_NO_WRITE: Final = "it governs writing, and this is a read"
_NO_JVM_LOGIN: Final = "it paces the login thread of a JVM"
_NO_JVM_TLS: Final = "it names an implementation inside of a JVM; TLS is OpenSSL's here"
_BROKER_SIDE: Final = "it governs how a broker checks tokens"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
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
        _NO_GROUP,
    ),
    **dict.fromkeys(
        ("auto.commit.interval.ms", "internal.throw.on.fetch.stable.offset.unsupported"),
        _NO_COMMIT,
    ),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
        ),
        _NO_JVM_METRICS,
    ),
    **dict.fromkeys(
        (
            "acks",
            "batch.size",
            "buffer.memory",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "delivery.timeout.ms",
            "enable.idempotence",
            "linger.ms",
            "max.block.ms",
            "max.request.size",
            "metadata.max.idle.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "partitioner.class",
            "partitioner.ignore.keys",
            "retries",
            "transaction.timeout.ms",
            "transaction.two.phase.commit.enable",
            "transactional.id",
        ),
        _NO_WRITE,
    ),
    **dict.fromkeys(
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
        _NO_JVM_LOGIN,
    ),
    **dict.fromkeys(
        (
            "ssl.keymanager.algorithm",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
        _NO_JVM_TLS,
    ),
    **dict.fromkeys(
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
        _BROKER_SIDE,
    ),
    "allow.auto.create.topics": "a read never makes a topic",
    "exclude.internal.topics": "'subscribePattern' always leaves internal topics out",
    "max.poll.records": "how many records are taken at once is the reader's matter",
    "ssl.protocol": "Java's client offers what 'ssl.enabled.protocols' lists, whatever it is",
}
"""Settings of Java's clients that are accepted and change nothing, each with the reason."""

OAUTH_INSTEAD: Final = (
    "no Java class runs here. For OAuth take the client 'confluent' with "
    "'kafka.sasl.mechanism' OAUTHBEARER, 'kafka.sasl.oauthbearer.method' oidc, and "
    "'kafka.sasl.oauthbearer.client.id', '.client.secret', '.scope' and '.token.endpoint.url'"
)
MSK_INSTEAD: Final = (
    "no Java class runs here. For AWS MSK IAM take the client 'kafka-python' with the package "
    "'botocore', 'kafka.sasl.mechanism' AWS_MSK_IAM and no 'kafka.sasl.jaas.config'"
)
NO_JVM_CLASS: Final = "no Java class runs here"

REFUSED: Final[Mapping[str, str]] = {
    "bootstrap.controllers": "a read asks brokers; set 'kafka.bootstrap.servers'",
    "config.providers": f"{NO_JVM_CLASS}; give the values themselves",
    "key.serializer": f"{NO_JVM_CLASS}; keys are bytes",
    "value.serializer": f"{NO_JVM_CLASS}; values are bytes",
    "metric.reporters": f"{NO_JVM_CLASS}; Spark shows the query's metrics",
    "sasl.client.callback.handler.class": NO_JVM_CLASS,
    "sasl.login.callback.handler.class": NO_JVM_CLASS,
    "sasl.login.class": f"{NO_JVM_CLASS}; the login is made of 'kafka.sasl.jaas.config'",
    "sasl.oauthbearer.jwt.retriever.class": OAUTH_INSTEAD,
    "sasl.oauthbearer.jwt.validator.class": OAUTH_INSTEAD,
    "security.providers": f"{NO_JVM_CLASS}; TLS is OpenSSL's",
    "ssl.engine.factory.class": f"{NO_JVM_CLASS}; set 'kafka.ssl.truststore.*' and "
    "'kafka.ssl.keystore.*'",
    "ssl.provider": "it names a provider inside of a JVM, and TLS is OpenSSL's here; leave it out",
}
"""Settings that would need a JVM, each with what to do instead."""

HARMLESS: Final[Mapping[str, str]] = {
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "security.providers": "",
    "ssl.provider": "SunJSSE",
}
"""The default of a refused setting, which may be spelled out."""

LEAST: Final[Mapping[str, int]] = {
    "connections.max.idle.ms": -1,
    "fetch.max.bytes": 0,
    "fetch.max.wait.ms": 0,
    "fetch.min.bytes": 0,
    "max.partition.fetch.bytes": 0,
    "metadata.max.age.ms": 0,
    "metadata.recovery.rebootstrap.trigger.ms": 0,
    "receive.buffer.bytes": -1,
    "reconnect.backoff.max.ms": 0,
    "reconnect.backoff.ms": 0,
    "request.timeout.ms": 0,
    "retry.backoff.max.ms": 0,
    "retry.backoff.ms": 0,
    "sasl.kerberos.min.time.before.relogin": 0,
    "send.buffer.bytes": -1,
    "socket.connection.setup.timeout.max.ms": 0,
    "socket.connection.setup.timeout.ms": 0,
}
"""The settings that are whole numbers, and the least that Java takes."""

BOOLEANS: Final = frozenset({"check.crcs", "enable.metrics.push"})

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "metadata.recovery.strategy": ("none", "rebootstrap"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}
"""The settings that are choices, which Java reads in any case."""

SASL: Final = frozenset(
    {
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
    }
)
TLS: Final = frozenset(
    {
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
    }
)
