"""SASL: the login, from the settings or a JAAS line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .jaas import JAAS, jaas_entry
from .table import LOGIN_MODULE, MSK_IAM, OAUTH
from .values import Login, Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .setting import NeedsJvm

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_MECHANISMS: Final[Mapping[str, tuple[str, ...]]] = {
    _PLAIN_MODULE: ("PLAIN",),
    _SCRAM_MODULE: ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    _KERBEROS_MODULE: ("GSSAPI",),
}
_WITH_PASSWORD: Final = frozenset(
    mechanism for module in (_PLAIN_MODULE, _SCRAM_MODULE) for mechanism in _MECHANISMS[module]
)


def read_login(settings: Mapping[str, str]) -> Login:
    """Return the login.

    :raises ValueError: if it cannot be used; no message contains a password.
    """
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    mechanism = mechanism.upper()
    service_name = settings.get("sasl.kerberos.service.name", "")
    if settings.get("sasl.jaas.config"):
        return _jaas_login(settings["sasl.jaas.config"], mechanism, service_name)
    username = settings.get("sasl.username") or settings.get("sasl.plain.username", "")
    password = settings.get("sasl.password") or settings.get("sasl.plain.password", "")
    if mechanism in _WITH_PASSWORD and not (username and password):
        raise ValueError(
            f"Option 'kafka.sasl.mechanism' {mechanism} requires a user name and a password in "
            "'kafka.sasl.jaas.config'; a JVM's JAAS file is not read here"
        )
    return Login(
        mechanism,
        username,
        Secret(password),
        service_name,
        settings.get("sasl.kerberos.keytab", ""),
        settings.get("sasl.kerberos.principal", ""),
    )


def _jaas_login(text: str, mechanism: str, service_name: str) -> Login:
    module, options = jaas_entry(text)
    if module not in _MECHANISMS:
        raise ValueError(
            f"{JAAS}: the login module '{module}' is not supported: {replacement(module).instead}"
        )
    if mechanism not in _MECHANISMS[module]:
        wanted = " or ".join(_MECHANISMS[module])
        simple = module.rpartition(".")[2]
        raise ValueError(
            f"{JAAS}: {simple} requires 'kafka.sasl.mechanism' {wanted}, not {mechanism}"
        )
    if module == _KERBEROS_MODULE:
        return _kerberos_login(options, service_name)
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError(
            f"{JAAS}: delegation tokens ('tokenauth') are not supported; "
            "set a user name and a password"
        )
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise ValueError(f"{JAAS}: the login module has no {' and no '.join(missing)}")
    return Login(mechanism, options["username"], Secret(options["password"]))


def _kerberos_login(options: Mapping[str, str], service_name: str) -> Login:
    name = options.get("serviceName", "")
    if name and service_name and name != service_name:
        raise ValueError(
            f"{JAAS}: serviceName '{name}' is not the '{service_name}' of "
            "'kafka.sasl.kerberos.service.name'"
        )
    by_keytab = options.get("useKeyTab", "").lower() == "true"
    return Login(
        "GSSAPI",
        service_name=name or service_name,
        keytab=options.get("keyTab", "") if by_keytab else "",
        principal=options.get("principal", ""),
        uses_ticket_cache=not by_keytab,
    )


def replacement(class_name: str) -> NeedsJvm:
    """Return what to use instead of a Java class that logs in."""
    if "OAuthBearer" in class_name:
        return OAUTH
    return MSK_IAM if class_name.startswith("software.amazon.msk.") else LOGIN_MODULE
