"""Which AWS credentials sign a token for Amazon MSK, and for which region."""

import base64
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_kafka.adapters.security.cloud_tokens import MskTokenProvider
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.oauth import MskIam
from tests.servers.http_server import Request, Response, serving

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
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    # The URL is not served any more.
    with pytest.raises(TokenUnavailableError, match="EndpointConnectionError"):
        signed(MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r"))


def test_the_default_region_is_used_if_the_brokers_names_have_none(monkeypatch):
    with pytest.raises(AuthenticationError, match="set AWS_DEFAULT_REGION"):
        signed(MskIam())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert "/eu-west-1/" in signed(MskIam())["X-Amz-Credential"]
