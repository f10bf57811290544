"""Brokers whose clients connect to proxies: a plain listener, and one with TLS and logins."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from pyspark_kafka.brokers.settings import free_ports
from tests.slowness import bound_s

from .certificates import Authority, truststore
from .fault_proxy import FaultProxies, FaultProxy
from .listeners import BrokerListener, brokers_listening
from .secured import PASSWORD, SESSION_MS, STORE_PASSWORD, login_module

PLAIN_LISTENER: Final = "PROXIED"
SECURED_LISTENER: Final = "SECURED"
MECHANISM: Final = "SCRAM-SHA-512"
USER: Final = "scram-512-user"

_PROTOCOLS: Final = {PLAIN_LISTENER: "PLAINTEXT", SECURED_LISTENER: "SASL_SSL"}
_ADMIN_S: Final = bound_s(30)


@final
@dataclass(frozen=True, slots=True)
class ProxiedCluster:
    """A cluster, and the proxies of its listeners, in the order of the brokers.

    ``cluster.bootstrap_servers`` are plain listeners without proxies.
    """

    cluster: KafkaCluster
    proxies: Mapping[str, Sequence[FaultProxy]]
    directory: Path
    authority: Authority = field(repr=False)

    def options(self, login: str) -> dict[str, str]:
        """Return the options of a query that logs in by a mechanism, or does not log in."""
        if not login:
            return {"kafka.bootstrap.servers": self._servers(PLAIN_LISTENER)}
        login_line = login_module("scram.ScramLoginModule", username=USER, password=PASSWORD)
        return {
            "kafka.bootstrap.servers": self._servers(SECURED_LISTENER),
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": login,
            "kafka.sasl.jaas.config": login_line,
            "kafka.ssl.truststore.location": str(self.directory / "truststore.p12"),
            "kafka.ssl.truststore.password": STORE_PASSWORD,
        }

    def set_password(self, password: str) -> None:
        credential = UserScramCredentialUpsertion(USER, ScramMechanism.SCRAM_SHA_512, password)
        with admin_client(self.cluster.bootstrap_servers, "a password", _ADMIN_S) as admin:
            admin.alter_user_scram_credentials([credential])

    def issue_certificate(self, name: str) -> Path:
        """Write a keystore of a broker with a new key, and return its path."""
        certificate = self.authority.issue("broker")
        return certificate.write_pkcs12(self.directory / f"{name}.p12", STORE_PASSWORD)

    def _servers(self, listener: str) -> str:
        return ",".join(proxy.address for proxy in self.proxies[listener])


@contextmanager
def run_proxied(
    brokers: int, config: Mapping[str, str] | None = None, version: str = KAFKA_VERSION
) -> Iterator[ProxiedCluster]:
    """Run brokers of a version of Kafka, and their proxies."""
    with (
        tempfile.TemporaryDirectory(prefix="pyspark-kafka-proxied-") as directory,
        FaultProxies() as running,
    ):
        root, authority = Path(directory), Authority()
        (root / "truststore.p12").write_bytes(truststore([authority], STORE_PASSWORD))
        authority.issue("broker").write_pkcs12(root / "broker.p12", STORE_PASSWORD)
        ports = iter(free_ports(2 * len(_PROTOCOLS) * brokers))
        places = {
            listener: [BrokerListener(next(ports), next(ports)) for _ in range(brokers)]
            for listener in _PROTOCOLS
        }
        proxies = {
            listener: [running.add(place.advertised_port, place.port) for place in of_listener]
            for listener, of_listener in places.items()
        }
        named = {f"{name}:{_PROTOCOLS[name]}": of_name for name, of_name in places.items()}
        properties = _secured(root) | dict(config or {})
        with brokers_listening(named, properties, version=version) as cluster:
            proxied = ProxiedCluster(cluster, proxies, root, authority)
            proxied.set_password(PASSWORD)
            yield proxied


def _secured(root: Path) -> dict[str, str]:
    mechanism = MECHANISM.lower()
    listener = f"listener.name.{SECURED_LISTENER.lower()}"
    return {
        f"{listener}.ssl.keystore.location": str(root / "broker.p12"),
        f"{listener}.ssl.keystore.password": STORE_PASSWORD,
        f"{listener}.ssl.key.password": STORE_PASSWORD,
        f"{listener}.{mechanism}.sasl.jaas.config": login_module("scram.ScramLoginModule"),
        f"{listener}.sasl.enabled.mechanisms": MECHANISM,
        "connections.max.reauth.ms": str(SESSION_MS),
    }
