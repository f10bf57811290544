"""Effects of options on the machine: none by default, and the intended ones once allowed."""

from __future__ import annotations

import _ctypes_test  # type: ignore[import-not-found]
import base64
import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import pytest

from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.bootstrap.option_policy import operator_policy
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import RESTRICTED, AllowList

from ..servers.http_server import Request, Response, serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Settings = dict[str, str]

LIBRARY: Final = str(_ctypes_test.__file__)
"""A library that is no plugin of librdkafka and no engine of OpenSSL, which says so when loaded."""

SSL: Final = {"security.protocol": "SSL"}
OIDC: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
}
SECRET: Final = {"sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": "s3cret"}
JWT_BEARER: Final = {
    "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
    **{f"sasl.oauthbearer.assertion.claim.{claim}": claim for claim in ("aud", "iss", "sub")},
}
ASSERTION: Final = "a.signed.assertion"
RESTRICTED_NAMES: Final = frozenset(setting.name for setting in RESTRICTED)


class TokenEndpoint:
    """An identity provider that remembers what it was asked, and issues no token."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.requests: list[str] = []

    @contextmanager
    def serving(self) -> Iterator[TokenEndpoint]:
        with serving(self._refuse) as url:
            self.url = f"{url}/token"
            yield self

    def _refuse(self, request: Request) -> Response:
        self.requests.append(request.body.decode())
        return Response(status=401)

    @property
    def login(self) -> Settings:
        """Settings that make a client ask for a token, without a secret."""
        return OIDC | {"sasl.oauthbearer.token.endpoint.url": self.url}


@pytest.fixture
def endpoint():
    with TokenEndpoint().serving() as endpoint:
        yield endpoint


def failure(settings: Mapping[str, str]) -> str:
    options = {f"kafka.{name}": value for name, value in settings.items()} | {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "500",
        "client": "confluent",
        "subscribe": "t",
    }
    with pytest.raises(PysparkKafkaError) as caught:
        ask_for_topics(options)
    return str(caught.value)


def ask_for_topics(options: Mapping[str, str]) -> None:
    parsed = parse_source_options(options, QueryKind.BATCH, operator_policy())
    with closing_clients(container_for(parsed)) as container:
        container.offset_fetcher().partitions(parsed.subscription)


def failure_once_allowed(
    monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str], *lists: tuple[AllowList, str]
) -> str:
    """Return the error after the operator allowed what was refused before."""
    refused = failure(settings)
    for name in settings.keys() & RESTRICTED_NAMES:
        assert f"Option 'kafka.{name}' is refused, because it " in refused
    for entries, text in lists:
        monkeypatch.setenv(entries.variable, text)
    return failure(settings)


@pytest.mark.parametrize(
    ("settings", "entries", "entry", "words"),
    [
        ({"plugin.library.paths": LIBRARY}, AllowList.FILES, LIBRARY, 'symbol "conf_init"'),
        (
            {"ssl.engine.location": LIBRARY} | SSL,
            AllowList.FILES,
            LIBRARY,
            "engine initialization failed",
        ),
        (
            {"ssl.engine.id": "nothing", "ssl.engine.location": LIBRARY} | SSL,
            AllowList.OPTIONS,
            "ssl.engine.id,ssl.engine.location",
            "engine initialization failed",
        ),
        (
            {"ssl.providers": "nothing"} | SSL,
            AllowList.OPTIONS,
            "ssl.providers",
            'Failed to load OpenSSL provider "nothing"',
        ),
        (
            {"sasl.oauthbearer.metadata.authentication.type": "azure_imds"} | OIDC,
            AllowList.OPTIONS,
            "sasl.oauthbearer.metadata.authentication.type",
            "for Azure IMDS authentication",
        ),
        (
            {"offset.store.method": "file", "offset.store.path": "/nowhere/offsets"},
            AllowList.OPTIONS,
            "offset.store.method,offset.store.path",
            "No Kafka broker answered",
        ),
    ],
    ids=["plugin", "engine", "engine by name", "provider", "metadata service", "offset store"],
)
def test_a_dangerous_setting_works_once_allowed(monkeypatch, settings, entries, entry, words):
    """The message of librdkafka shows that it used the setting, which it did not before."""
    told = failure_once_allowed(monkeypatch, settings, (entries, entry))
    assert words in told
    assert "is refused" not in told


def test_a_token_endpoint_is_asked_once_allowed(monkeypatch, endpoint):
    settings = endpoint.login | SECRET
    assert "sends requests to a URL" in failure(settings)
    monkeypatch.setenv(AllowList.URLS.variable, f"{endpoint.url}2")
    assert "sends requests to a URL" in failure(settings)
    assert endpoint.requests == []
    monkeypatch.setenv(AllowList.URLS.variable, f"{endpoint.url}2,{endpoint.url}")
    assert "KAFKA_AUTHENTICATION_FAILED" in failure(settings)
    assert endpoint.requests[0] == "grant_type=client_credentials"


def test_authorities_of_a_token_endpoint_are_read_once_allowed(monkeypatch):
    endpoint = TokenEndpoint("https://127.0.0.1:1/token")
    settings = endpoint.login | SECRET | {"https.ca.location": "/nowhere/ca.pem"}
    lists = (AllowList.URLS, endpoint.url), (AllowList.FILES, "/nowhere/ca.pem")
    told = failure_once_allowed(monkeypatch, settings, *lists)
    assert "'kafka.https.ca.location' cannot be read: [Errno 2] No such file" in told


def test_an_assertion_is_read_once_allowed(monkeypatch, endpoint, tmp_path):
    path = tmp_path / "assertion"
    path.write_text(ASSERTION)
    settings = {
        **endpoint.login,
        **{name: text for name, text in JWT_BEARER.items() if "claim" not in name},
        "sasl.oauthbearer.assertion.file": str(path),
    }
    lists = (AllowList.URLS, endpoint.url), (AllowList.FILES, str(path))
    assert ASSERTION not in failure_once_allowed(monkeypatch, settings, *lists)
    assert parse_qs(endpoint.requests[0])["assertion"] == [ASSERTION]


def test_an_assertion_is_signed_once_allowed(monkeypatch, endpoint, tmp_path):
    key, template = tmp_path / "key.pem", tmp_path / "template.json"
    made = ["openssl", "genpkey", "-algorithm", "RSA", "-out", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    template.write_text('{"header": {"kid": "mine"}, "payload": {"role": "reader"}}')
    settings = {
        **endpoint.login,
        **JWT_BEARER,
        "sasl.oauthbearer.assertion.private.key.file": str(key),
        "sasl.oauthbearer.assertion.jwt.template.file": str(template),
    }
    files = f"{key},{template}"
    lists = (AllowList.URLS, endpoint.url), (AllowList.FILES, files)
    assert "PRIVATE KEY" not in failure_once_allowed(monkeypatch, settings, *lists)
    [assertion] = parse_qs(endpoint.requests[0])["assertion"]
    header, payload = (
        json.loads(base64.urlsafe_b64decode(part + "==")) for part in assertion.split(".")[:2]
    )
    assert header["kid"] == "mine"
    assert payload["role"] == "reader"
