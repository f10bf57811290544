"""The contract of every ``TokenProvider``, with stand-ins for the issuers on the loopback."""

import base64
import itertools
import json
import sys
import time
from collections.abc import Callable
from importlib import reload
from types import ModuleType
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_kafka.adapters.security.cloud_tokens import (
    AzureTokenProvider,
    GoogleTokenProvider,
    MskTokenProvider,
)
from pyspark_kafka.adapters.security.oidc import OidcTokenProvider, claims_of
from pyspark_kafka.adapters.security.tokens import PAUSE_MS, FunctionTokenProvider, RenewedTokens
from pyspark_kafka.domain.security.oauth import (
    AzureIdentity,
    ClientCredentials,
    GoogleCredentials,
    MskIam,
    TokenFunction,
)
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.ports.security.token_provider import Token
from pyspark_kafka.testing import TokenIssuer, TokenProviderContract
from tests.servers.http_server import Request, Response, serving

from .wrong.token_provider import Asking, Issuer

SECRET: Final = "hunter2"  # noqa: S105
LIFE_S: Final = 240


class HttpIssuer(TokenIssuer):
    """Issues numbered tokens by HTTP; ``show`` makes a response of a token and its life."""

    secret = SECRET

    def __init__(self, show: Callable[[str, Request], Response]) -> None:
        self._show = show
        self._numbers = itertools.count()
        self._valid: set[str] = set()
        self.refuses = False

    def respond(self, request: Request) -> Response:
        """Return a token, or a refusal."""
        if self.refuses:
            body = {"error": "invalid_client", "error_description": f"not {SECRET}"}
            return Response(json.dumps(body).encode(), 401)
        value = f"token-{next(self._numbers)}"
        self._valid.add(value)
        return self._show(value, request)

    def accepts(self, token: Token) -> bool:
        return token.value in self._valid

    def expire(self) -> None:
        self._valid.clear()

    def refuse(self) -> None:
        self.refuses = True

    def allow(self) -> None:
        self.refuses = False


def shown(**fields: object) -> Response:
    return Response(json.dumps(fields).encode())


class TestOidcTokenProvider(TokenProviderContract):
    @pytest.fixture
    def issuer(self):

        def show(value: str, request: Request) -> Response:
            credentials = base64.b64encode(f"me:{SECRET}".encode()).decode()
            assert request.headers["Authorization"] == f"Basic {credentials}"
            assert request.form == {"grant_type": "client_credentials", "scope": "kafka"}
            return shown(access_token=value, expires_in=LIFE_S)

        made = HttpIssuer(show)
        with serving(made.respond) as url:
            extensions = (("logicalCluster", "lkc-1"),)
            source = ClientCredentials(
                f"{url}/token", "me", Secret(SECRET), scope="kafka", extensions=extensions
            )
            made.provider = OidcTokenProvider(source)
            yield made


class TestAzureTokenProvider(TokenProviderContract):
    @pytest.fixture
    def issuer(self, monkeypatch):
        """Serve the tokens of a managed identity, as Azure's App Service does."""

        def show(value: str, request: Request) -> Response:
            assert request.form["resource"] == "https://ns.servicebus.windows.net"
            # A token of less than five minutes is not kept by the library.
            return shown(access_token=value, expires_on=str(int(time.time()) + LIFE_S))

        made = HttpIssuer(show)
        with serving(made.respond) as url:
            monkeypatch.setenv("IDENTITY_ENDPOINT", url)
            monkeypatch.setenv("IDENTITY_HEADER", SECRET)
            source = AzureIdentity("https://ns.servicebus.windows.net/.default")
            made.provider = AzureTokenProvider(source)
            yield made


