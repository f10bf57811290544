"""Which AWS credentials sign a token for Amazon MSK, and for which region."""

import base64
import json
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_kafka.adapters.security import cloud_tokens
from pyspark_kafka.adapters.security.cloud_tokens import MskTokenProvider
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.oauth import MskIam
from tests.servers.http_server import Request, Response, serving
from tests.servers.silent_listeners import silent_listener

CONFIG: Final = """
[profile other]
aws_access_key_id = AKIAOTHER
aws_secret_access_key = secret
"""

ASSUMED: Final = b"""
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
<SessionToken>session</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId>
</AssumedRoleUser></AssumeRoleResult></AssumeRoleResponse>
"""


@pytest.fixture(autouse=True)
def _aws(monkeypatch, tmp_path):
    """Have default credentials, a profile, and no machine's."""
    (tmp_path / "config").write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIADEFAULT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def signed(source: MskIam) -> dict[str, str]:
    """Return the parameters of the URL that a token is."""
    token = MskTokenProvider(source).token()
    url = base64.urlsafe_b64decode(f"{token.value}==").decode()
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_a_profile():
    """A profile of AWS's configuration is used instead of the default credentials."""
    for source, key in ((MskIam("r"), "AKIADEFAULT"), (MskIam("r", "other"), "AKIAOTHER")):
        assert signed(source)["X-Amz-Credential"].startswith(f"{key}/")


def test_a_role_is_assumed_with_the_default_credentials(monkeypatch):
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(ASSUMED, headers=(("Content-Type", "text/xml"),))

    with serving(respond) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        found = signed(MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r", session_name="me"))
    assert found["X-Amz-Credential"].startswith("ASIAROLE/")
    assert "/us-east-2/" in found["X-Amz-Credential"]
    assert found["X-Amz-Security-Token"] == "session"
    [request] = requests
    assert request.form["RoleArn"] == "arn:aws:iam::1:role/r"
    assert request.form["RoleSessionName"] == "me"
    # The URL is no longer served.
    with pytest.raises(TokenUnavailableError, match="EndpointConnectionError"):
        signed(MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r"))


def test_the_default_region_is_used_if_the_brokers_names_have_none(monkeypatch):
    with pytest.raises(AuthenticationError, match="set AWS_DEFAULT_REGION"):
        signed(MskIam())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert "/eu-west-1/" in signed(MskIam())["X-Amz-Credential"]


def sts(code: str, status: int = 400) -> Callable[[Request], Response]:
    """Return what answers as STS with an error."""
    body = (
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>'
        f"<Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    )
    return lambda _: Response(body.encode(), status, (("Content-Type", "text/xml"),))


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDenied", 403, AuthenticationError),
        ("InvalidClientTokenId", 403, AuthenticationError),
        ("SignatureDoesNotMatch", 403, AuthenticationError),
        ("ExpiredToken", 403, AuthenticationError),
        ("ValidationError", 400, AuthenticationError),
        ("Throttling", 400, TokenUnavailableError),
        ("IDPCommunicationError", 400, TokenUnavailableError),
        ("InternalFailure", 500, TokenUnavailableError),
        ("ServiceUnavailable", 503, TokenUnavailableError),
    ],
)
def test_only_a_refusal_is_one(monkeypatch, code, status, kind):
    with serving(sts(code, status)) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        with pytest.raises(kind, match=code):
            signed(MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r"))


def test_a_metadata_service_that_is_busy_for_a_moment(monkeypatch):
    answers = [Response(status=503), Response(status=503)]
    credentials = {"AccessKeyId": "ASIAME", "SecretAccessKey": "s", "Token": "t"}
    credentials |= {"Code": "Success", "Expiration": "2099-01-01T00:00:00Z"}

    def respond(request: Request) -> Response:
        if answers:
            return answers.pop()
        if request.path.endswith("/token"):
            return Response(b"abc", headers=(("x-aws-ec2-metadata-token-ttl-seconds", "60"),))
        if request.path.endswith("security-credentials/"):
            return Response(b"role")
        return Response(json.dumps(credentials).encode())

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    with serving(respond) as url:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        with pytest.raises(TokenUnavailableError, match="no AWS credentials were found"):
            signed(MskIam("r"))
        assert signed(MskIam("r"))["X-Amz-Credential"].startswith("ASIAME/")


def test_a_service_that_does_not_answer_takes_some_seconds(monkeypatch):
    monkeypatch.setattr(cloud_tokens, "_WAIT_S", 0.1)
    with silent_listener() as listener:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{listener.address}")
        with pytest.raises(TokenUnavailableError, match="timeout"):
            signed(MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r"))
    assert listener.connections == 2
