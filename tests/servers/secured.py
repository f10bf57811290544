"""A broker with TLS, logins by every mechanism, and ACLs."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.brokers.settings import Node, free_ports
from pyspark_kafka.ports.clock import Deadline

from .certificates import Authority, truststore
from .kafka import SharedKafka
from .kdc import SERVICE, WEB_SERVICE, Kdc, keytab_login, start_kdc
from .listeners import cluster_listening
from .token_issuer import AUDIENCE, ISSUER, run_token_issuer

MODULES: Final = "org.apache.kafka.common.security"
STORE_PASSWORD: Final = "store-password"  # noqa: S105
PASSWORD: Final = 'p"w; 7c1e90b2d4'  # noqa: S105
"""Of each user, and the secret of the OAuth client; it has what a JAAS line must quote."""

SESSION_MS: Final = 10_000
"""How long a login lasts: clients have to log in again in the middle of a test."""

SHORT_SESSION_MS: Final = 2_000
"""The same without TLS, by GSSAPI and by SCRAM-SHA-512."""

TLS_MECHANISM: Final = "mTLS"
MECHANISMS: Final[Mapping[str, str]] = {
    "PLAIN": "plain-user",
    "SCRAM-SHA-256": "scram-256-user",
    "SCRAM-SHA-512": "scram-512-user",
    "OAUTHBEARER": "oauth-client",
    "GSSAPI": "kerberos-user",
    TLS_MECHANISM: "CN=tls-client",
}
"""The users who may do everything, by how they log in."""

ROTATED_SUITE: Final = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
"""The cipher suite of the listener ``rotated``, as Java spells it."""

GUEST: Final = "guest"
"""A user of PLAIN and of SCRAM-SHA-256 without any right: a test grants what it needs."""

ANY: Final = "*"

_LISTENERS: Final = (
    *("SASL_SSL", "SASL_PLAINTEXT", "SSL"),
    *("EXPIRED:SASL_SSL", "WRONG_HOST:SASL_SSL", "ROTATED:SSL"),
)
"""In the order of the broker's addresses below."""


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """Where the broker listens, and what its clients need.

    ``expired`` and ``wrong_host`` are SASL_SSL listeners whose certificates have expired and have
    another name. ``rotated`` is an SSL listener whose truststore a test may change; it has one
    version of TLS and one cipher suite. ``authority``, ``keystore`` and ``key`` are files.
    """

    nodes: tuple[Node, ...]
    sasl: str
    sasl_plaintext: str
    tls: str
    expired: str
    wrong_host: str
    rotated: str
    token_url: str
    kdc: Kdc
    directory: Path

    @property
    def cluster(self) -> SharedKafka:
        """The broker as its superuser sees it, without TLS and login."""
        return SharedKafka(self.nodes)

    @property
    def truststore(self) -> Path:
        return self.directory / "truststore.p12"

    @property
    def authority(self) -> Path:
        return self.directory / "authority.pem"

    @property
    def keystore(self) -> Path:
        """A PKCS12 store with the key of the client ``CN=tls-client``."""
        return self.directory / "client.p12"

    @property
    def log(self) -> Path:
        return self.nodes[0].directory / "server.log"

    def options(self, mechanism: str, **others: str) -> dict[str, str]:
        """Return the options of a query that logs in by a mechanism, in the words of Java.

        ``__`` in the name of a further option stands for a dot.
        """
        given = {name.replace("__", "."): value for name, value in others.items()}
        return {f"kafka.{name}": text for name, text in self._login(mechanism).items()} | given

    def plain_options(self, user: str, password: str = PASSWORD, **others: str) -> dict[str, str]:
        jaas = login_module("plain.PlainLoginModule", username=user, password=password)
        return self.options("PLAIN", kafka__sasl__jaas__config=jaas, **others)

    def add_user(self, user: str) -> dict[str, str]:
        """Add a user of SCRAM-SHA-256 without any right, and return the options of its queries."""
        credential = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_256, PASSWORD)
        with admin_client(self.cluster.bootstrap_servers, "a user", 30.0) as admin:
            admin.alter_user_scram_credentials([credential])
        self._await_login(user)
        jaas = login_module("scram.ScramLoginModule", username=user, password=PASSWORD)
        return self.options("SCRAM-SHA-256", kafka__sasl__jaas__config=jaas)

    def _await_login(self, user: str) -> None:
        # The controller has a user before the broker does. librdkafka keeps connecting.
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.sasl_plaintext,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "log_level": 0,
        }
        AdminClient(settings).list_topics(timeout=30.0)

    def grant(self, user: str, operation: str, resource: str, name: str = ANY) -> None:
        """Grant a user an operation on a resource, all in Kafka's words: ``Read``, ``Topic``.

        A name that ends with an asterisk is a prefix.
        """
        wanted = _allow(user, operation, resource, name)
        any_of_user = ACLFilter(
            f"User:{user}",
            None,
            ACLOperation.ANY,
            ACLPermissionType.ANY,
            ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
        )
        with admin_client(self.cluster.bootstrap_servers, "a grant", 30.0) as admin:
            admin.create_acls([wanted])
            # The controller has it before the broker does.
            assert Deadline.after(30.0).poll(
                lambda: wanted in admin.describe_acls(any_of_user)[0], 0.02
            )

    def _login(self, mechanism: str) -> dict[str, str]:
        trust = {
            "ssl.truststore.location": str(self.truststore),
            "ssl.truststore.password": STORE_PASSWORD,
        }
        if mechanism == TLS_MECHANISM:
            return {
                "bootstrap.servers": self.tls,
                "security.protocol": "SSL",
                "ssl.keystore.location": str(self.keystore),
                "ssl.keystore.password": STORE_PASSWORD,
                **trust,
            }
        return {
            "bootstrap.servers": self.sasl,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            **trust,
            **self._jaas(mechanism),
        }

    def _jaas(self, mechanism: str) -> dict[str, str]:
        user = MECHANISMS[mechanism]
        if mechanism == "OAUTHBEARER":
            module = login_module(
                "oauthbearer.OAuthBearerLoginModule", clientId=user, clientSecret=PASSWORD
            )
            return {
                "sasl.jaas.config": module,
                "sasl.login.callback.handler.class": (
                    f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
                ),
                "sasl.oauthbearer.token.endpoint.url": self.token_url,
            }
        if mechanism == "GSSAPI":
            return {
                "sasl.jaas.config": keytab_login(user, self.kdc.keytab(user)),
                "sasl.kerberos.service.name": "kafka",
            }
        simple = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        return {"sasl.jaas.config": login_module(simple, username=user, password=PASSWORD)}