class GoogleIssuer(HttpIssuer):
    """Issues tokens that brokers unpack from an unsigned JWT."""

    def respond(self, request: Request) -> Response:
        if request.path.endswith("/token"):
            found = super().respond(request)
        else:
            found = shown(email="me@project.iam.gserviceaccount.com", scopes=[], aliases=[])
        return Response(found.body, found.status, (("Metadata-Flavor", "Google"),))

    def accepts(self, token: Token) -> bool:
        inner = base64.urlsafe_b64decode(f"{token.value.rpartition('.')[2]}==").decode()
        claims = claims_of(token.value)
        assert claims["sub"] == token.principal == "me@project.iam.gserviceaccount.com"
        assert claims["exp"] == token.expires_ms // 1_000
        assert (claims["iss"], claims["scope"]) == ("Google", "kafka")
        return super().accepts(Token(inner, token.expires_ms))


class TestGoogleTokenProvider(TokenProviderContract):
    @pytest.fixture
    def issuer(self, monkeypatch, tmp_path_factory):
        """Serve Google's metadata, as a virtual machine has them."""
        from google.auth.compute_engine import _metadata

        made = GoogleIssuer(lambda value, _: shown(access_token=value, expires_in=LIFE_S))
        with serving(made.respond) as url:
            host = url.removeprefix("http://")
            monkeypatch.setenv("GCE_METADATA_HOST", host)
            monkeypatch.setenv("GCE_METADATA_IP", host)
            reload(_metadata)  # which reads them when it is imported
            monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path_factory.mktemp("gcloud")))
            monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
            made.provider = GoogleTokenProvider(GoogleCredentials())
            yield made


class AwsIssuer(TokenIssuer):
    """Has the credentials in the environment; MSK verifies the signature of each token."""

    secret = SECRET

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._environment = monkeypatch
        self.allow()
        self.provider = MskTokenProvider(MskIam("eu-west-1"))

    def accepts(self, token: Token) -> bool:
        url = base64.urlsafe_b64decode(f"{token.value}==").decode()
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert urlsplit(url).hostname == "kafka.eu-west-1.amazonaws.com"
        assert query["Action"] == "kafka-cluster:Connect"
        key, day, *scope = query["X-Amz-Credential"].split("/")
        assert (key, scope) == ("AKIAME", ["eu-west-1", "kafka-cluster", "aws4_request"])
        assert query["X-Amz-Date"].startswith(day)
        assert query["X-Amz-Expires"] == "900"
        return len(query["X-Amz-Signature"]) == 64 and token.expires_ms > 1_000 * time.time()

    def expire(self) -> None:
        """Do nothing: each token is signed again."""

    def refuse(self) -> None:
        self._environment.setenv("AWS_PROFILE", "missing")

    def allow(self) -> None:
        self._environment.delenv("AWS_PROFILE", raising=False)
        self._environment.setenv("AWS_ACCESS_KEY_ID", "AKIAME")
        self._environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


class TestMskTokenProvider(TokenProviderContract):
    @pytest.fixture
    def issuer(self, monkeypatch, tmp_path_factory):
        """Have AWS credentials in the environment only."""
        empty = tmp_path_factory.mktemp("aws")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(empty / "credentials"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(empty / "config"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        return AwsIssuer(monkeypatch)


class TestFunctionTokenProvider(TokenProviderContract):
    @pytest.fixture
    def issuer(self, monkeypatch):
        """Have a module with a function."""
        made = Issuer(Asking)
        module = ModuleType("my_tokens")
        module.__dict__["issue"] = made.provider.token
        monkeypatch.setitem(sys.modules, "my_tokens", module)
        made.provider = FunctionTokenProvider(TokenFunction("my_tokens:issue"))
        return made


class ClockedIssuer(Issuer):
    """Has a clock that a test sets forward."""

    def __init__(self) -> None:
        super().__init__(Asking)
        self._passed_ms = 0
        self.provider = RenewedTokens(
            self.provider, lambda: int(1_000 * time.time()) + self._passed_ms
        )

    def expire(self) -> None:
        super().expire()
        self._passed_ms += 1_000 * LIFE_S

    def allow(self) -> None:
        super().allow()
        self._passed_ms += PAUSE_MS


class TestRenewedTokens(TokenProviderContract):
    @pytest.fixture
    def issuer(self):
        """Keep the tokens of another provider."""
        return ClockedIssuer()
