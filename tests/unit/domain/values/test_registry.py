from typing import Final

import pytest

from pyspark_kafka.domain.options.option import REGISTRY_PREFIX
from pyspark_kafka.domain.security.secrets import Secret, holds_secret, is_secret
from pyspark_kafka.domain.security.tls import Store
from pyspark_kafka.domain.values.registry import (
    DEFAULT_TIMEOUT_MS,
    REGISTRY_SETTINGS,
    RegistryOptions,
    RegistryServer,
    context_of,
    in_context_of,
    is_descriptor,
    registry_problems,
    registry_settings,
    with_registry_names,
)
from tests.documents import DOCS

URL: Final = "https://registry:8081"
PASSWORD: Final = "hunter2"  # noqa: S105


def options(url: str = URL, *settings: str) -> RegistryOptions:
    """Return options; each setting is ``name=value``."""
    found = [each.partition("=")[::2] for each in settings]
    return RegistryOptions(url, tuple(found))


def test_a_url_alone_has_no_login_and_verified_tls():
    found = registry_settings(options())
    assert found.servers == (RegistryServer(URL),)
    assert (found.token, found.headers, found.timeout_ms) == ("", (), 20_000)
    assert found.tls.checks_hostname
    assert registry_problems(options()) == []


def test_the_guide_has_the_default_time_limit():
    page = " ".join((DOCS / "guides" / "typed-values.md").read_text().split())
    assert f"`schema.registry.request.timeout.ms` ({DEFAULT_TIMEOUT_MS // 1_000} seconds" in page


def test_several_urls_have_paths_and_logins_of_their_own():
    found = registry_settings(
        options("http://ada:p%40ss@a:1/api/ , https://b,https://user@[::1]:2//")
    )
    assert [(server.url, str(server.login)) for server in found.servers] == [
        ("http://a:1/api", "ada:p@ss"),
        ("https://b", ""),
        ("https://[::1]:2", "user:"),
    ]
    assert found.url == "http://a:1/api,https://b,https://[::1]:2"


def test_a_login_is_for_all_urls():
    basic = registry_settings(options("http://a,http://b", "basic.auth.user.info=ada:a:b"))
    assert [str(server.login) for server in basic.servers] == ["ada:a:b"] * 2
    bearer = registry_settings(
        options(
            URL,
            "bearer.auth.credentials.source=STATIC_TOKEN",
            "bearer.auth.token=t-1",
            "bearer.auth.logical.cluster=lsrc-1",
            "bearer.auth.identity.pool.id=pool-1",
        )
    )
    assert (str(bearer.token), bearer.servers[0].login) == ("t-1", "")
    assert bearer.headers == (
        ("target-sr-cluster", "lsrc-1"),
        ("Confluent-Identity-Pool-Id", "pool-1"),
    )


def test_stores_and_files_are_those_of_kafkas_clients():
    found = registry_settings(
        options(
            URL,
            "ssl.ca.location=/ca.pem",
            "ssl.certificate.location=/cert.pem",
            "ssl.key.location=/key.pem",
            "ssl.key.password=k",
            "ssl.truststore.location=/trust.jks",
            "ssl.truststore.password=t",
            "ssl.truststore.type=JKS",
            "ssl.endpoint.identification.algorithm=",
            "request.timeout.ms=500",
        )
    )
    assert (found.authorities, found.certificate, found.key) == ("/ca.pem", "/cert.pem", "/key.pem")
    assert found.tls.truststore == Store("truststore", "/trust.jks", Secret("t"))
    assert (str(found.tls.key_password), found.tls.checks_hostname) == ("k", False)
    assert found.timeout_ms == 500


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (options(""), "'schema.registry.url' is empty"),
        (options(" , "), "'schema.registry.url' is empty"),
        (options("registry:8081"), "'http://host:port'"),
        (options("http://"), "'http://host:port'"),
        (options("http://a:b"), "'http://host:port'"),
        (options("http://a:0"), "'http://host:port'"),
        (options("http://[a"), "'http://host:port'"),
        (options("http://a..b"), "'http://host:port'"),
        (options(f"http://{'a' * 64}"), "'http://host:port'"),
        (options("http://a/?x=1"), "'http://host:port'"),
        (options("http://a/#x"), "'http://host:port'"),
        (options("http://a b"), "'http://host:port'"),
        (options("ftp://a"), "'http://host:port'"),
        (options(URL, "basic.auth.user.info=ada"), "must be 'user:password'"),
        (options(URL, "basic.auth.credentials.source=USER_INFO"), "USER_INFO needs"),
        (options(URL, "basic.auth.credentials.source=SASL_INHERIT"), "must be URL or USER_INFO"),
        (options("http://u:p@a", "basic.auth.user.info=u:p"), "set one of them"),
        (options("http://u:p@a", "bearer.auth.token=t"), "cannot be set with"),
        (options(URL, "basic.auth.user.info=u:p", "bearer.auth.token=t"), "cannot be set with"),
        (options(URL, "bearer.auth.credentials.source=OAUTHBEARER"), "must be STATIC_TOKEN"),
        (options(URL, "bearer.auth.token=a\nb"), "bearer.auth.token' has characters"),
        (options(URL, "bearer.auth.logical.cluster=ü"), "logical.cluster' has characters"),
        (options(URL, "request.timeout.ms=0"), "from 1 to 2147483647, got '0'"),
        (options(URL, "request.timeout.ms=1s"), "got '1s'"),
        (options(URL, "ssl.truststore.type=X"), "registry.ssl.truststore.type' must be"),
        (options(URL, "ssl.keystore.key=x"), "'schema.registry.ssl.keystore.key' and"),
        (options(URL, "foo=x"), "'schema.registry.foo' is not known"),
    ],
)
def test_each_problem_names_its_option(given, problem):
    [found] = registry_problems(given)
    assert problem in found
    assert found.startswith("Option")


