"""An issuer of OAuth tokens: client credentials for a JWT, and the keys that verify it."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"


class TokenIssuer(ThreadingHTTPServer):
    """Answers on loopback; ``/token/60`` issues tokens that are valid for 60 s."""

    daemon_threads = True

    def __init__(self, clients: Mapping[str, str]) -> None:
        """Take the secrets of clients by their ids, and listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clients = dict(clients)
        self.key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server_port}"

    def token(self, subject: str, seconds: float) -> str:
        """Return a token for a client."""
        now = time.time()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "scope": "kafka",
            "iat": int(now),
            "exp": int(now + seconds),
        }
        return jwt.encode({"alg": "RS256", "kid": "k1", "typ": "JWT"}, claims, self.key)


class _Handler(BaseHTTPRequestHandler):
    server: TokenIssuer

    def do_GET(self) -> None:
        """Return the keys that verify tokens."""
        self._answer(200, KeySet([self.server.key]).as_dict(private=False))

    def do_POST(self) -> None:
        """Return a token for the id and the secret of a client (RFC 6749, 4.4)."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        client_id, secret = self._credentials() or (
            form.get("client_id", ""),
            form.get("client_secret", ""),
        )
        if form.get("grant_type") != "client_credentials":
            self._answer(400, {"error": "unsupported_grant_type"})
        elif not secret or self.server.clients.get(client_id) != secret:
            refusal = {"error": "invalid_client", "error_description": "Unknown id or secret"}
            self._answer(401, refusal)
        else:
            seconds = float(self.path.removeprefix("/token").strip("/") or 300)
            token = self.server.token(client_id, seconds)
            self._answer(
                200,
                {"access_token": token, "token_type": "Bearer", "expires_in": int(seconds)},
            )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Write no log."""

    def _credentials(self) -> tuple[str, str] | None:
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
        return client_id, secret

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def run_token_issuer(clients: Mapping[str, str]) -> Iterator[TokenIssuer]:
    """Run an issuer for clients with these secrets."""
    issuer = TokenIssuer(clients)
    thread = threading.Thread(target=issuer.serve_forever, name="token issuer")
    thread.start()
    try:
        yield issuer
    finally:
        issuer.shutdown()
        thread.join()
        issuer.server_close()
