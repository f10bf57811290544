"""An issuer of OAuth tokens: client credentials for a JWT, and the keys that verify it."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from .http_server import Request, Response, serving

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"


class TokenIssuer:
    """Answers on loopback; ``/token/60`` issues tokens that are valid for 60 s."""

    def __init__(self, clients: Mapping[str, str]) -> None:
        self.url = ""
        """Where it answers."""

        self._clients = dict(clients)
        self._key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})

    def respond(self, request: Request) -> Response:
        """Return a token for the id and the secret of a client (RFC 6749, 4.4), or the keys."""
        if not request.path.startswith("/token"):
            return _json(KeySet([self._key]).as_dict(private=False))
        form = request.form
        client_id, secret = _credentials(request) or (
            form.get("client_id", ""),
            form.get("client_secret", ""),
        )
        if form.get("grant_type") != "client_credentials":
            return _json({"error": "unsupported_grant_type"}, 400)
        if not secret or self._clients.get(client_id) != secret:
            refusal = {"error": "invalid_client", "error_description": "Unknown id or secret"}
            return _json(refusal, 401)
        seconds = float(request.path.removeprefix("/token").strip("/") or 300)
        token = self._token(client_id, seconds)
        return _json({"access_token": token, "token_type": "Bearer", "expires_in": int(seconds)})

    def _token(self, subject: str, seconds: float) -> str:
        now = time.time()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "scope": "kafka",
            "iat": int(now),
            "exp": int(now + seconds),
        }
        return jwt.encode({"alg": "RS256", "kid": "k1", "typ": "JWT"}, claims, self._key)


def _credentials(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
    return client_id, secret


def _json(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content).encode(), status)


@contextmanager
def run_token_issuer(clients: Mapping[str, str]) -> Iterator[TokenIssuer]:
    issuer = TokenIssuer(clients)
    with serving(issuer.respond) as issuer.url:
        yield issuer
