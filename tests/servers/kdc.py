"""A real Kerberos KDC on a loopback port: Apache Kerby, which Py4J's gateway runs."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import require_java
from pyspark_kafka.brokers.settings import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

_JARS: Final = JarSet(
    "kerby-2.1.1",
    (
        Artifact("org.apache.kerby", "kerb-simplekdc", "2.1.1"),
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    transitive=True,
)
_JAVA_OPTIONS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

REALM: Final = "PYSPARK.KAFKA"
SERVICES: Final = ("kafka/127.0.0.1", "kafka/localhost")
"""The principals of brokers, whose keys are all in one keytab."""


@dataclass(frozen=True, slots=True)
class Kdc:
    """A running KDC, which can be pickled: its port, and where keytabs and configuration are."""

    directory: Path
    port: int

    @property
    def krb5_conf(self) -> Path:
        """The configuration for ``KRB5_CONFIG`` and for Java's ``java.security.krb5.conf``."""
        return self.directory / "krb5.conf"

    @property
    def service_keytab(self) -> Path:
        """The keytab of the brokers."""
        return self.directory / "kafka.keytab"

    def keytab(self, user: str) -> Path:
        """Return the keytab of one user."""
        return self.directory / f"{user}.keytab"

    def principal(self, user: str) -> str:
        """Return a user's principal, with the realm."""
        return f"{user}@{REALM}"

    def write_krb5_conf(self, path: Path, *, lifetime_s: int = 600) -> None:
        """Write a configuration whose tickets end after some seconds."""
        path.write_text(
            "[libdefaults]\n"
            f"default_realm = {REALM}\n"
            f"ticket_lifetime = {lifetime_s}s\n"
            # By default a ticket is taken for five minutes after its end.
            "clockskew = 1\n"
            "udp_preference_limit = 1\n"
            # Names of hosts are taken as they are, without asking DNS.
            "dns_lookup_kdc = false\n"
            "dns_lookup_realm = false\n"
            "dns_canonicalize_hostname = false\n"
            "rdns = false\n"
            "[realms]\n"
            f"{REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n}}\n"
        )


@contextmanager
def start_kdc(*users: str) -> Iterator[Kdc]:
    """Run a KDC that knows brokers on loopback and these users, each with a keytab.

    Its process ends with this one, even if that is killed.
    """
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-kdc-") as name, _gateway() as java:
        kdc = Kdc(Path(name), *free_ports(1))
        kdc.write_krb5_conf(kdc.krb5_conf)
        work = kdc.directory / "kdc"
        work.mkdir()
        server = _start(java, kdc, str(work))
        try:
            for service in SERVICES:
                server.createPrincipal(service)
                server.exportPrincipal(service, java.java.io.File(str(kdc.service_keytab)))
            for user in users:
                server.createPrincipal(user)
                server.exportPrincipal(user, java.java.io.File(str(kdc.keytab(user))))
            yield kdc
        finally:
            server.stop()


@contextmanager
def _gateway() -> Iterator[Any]:
    """Yield the packages of a JVM that has Kerby."""
    jars = Path(str(files("pyspark"))) / "jars"
    (py4j,) = jars.glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{resolve(_JARS)}/*",
        javaopts=list(_JAVA_OPTIONS),
        java_path=str(require_java()),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


def _start(java: Any, kdc: Kdc, work: str) -> Any:
    server = java.org.apache.kerby.kerberos.kerb.server.SimpleKdcServer()
    # It writes a krb5.conf of its own there.
    server.setWorkDir(java.java.io.File(work))
    server.setKdcRealm(REALM)
    server.setKdcHost("127.0.0.1")
    server.setKdcTcpPort(kdc.port)
    server.setAllowUdp(False)
    # By default a ticket is given for an hour at least.
    key = java.org.apache.kerby.kerberos.kerb.server.KdcConfigKey.MINIMUM_TICKET_LIFETIME
    server.getKdcConfig().setLong(key, 1)
    server.init()
    server.start()
    return server