def login_module(name: str, **options: str) -> str:
    """Return a JAAS line with one of Kafka's login modules."""
    quoted = {key: value.replace('"', '\\"') for key, value in options.items()}
    words = "".join(f' {key}="{value}"' for key, value in quoted.items())
    return f"{MODULES}.{name} required{words};"


@contextmanager
def run_secured() -> Iterator[SecuredBroker]:
    """Run the broker, and a KDC and an issuer of tokens for it."""
    with (
        tempfile.TemporaryDirectory(prefix="pyspark-kafka-secured-") as directory,
        run_token_issuer({MECHANISMS["OAUTHBEARER"]: PASSWORD}) as issuer,
        start_kdc(MECHANISMS["GSSAPI"], WEB_SERVICE) as kdc,
    ):
        root = Path(directory)
        config = _write_stores(root) | _sasl(f"{issuer.url}/jwks", kdc)
        ports = free_ports(len(_LISTENERS))
        addresses = [f"127.0.0.1:{port}" for port in ports]
        java = (
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.url}/jwks",
            f"-Djava.security.krb5.conf={kdc.krb5_conf}",
        )
        listeners = dict(zip(_LISTENERS, addresses, strict=True))
        with cluster_listening(listeners, config, java) as cluster:
            _add_users(cluster.bootstrap_servers)
            given: tuple[Any, ...] = (*addresses, f"{issuer.url}/token", kdc, root)
            yield SecuredBroker(cluster._nodes, *given)


