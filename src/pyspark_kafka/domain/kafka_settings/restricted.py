"""Settings of clients that need the permission of Spark's operator, and those that do not.

Queries come from people who may run SQL and nothing else. Here is what a setting could do beyond
its query: load code, run a command, or read a file or a URL with the rights of Spark's processes.
Stores and certificates of TLS are not here: as in Java, a query names the files of its own login.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .table import CALLBACK_HANDLERS

if TYPE_CHECKING:
    from collections.abc import Mapping


@final
class AllowList(enum.Enum):
    """A list of the operator's; the value is what its entries are."""

    OPTIONS = "option"
    MODULES = "module"
    FILES = "file"
    URLS = "URL"

    @property
    def variable(self) -> str:
        """The environment variable that holds it, separated by commas."""
        return f"PYSPARK_KAFKA_ALLOWED_{self.name}"

    @property
    def spark_setting(self) -> str:
        """The setting of Spark's application that holds it."""
        return f"spark.pyspark_kafka.allowed{self.name.title()}"


@final
@dataclass(frozen=True, slots=True)
class Restricted:
    """A setting that the operator has to allow: by its name, or by its value in another list.

    ``effect`` completes "it ...". ``separator`` separates several values. ``harmless`` are values
    that everyone may set.
    """

    name: str
    effect: str
    by: AllowList = AllowList.OPTIONS
    separator: str = ""
    harmless: frozenset[str] = frozenset({""})

    def values(self, text: str) -> list[str]:
        """Return the single values of a setting."""
        parts = text.split(self.separator) if self.separator else [text]
        return [part.strip() for part in parts if part.strip() not in self.harmless]


_READS: Final = "reads a file and uses its content in requests"

RESTRICTED: Final[tuple[Restricted, ...]] = (
    Restricted("https.ca.location", "reads a file", AllowList.FILES),
    Restricted("offset.store.method", "writes files", harmless=frozenset({"", "broker", "none"})),
    Restricted("offset.store.path", "writes a file", AllowList.FILES),
    Restricted("partitioner.class", "imports a Python module", AllowList.MODULES),
    Restricted("plugin.library.paths", "loads native code", AllowList.FILES, ";"),
    Restricted(
        "sasl.kerberos.kinit.cmd",
        "runs a command",
        AllowList.FILES,
        # What Java's client and librdkafka run if it is not set.
        harmless=frozenset({"", "/usr/bin/kinit", "kinit"}),
    ),
    *(Restricted(name, "imports a Python module", AllowList.MODULES) for name in CALLBACK_HANDLERS),
    Restricted("sasl.oauthbearer.assertion.file", _READS, AllowList.FILES),
    Restricted("sasl.oauthbearer.assertion.jwt.template.file", _READS, AllowList.FILES),
    Restricted("sasl.oauthbearer.assertion.private.key.file", _READS, AllowList.FILES),
    Restricted(
        "sasl.oauthbearer.metadata.authentication.type",
        "logs in as the machine, with its cloud's metadata service",
        harmless=frozenset({"", "none"}),
    ),
    Restricted("sasl.oauthbearer.token.endpoint.url", "sends requests to a URL", AllowList.URLS),
    Restricted("ssl.engine.id", "loads native code"),
    Restricted("ssl.engine.location", "loads native code", AllowList.FILES),
    Restricted("ssl.providers", "loads native code"),
)
"""Checked for every client, since Java's and librdkafka's names of them are the same."""

JAAS_OPTIONS: Final[Mapping[str, str]] = {
    "oauth.ssl.truststore.location": "https.ca.location",
    "oauth.token.endpoint.uri": "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location": "https.ca.location",
}
"""Options of login modules in ``sasl.jaas.config``, and the setting that does the same."""

_LIBRDKAFKA: Final = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable
    batch.num.messages broker.address.family broker.address.ttl broker.version.fallback
    compression.codec compression.level consume.callback.max.messages coordinator.query.interval.ms
    debug enable.auto.offset.store enable.partition.eof enable.ssl.certificate.verification
    fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    group.protocol.type log.connection.close log.thread.name log_level max.in.flight
    message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms partitioner
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages receive.message.max.bytes
    reconnect.backoff.jitter.ms request.required.acks sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.crl.location
    ssl.curves.list ssl.key.location ssl.key.pem ssl.sigalgs.list statistics.interval.ms
    sticky.partitioning.linger.ms topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
"""

OWN_SETTINGS: Final[Mapping[str, frozenset[str]]] = {"confluent": frozenset(_LIBRDKAFKA.split())}
"""The settings that Java's clients do not have and every query may set, by the client.

Left out, besides callbacks: what this library sets itself (``enabled_events``, ``log.queue``),
second names of what it checks (``metadata.broker.list``), what hides topics (``topic.blacklist``),
and ``internal.termination.signal``. A client that is not listed here decides itself.
"""
