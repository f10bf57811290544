"""Token endpoints that answer well, late, too much, or something else."""

import base64
import json
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Final

import pytest

from pyspark_kafka.adapters.http import MAX_RESPONSE_BYTES, RequestError, request
from pyspark_kafka.adapters.security.oidc import OidcTokenProvider
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.oauth import ClientCredentials
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.ports.clock import Deadline
from tests.servers.certificates import Authority
from tests.servers.http_server import Request, Response, serving
from tests.servers.silent_listeners import closing_listener, trickling_listener

SECRET: Final = "p&ss:w/rd"  # noqa: S105


def source(url: str, **others: str) -> ClientCredentials:
    made = ClientCredentials(f"{url}/token?x=1", "me", Secret(SECRET))
    return replace(made, **others)  # type: ignore[arg-type]


def refusal(respond: Callable[[Request], Response]) -> str:
    """Return the error of a login that an endpoint answers so."""
    with serving(respond) as url, pytest.raises(AuthenticationError) as raised:
        OidcTokenProvider(source(url)).token()
    told = str(raised.value)
    assert f"of the user 'me' by OAUTHBEARER at {url}/token was refused: " in told
    assert SECRET not in told
    return told


def answering(token: object = None, **fields: object) -> Callable[[Request], Response]:
    body = json.dumps({"access_token": token, **fields}).encode()
    return lambda _request: Response(body)


def jwt(**claims: object) -> str:
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, b"x"))


def test_the_form_has_the_grant_and_each_part_of_it_that_is_set():
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(b'{"access_token": "t", "expires_in": "60.0"}')

    with serving(respond) as url:
        for others in ({}, {"scope": "a b", "audience": "brokers", "encodes_header": True}):
            found = OidcTokenProvider(source(url, **others)).token()  # type: ignore[arg-type]
            assert (str(found.value), found.principal) == ("t", "me")
    plain, encoded = (base64.b64decode(each.headers["Authorization"][6:]) for each in requests)
    assert (plain, encoded) == (b"me:p&ss:w/rd", b"me:p%26ss%3Aw%2Frd")
    grant = {"grant_type": "client_credentials"}
    assert [each.form for each in requests] == [
        grant,
        grant | {"scope": "a b", "audience": "brokers"},
    ]
    assert requests[0].headers["Host"] == url.removeprefix("http://")


def test_a_jwt_says_what_the_response_does_not():
    """The principal and, without ``expires_in``, the expiry are claims of the token."""
    expires_s = int(time.time()) + 60
    with serving(answering(jwt(sub="ada", exp=expires_s))) as url:
        found = OidcTokenProvider(source(url)).token()
    assert (found.principal, found.expires_ms) == ("ada", 1_000 * expires_s)


@pytest.mark.parametrize(
    ("respond", "text"),
    [
        (
            lambda _: Response(b'{"error": "invalid_client", "error_description": "x\\ny"}', 401),
            "refused: HTTP 401 invalid_client: x y.",
        ),
        (lambda _: Response(json.dumps({"error": SECRET}).encode(), 400), "HTTP 400 [hidden]"),
        (lambda _: Response(json.dumps({"error": "e" * 999}).encode(), 400), "eee…."),
        (lambda _: Response(b"", 404), "refused: HTTP 404."),
    ],
)
def test_an_endpoint_that_refuses(respond, text):
    assert text in refusal(respond)


@pytest.mark.parametrize(
    ("respond", "text"),
    [
        (answering(), "no 'access_token'"),
        (answering(5, expires_in=60), "no 'access_token'"),
        (answering("a b\1c", expires_in=60), "no 'access_token'"),
        (answering("t"), "when it expires"),
        (answering("a.b.c", expires_in=None), "when it expires"),
        (answering("t", expires_in="nan"), "when it expires"),
        (answering("t", expires_in=-1), "has expired already"),
        (lambda _: Response(b"<html>hello"), "no 'access_token'"),
        (lambda _: Response(b"[" * 100_000), "no 'access_token'"),
        (lambda _: Response(b"", 302, (("Location", "http://localhost:1/"),)), "HTTP 302"),
        (lambda _: Response(json.dumps({"error": SECRET}).encode(), 500), "HTTP 500 [hidden]"),
        (lambda _: None, "closed connection"),
    ],
)
def test_an_answer_that_is_neither_a_token_nor_a_refusal(respond, text):
    """It may be of a proxy, or of an endpoint that starts: the next attempt asks again."""
    with serving(respond) as url:
        provider = OidcTokenProvider(source(url), timeout_s=0.5)
        with pytest.raises(TokenUnavailableError, match=re.escape(f"from {url}/token ")) as raised:
            provider.token()
    assert text in str(raised.value)
    assert SECRET not in str(raised.value)


CUT: Final = (
    b'Content-Length: 99\r\n\r\n{"access_token": "t", "expires_in": 60}',
    b'Transfer-Encoding: chunked\r\n\r\n26\r\n{"access_token": "t", "expires_in": 60}\r\n',
)


@pytest.mark.parametrize("rest", CUT)
def test_an_answer_that_is_cut_off_is_none(rest):
    with closing_listener(b"HTTP/1.1 200 OK\r\n" + rest) as listener:
        provider = OidcTokenProvider(source(f"http://{listener.address}"), timeout_s=1.3)
        with pytest.raises(TokenUnavailableError, match=r"IncompleteRead|InvalidChunk"):
            provider.token()
        assert listener.connections >= 2