def test_all_problems_are_found():
    given = options("x", "request.timeout.ms=0", "foo=1", "bearer.auth.token=ü")
    assert len(registry_problems(given)) == 4
    with pytest.raises(ValueError, match="url"):
        registry_settings(given)


def test_no_secret_is_shown():
    url = f"https://ada:{PASSWORD}@a,https://b"
    for given in (
        options(url, f"bearer.auth.token={PASSWORD}"),
        options(url.replace("https", "x"), f"basic.auth.user.info={PASSWORD}"),
        options(URL, f"basic.auth.user.info=ada:{PASSWORD}", f"ssl.keystore.password={PASSWORD}"),
        options(URL, f"ssl.key.password={PASSWORD}", f"bearer.auth.token={PASSWORD}"),
    ):
        problems = registry_problems(given)
        shown = f"{given!r} {problems}" + (f" {registry_settings(given)!r}" if not problems else "")
        assert PASSWORD not in shown


@pytest.mark.parametrize(
    "given",
    [
        options(f"http://ann:{PASSWORD}@a", f"basic.auth.user.info=ann:{PASSWORD}"),
        options(f"http://a,ftp://ann:{PASSWORD}@b"),
        options(f"http://ann:{PASSWORD}@[b"),
        options(f"http://ann:{PASSWORD}@a", f"bearer.auth.token={PASSWORD}"),
        options(URL, f"bearer.auth.token=new\n{PASSWORD}"),
        options(URL, f"basic.auth.user.info={PASSWORD}"),
        options(URL, f"ssl.truststore.password={PASSWORD}", "ssl.truststore.type=X"),
        options(URL, f"ssl.keystore.key=PRIVATE {PASSWORD}", "request.timeout.ms=0"),
    ],
)
def test_no_secret_is_in_the_variables_of_a_traceback(given):
    with pytest.raises(ValueError, match="Option") as caught:
        registry_settings(given)
    frames = [entry.frame.f_locals for entry in caught.traceback[1:]]
    assert frames
    assert PASSWORD not in repr(frames)


def test_secrets_are_known_by_name():
    assert [name for name in REGISTRY_SETTINGS if is_secret(REGISTRY_PREFIX + name)] == [
        "basic.auth.user.info",
        "bearer.auth.token",
        "ssl.key.password",
        "ssl.truststore.password",
        "ssl.keystore.password",
        "ssl.keystore.key",
    ]
    assert holds_secret("schema.registry.url", f"https://ada:{PASSWORD}@a,https://b")
    assert holds_secret("schema.registry.url", f"https://b,https://ada:{PASSWORD}@a")
    assert not holds_secret("schema.registry.url", "https://a:1,https://b:2")


def test_errors_of_tls_name_the_options_of_the_registry():
    """Errors of stores name Kafka's options, which are of another connection."""
    assert with_registry_names("Option 'kafka.ssl.ca.location': x") == (
        "Option 'schema.registry.ssl.ca.location': x"
    )


@pytest.mark.parametrize(
    ("subject", "context", "imported"),
    [
        ("orders-value", "", "other"),
        (":.lsrc:orders-value", ".lsrc", ":.lsrc:other"),
        (":.lsrc:a:b", ".lsrc", ":.lsrc:other"),
        (":.lsrc:", ".lsrc", ":.lsrc:other"),
        (":.:orders-value", "", "other"),
        (":orders-value", "", "other"),
        ("", "", "other"),
    ],
)
def test_the_context_of_a_subject_is_that_of_what_it_imports(subject, context, imported):
    assert context_of(subject) == context
    assert in_context_of(subject, "other") == imported
    assert in_context_of(subject, ":.own:other") == ":.own:other"


def test_descriptors_are_not_texts():
    assert [is_descriptor(text) for text in ("CgRhLnBy", "CgRhLnA=", "Cg==")] == [True] * 3
    texts = ("", "message M {}", "CgRhLnBy\n", "=", "a===", "\n\x07m.proto")
    assert not any(map(is_descriptor, texts))
