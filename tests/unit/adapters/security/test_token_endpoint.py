"""Token endpoints that answer well, late, too much, or something else."""

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from pyspark_kafka.adapters.http import MAX_RESPONSE_BYTES, PostError, post
from pyspark_kafka.adapters.security.oidc import OidcTokenProvider
from pyspark_kafka.domain.security.errors import AuthenticationError, TokenUnavailableError
from pyspark_kafka.domain.security.oauth import ClientCredentials
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.ports.clock import Deadline
from tests.servers.certificates import Authority
from tests.servers.http_server import Request, Response, serving

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
        (answering(), "no 'access_token'"),
        (answering(5, expires_in=60), "no 'access_token'"),
        (answering("a b\1c", expires_in=60), "no 'access_token'"),
        (answering("t"), "when it expires"),
        (answering("a.b.c", expires_in=None), "when it expires"),
        (answering("t", expires_in="nan"), "when it expires"),
        (answering("t", expires_in=-1), "has expired already"),
        (lambda _: Response(b"<html>hello"), "no 'access_token'"),
        (lambda _: Response(b"[" * 100_000), "no 'access_token'"),
        (
            lambda _: Response(b'{"error": "invalid_client", "error_description": "x\\ny"}', 401),
            "refused: HTTP 401 invalid_client: x y.",
        ),
        (lambda _: Response(json.dumps({"error": SECRET}).encode(), 400), "HTTP 400 [hidden]"),
        (lambda _: Response(json.dumps({"error": "e" * 999}).encode(), 400), "eee…."),
        (lambda _: Response(b"", 302, (("Location", "http://localhost:1/"),)), "HTTP 302"),
    ],
)
def test_an_endpoint_that_gives_no_token(respond, text):
    assert text in refusal(respond)


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
    statuses = [503, 429, 200]

    def respond(_: Request) -> Response:
        return Response(b'{"access_token": "t", "expires_in": 60}', statuses.pop(0))

    with serving(respond) as url:
        assert OidcTokenProvider(source(url)).token().value == "t"
        assert statuses == []
        statuses += [401, 200]
        with pytest.raises(AuthenticationError):
            OidcTokenProvider(source(url)).token()
    assert statuses == [200]


@contextmanager
def talking(chunk: bytes, pause_s: float) -> Iterator[str]:
    """Listen, and send a chunk again and again on each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def talk() -> None:
            while not ended.is_set():
                with server.accept()[0] as peer:
                    while not ended.wait(pause_s):
                        try:
                            peer.sendall(chunk)
                        except OSError:
                            break

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            socket.create_connection(server.getsockname()).close()
            thread.join()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("chunk", [b"", b"H", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_endpoint_that_does_not_end(scheme, chunk):
    with talking(chunk, 0.02) as address:
        provider = OidcTokenProvider(source(f"{scheme}://{address}"), timeout_s=0.3)
        began = time.monotonic()
        with pytest.raises(TokenUnavailableError, match=f"from {scheme}://{address}/token "):
            provider.token()
        assert time.monotonic() - began < 20


def test_a_response_without_end():
    """No more than its limit is read of a response, and what is cut off by time is none."""
    with (
        talking(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1 << 16), 0.001) as address,
        pytest.raises(PostError, match=f"exceeds {MAX_RESPONSE_BYTES} bytes"),
    ):
        post(f"http://{address}", b"", {}, Deadline.after(5))
    with (
        talking(b"HTTP/1.1 200 OK\r\n\r\n{}", 0.1) as address,
        pytest.raises(PostError, match="did not answer in time"),
    ):
        post(f"http://{address}", b"", {}, Deadline.after(0.3))


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
            OidcTokenProvider(source(url), timeout_s=0.3).token()
        with pytest.raises(ValueError, match=r"Option 'kafka\.https\.ca\.location' cannot be read"):
            OidcTokenProvider(source(url, ca_location="/no/such.pem"))
        with pytest.raises(ValueError, match=r"Option 'kafka\.https\.ca\.pem' cannot be read"):
            OidcTokenProvider(source(url, ca_pem="no certificate"))
