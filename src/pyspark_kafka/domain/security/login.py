"""SASL: the login, from the settings or a JAAS line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..options.settings_table import CALLBACK_HANDLERS, OAUTH_SETTINGS
from .oauth import AWS_MSK_IAM, MSK_MODULE, OAUTH_MODULE, OAUTHBEARER, SHADED, token_source
from .secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .oauth import TokenSource


_JAAS: Final = "Option 'kafka.sasl.jaas.config'"
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_CLASS: Final = re.compile(r"[a-z]\w*(?:\.\w+)+\.[A-Z]\w*")

_MECHANISMS: Final[Mapping[str, tuple[str, ...]]] = {
    _PLAIN_MODULE: ("PLAIN",),
    _SCRAM_MODULE: ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    _KERBEROS_MODULE: ("GSSAPI",),
    OAUTH_MODULE: (OAUTHBEARER,),
    MSK_MODULE: (AWS_MSK_IAM,),
}
_WITH_TOKENS: Final = (OAUTHBEARER, AWS_MSK_IAM)
_WITH_PASSWORD: Final = frozenset(
    mechanism for module in (_PLAIN_MODULE, _SCRAM_MODULE) for mechanism in _MECHANISMS[module]
)


@final
@dataclass(frozen=True, slots=True)
class Login:
    """How a client authenticates itself.

    A delegation token's id is the user name, and its HMAC the password (KIP-48).
    """

    mechanism: str
    username: str = ""
    password: Secret = field(default=Secret(), repr=False)
    service_name: str = ""
    keytab: str = ""
    principal: str = ""
    uses_ticket_cache: bool = False
    ticket_cache: str = ""
    is_delegation_token: bool = False
    tokens: TokenSource | None = None
    librdkafka: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The settings by which librdkafka gets tokens itself, without ``tokens``."""


def read_login(settings: Mapping[str, str]) -> Login:
    """Return the login.

    :raises ValueError: if it cannot be used; no message contains a password.
    """
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    mechanism = mechanism.upper()
    if mechanism in _WITH_TOKENS:
        return _token_login(settings, mechanism)
    _refuse_handlers(settings)
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


def _token_login(settings: Mapping[str, str], mechanism: str) -> Login:
    text = settings.get("sasl.jaas.config", "")
    _, options = _login_module(text, mechanism) if text else ("", {})
    tokens = token_source(settings, options)
    own = () if tokens else OAUTH_SETTINGS
    kept = tuple((name, settings[name]) for name in own if name in settings)
    return Login(mechanism, tokens=tokens, librdkafka=kept)


def _refuse_handlers(settings: Mapping[str, str]) -> None:
    for name in CALLBACK_HANDLERS:
        if settings.get(name):
            raise ValueError(
                f"Option 'kafka.{name}' requires 'kafka.sasl.mechanism' {OAUTHBEARER} or "
                f"{AWS_MSK_IAM}; leave it out for other mechanisms"
            )


def _login_module(text: str, mechanism: str) -> tuple[str, Mapping[str, str]]:
    """Return the login module of a JAAS line, which has to be the mechanism's, and its options."""
    module, options = jaas_entry(text)
    if module not in _MECHANISMS:
        # Another word than a class may be a password in the wrong place.
        shown = f" '{module}'" if _CLASS.fullmatch(module) else ""
        raise ValueError(
            f"{_JAAS}: the login module{shown} is not supported: no Java class runs here; use "
            "the login module of PLAIN, SCRAM, OAUTHBEARER, Kerberos or MSK IAM"
        )
    if mechanism not in _MECHANISMS[module]:
        wanted = " or ".join(_MECHANISMS[module])
        simple = module.rpartition(".")[2]
        raise ValueError(
            f"{_JAAS}: {simple} requires 'kafka.sasl.mechanism' {wanted}, not {mechanism}"
        )
    return module, options


def _jaas_login(text: str, mechanism: str, service_name: str) -> Login:
    module, options = _login_module(text, mechanism)
    if module == _KERBEROS_MODULE:
        return _kerberos_login(options, service_name)
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise ValueError(f"{_JAAS}: the login module has no {' and no '.join(missing)}")
    by_token = module == _SCRAM_MODULE and options.get("tokenauth", "").lower() == "true"
    return Login(
        mechanism,
        options["username"],
        Secret(options["password"]),
        is_delegation_token=by_token,
    )


def _kerberos_login(options: Mapping[str, str], service_name: str) -> Login:
    name = options.get("serviceName", "")
    if name and service_name and name != service_name:
        raise ValueError(
            f"{_JAAS}: serviceName '{name}' is not the '{service_name}' of "
            "'kafka.sasl.kerberos.service.name'"
        )
    by_keytab = options.get("useKeyTab", "").lower() == "true"
    return Login(
        "GSSAPI",
        service_name=name or service_name,
        keytab=options.get("keyTab", "") if by_keytab else "",
        principal=options.get("principal", ""),
        uses_ticket_cache=not by_keytab,
        ticket_cache="" if by_keytab else options.get("ticketCache", ""),
    )


def jaas_entry(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the login module and its options; no message repeats what may be a password."""
    tokens = list(_jaas_tokens(text))
    words = [word for word, _ in tokens]
    if len(tokens) < 2 or words[1].lower() not in _FLAGS:
        raise ValueError(
            f"{_JAAS} must be a login module's class, one of required, requisite, sufficient "
            'and optional, and options as name="value", with a semicolon at the end'
        )
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != _END:
        name, equals, value = (*tokens[position : position + 3], _END, _END)[:3]
        if name == _EQUALS or equals != _EQUALS or value in (_EQUALS, _END):
            raise ValueError(
                f"{_JAAS}: option {(position + 1) // 3} of the login module is not of the form "
                'name="value"'
            )
        options[name[0]] = value[0]
        position += 3
    if position >= len(tokens):
        raise ValueError(f"{_JAAS} does not end with a semicolon")
    if position + 1 < len(tokens):
        raise ValueError(f"{_JAAS} must hold one login module, and has text after it")
    return words[0].removeprefix(SHADED), options


_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_EQUALS: Final = ("=", False)
_END: Final = (";", False)

_JAAS_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | //[^\n\r]* | /\*.*?\*/ )
  | (?P<sign> [=;] )
  | "(?P<double> (?: [^"\\\n\r] | \\. )* ) (?: " | (?=[\n\r]) | \Z )
  | '(?P<single> (?: [^'\\\n\r] | \\. )* ) (?: ' | (?=[\n\r]) | \Z )
  | (?P<word> (?: (?! //|/\* ) [^\s=;"'] )+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def _jaas_tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the tokens of Java's ``StreamTokenizer``, each with whether it was quoted."""
    position = 0
    while position < len(text):
        found = _JAAS_TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"{_JAAS} cannot be read from character {position + 1} on")
        position = found.end()
        match found.lastgroup:
            case "double" | "single":
                yield _ESCAPE.sub(_unescaped, found[found.lastgroup]), True
            case "sign" | "word":
                yield found[0], False


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