def _write_stores(root: Path) -> dict[str, str]:
    """Write the stores of the broker and of clients, and return the settings of the broker."""
    authority = Authority()
    (root / "truststore.p12").write_bytes(truststore([authority], STORE_PASSWORD))
    (root / "authority.pem").write_text(authority.pem)
    certificates = {
        "broker": authority.issue("broker"),
        "expired": authority.issue("broker", is_expired=True),
        "wrong_host": authority.issue("broker", hosts=["elsewhere.test"]),
        "client": authority.issue("tls-client"),
    }
    for name, certificate in certificates.items():
        certificate.write_pkcs12(root / f"{name}.p12", STORE_PASSWORD)
    certificates["client"].write_pem(root / "client.pem")
    listeners = {
        f"listener.name.{name}.ssl.keystore.location": str(root / f"{name}.p12")
        for name in ("expired", "wrong_host")
    }
    return {
        "ssl.keystore.location": str(root / "broker.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.location": str(root / "truststore.p12"),
        "ssl.truststore.password": STORE_PASSWORD,
        # The subject of a certificate has an organization as well.
        "ssl.principal.mapping.rules": "RULE:^(CN=[^,]*),.*$/$1/",
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.rotated.ssl.client.auth": "required",
        "listener.name.rotated.ssl.enabled.protocols": "TLSv1.2",
        "listener.name.rotated.ssl.cipher.suites": ROTATED_SUITE,
        **listeners,
    }


def _sasl(keys_url: str, kdc: Kdc) -> dict[str, str]:
    users = {f"user_{user}": PASSWORD for user in (MECHANISMS["PLAIN"], GUEST)}
    oauth = "oauthbearer.OAuthBearer"
    by_mechanism = {
        "plain.sasl.jaas.config": login_module("plain.PlainLoginModule", **users),
        "scram-sha-256.sasl.jaas.config": login_module("scram.ScramLoginModule"),
        "scram-sha-512.sasl.jaas.config": login_module("scram.ScramLoginModule"),
        "oauthbearer.sasl.jaas.config": login_module(f"{oauth}LoginModule"),
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{MODULES}.{oauth}ValidatorCallbackHandler"
        ),
        "gssapi.sasl.jaas.config": keytab_login(SERVICE, kdc.service_keytab),
    }
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS.keys() - {TLS_MECHANISM}),
        "sasl.kerberos.service.name": "kafka",
        **{
            f"listener.name.{listener}.{name}": value
            for listener in ("sasl_ssl", "sasl_plaintext", "expired", "wrong_host")
            for name, value in by_mechanism.items()
        },
        "sasl.oauthbearer.jwks.endpoint.url": keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "connections.max.reauth.ms": str(SESSION_MS),
        **{
            f"listener.name.sasl_plaintext.{mechanism}.connections.max.reauth.ms": str(
                SHORT_SESSION_MS
            )
            for mechanism in ("gssapi", "scram-sha-512")
        },
        # Tests write records with old timestamps.
        "log.retention.ms": "-1",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "delegation-token-secret",
    }


def _add_users(servers: str) -> None:
    credentials = [
        UserScramCredentialUpsertion(user, mechanism, PASSWORD)
        for user, mechanism in (
            (MECHANISMS["SCRAM-SHA-256"], ScramMechanism.SCRAM_SHA_256),
            (GUEST, ScramMechanism.SCRAM_SHA_256),
            (MECHANISMS["SCRAM-SHA-512"], ScramMechanism.SCRAM_SHA_512),
        )
    ]
    rights = [
        _allow(user, operation, resource)
        for user in MECHANISMS.values()
        for resource, operation in (
            ("Topic", "All"),
            ("Group", "All"),
            ("Transactional_Id", "All"),
            ("Cluster", "Idempotent_Write"),
        )
    ]
    with admin_client(servers, "the users", 30.0) as admin:
        admin.alter_user_scram_credentials(credentials)
        admin.create_acls(rights)


def _allow(user: str, operation: str, resource: str, name: str = ANY) -> Any:
    named = "kafka-cluster" if resource == "Cluster" else name
    is_prefix = len(named) > 1 and named.endswith(ANY)
    return ACL(
        f"User:{user}",
        ANY,
        ACLOperation[operation.upper()],
        ACLPermissionType.ALLOW,
        ResourcePattern(
            ResourceType[resource.upper()],
            named.removesuffix(ANY) if is_prefix else named,
            ACLResourcePatternType.PREFIXED if is_prefix else ACLResourcePatternType.LITERAL,
        ),
    )