@pytest.mark.parametrize("encodes_header", [False, True])
def test_an_endpoint_that_repeats_the_header(*, encodes_header):
    secret = Secret("hush/ %ä")

    def respond(request: Request) -> Response:
        header = request.headers["Authorization"]
        decoded = base64.b64decode(header.removeprefix("Basic ")).decode()
        return Response(json.dumps({"error": f"{header} is {decoded}"}).encode(), 401)

    with serving(respond) as url:
        provider = OidcTokenProvider(
            replace(source(url), client_secret=secret, encodes_header=encodes_header)
        )
        with pytest.raises(AuthenticationError) as raised:
            provider.token()
    assert "HTTP 401 Basic [hidden] is me:[hidden]." in str(raised.value)


def test_an_endpoint_that_is_overloaded_is_asked_again():
    statuses = [503, 429, 408, 425, 200]

    def respond(_: Request) -> Response:
        return Response(b'{"access_token": "t", "expires_in": 60}', statuses.pop(0))

    with serving(respond) as url:
        assert OidcTokenProvider(source(url)).token().value == "t"
        assert statuses == []
        statuses += [401, 200]
        with pytest.raises(AuthenticationError):
            OidcTokenProvider(source(url)).token()
    assert statuses == [200]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("sent", [b"", b"H" * 500, b"HTTP/1.1 100 Continue\r\n\r\n" * 500])
def test_an_endpoint_that_does_not_end(scheme, sent):
    with trickling_listener(sent, 0.02, step=len(sent) // 500 or 1) as listener:
        url = f"{scheme}://{listener.address}"
        provider = OidcTokenProvider(source(url), timeout_s=0.3)
        began = time.monotonic()
        with pytest.raises(TokenUnavailableError, match=f"from {url}/token "):
            provider.token()
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("body", "step", "timeout_s", "error"),
    [
        (bytes(MAX_RESPONSE_BYTES + 1), 1 << 16, 5, f"exceeds {MAX_RESPONSE_BYTES} bytes"),
        (b"{}" * 500, 2, 0.3, "not complete in time"),
    ],
)
def test_a_response_without_end(body, step, timeout_s, error):
    """No more than its limit is read of a response, and what is cut off by time is none."""
    with (
        trickling_listener(b"HTTP/1.1 200 OK\r\n\r\n" + body, 0.01, step) as listener,
        pytest.raises(RequestError, match=error),
    ):
        request("GET", f"http://{listener.address}", {}, Deadline.after(timeout_s))


def test_no_variable_of_an_error_shows_the_secret():
    """Sentry and ``pytest -l`` print the variables of all frames, of causes too."""
    secret, shown = Secret("hush-hush"), []
    for respond in (lambda _: None, lambda _: Response(b"", 503), lambda _: Response(b"", 401)):
        with serving(respond) as url:
            provider = OidcTokenProvider(replace(source(url), client_secret=secret), timeout_s=0.5)
            with pytest.raises((TokenUnavailableError, AuthenticationError)) as raised:
                provider.token()
        error: BaseException | None = raised.value
        while error is not None:
            shown += [repr(frame.f_locals) for frame in traceback_frames(error)]
            error = error.__cause__ or error.__context__
    encoded = base64.b64encode(b"me:hush-hush").decode()
    assert shown
    assert not [text for text in shown if "me:hush-hush" in text or encoded in text]


def traceback_frames(error: BaseException) -> list[FrameType]:
    """Return the frames of this package that an error passed."""
    found, traceback = [], error.__traceback__
    while traceback is not None:
        if "pyspark_kafka" in traceback.tb_frame.f_code.co_filename:
            found.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return found


def test_an_address_without_a_path_has_one():
    """``POST ?tenant=1`` is no request."""
    targets: list[str] = []

    def respond(request: Request) -> Response:
        targets.append(request.target)
        return Response()

    with serving(respond) as url:
        for end in ("?tenant=1", "", "/tökens"):
            request("POST", url + end, {}, Deadline.after(30))
    assert targets == ["/?tenant=1", "/", "/t%C3%B6kens"]


def test_an_authority_that_is_replaced_verifies_the_next_token(tmp_path):
    old, new = Authority(), Authority()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(new.issue("localhost", hosts=["localhost"]).write_pem(tmp_path / "k.pem"))
    trusted = tmp_path / "ca.pem"
    trusted.write_text(old.pem)
    with serving(answering("t", expires_in=60), tls) as url:
        provider = OidcTokenProvider(source(url, ca_location=str(trusted)), timeout_s=0.3)
        with pytest.raises(TokenUnavailableError, match="certificate verify failed"):
            provider.token()
        (tmp_path / "both.pem").write_text(old.pem + new.pem)
        (tmp_path / "both.pem").rename(trusted)
        assert provider.token().value == "t"


def test_an_endpoints_certificate_has_to_be_trusted(tmp_path):
    authority = Authority()
    certificate = authority.issue("localhost", hosts=["localhost"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.write_pem(tmp_path / "key.pem"))
    (tmp_path / "ca.pem").write_text(authority.pem)
    with serving(answering("t", expires_in=60), tls) as url:
        for trusted in ({"ca_location": str(tmp_path / "ca.pem")}, {"ca_pem": authority.pem}):
            assert OidcTokenProvider(source(url, **trusted)).token().value == "t"
        with pytest.raises(TokenUnavailableError, match="certificate verify failed"):
            OidcTokenProvider(source(url), timeout_s=3).token()
        with pytest.raises(ValueError, match=r"Option 'kafka\.https\.ca\.location' cannot be read"):
            OidcTokenProvider(source(url, ca_location="/no/such.pem"))
        with pytest.raises(ValueError, match=r"Option 'kafka\.https\.ca\.pem' cannot be read"):
            OidcTokenProvider(source(url, ca_pem="no certificate"))
