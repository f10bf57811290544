"""A real Kerberos KDC on a loopback port: Apache Kerby, which Py4J's gateway runs."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.settings import free_ports

from .java_gateway import java_gateway

_JARS: Final = JarSet(
    "kerby-2.1.1",
    (
        Artifact("org.apache.kerby", "kerb-simplekdc", "2.1.1"),
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    transitive=True,
)
REALM: Final = "PYSPARK.KAFKA"
SERVICE: Final = "kafka/127.0.0.1"
"""The principal of brokers."""

WEB_SERVICE: Final = "HTTP/127.0.0.1"
"""The principal of servers of HTTP."""

CLOCK_SKEW_S: Final = 3
"""How long a ticket is still taken after its end."""

KRB5_CONFIG: Final = "KRB5_CONFIG"
"""The variable that names the configuration. The run of tests and Spark's JVM, which start other
processes, have it before there is a KDC."""


@dataclass(frozen=True, slots=True)
class Kdc:
    """A running KDC, which can be pickled: its port, its keytabs, and the clients' configuration.

    Java reads the configuration from the property ``java.security.krb5.conf``.
    """

    port: int
    directory: Path
    krb5_conf: Path

    @property
    def service_keytab(self) -> Path:
        return self.directory / "kafka.keytab"

    def keytab(self, user: str) -> Path:
        return self.directory / f"{user.replace('/', '-')}.keytab"

    def write_krb5_conf(self, path: Path, *, lifetime_s: int = 600) -> None:
        """Write a configuration whose tickets end after some seconds."""
        path.write_text(
            "[libdefaults]\n"
            f"default_realm = {REALM}\n"
            f"ticket_lifetime = {lifetime_s}s\n"
            # By default a ticket is taken for five minutes after its end. What a client signs is
            # refused after as many seconds, too, which a loaded machine may need.
            f"clockskew = {CLOCK_SKEW_S}\n"
            "udp_preference_limit = 1\n"
            # Names of hosts are taken as they are, without asking DNS.
            "dns_lookup_kdc = false\n"
            "dns_lookup_realm = false\n"
            "dns_canonicalize_hostname = false\n"
            "rdns = false\n"
            "[realms]\n"
            f"{REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n}}\n"
        )


def keytab_login(user: str, keytab: Path) -> str:
    """Return the JAAS line of a user, or of a service, who has a keytab."""
    return login_module(
        useKeyTab="true", storeKey="true", keyTab=str(keytab), principal=f"{user}@{REALM}"
    )


def login_module(**options: str) -> str:
    """Return a JAAS line with Java's login module of Kerberos."""
    words = "".join(f' {name}="{value}"' for name, value in options.items())
    return f"com.sun.security.auth.module.Krb5LoginModule required{words};"


@contextmanager
def start_kdc(*users: str) -> Iterator[Kdc]:
    """Run a KDC that knows brokers on loopback and these users, each with a keytab.

    Its process ends with this one, even if that is killed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="pyspark-kafka-kdc-") as name,
        java_gateway(resolve(_JARS)) as java,
    ):
        directory = Path(name)
        krb5_conf = Path(os.environ.setdefault(KRB5_CONFIG, str(directory / "krb5.conf")))
        [port] = free_ports(1)
        kdc = Kdc(port, directory, krb5_conf)
        kdc.write_krb5_conf(krb5_conf)
        server = _start(java, kdc)
        try:
            _add(java, server, SERVICE, kdc.service_keytab)
            for user in users:
                _add(java, server, user, kdc.keytab(user))
            yield kdc
        finally:
            server.stop()


def _add(java: Any, server: Any, principal: str, keytab: Path) -> None:
    server.createPrincipal(principal)
    server.exportPrincipal(principal, java.java.io.File(str(keytab)))


def _start(java: Any, kdc: Kdc) -> Any:
    # It writes a krb5.conf of its own there.
    work = kdc.directory / "kdc"
    work.mkdir()
    server = java.org.apache.kerby.kerberos.kerb.server.SimpleKdcServer()
    server.setWorkDir(java.java.io.File(str(work)))
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
