"""Requests to a schema registry, repeated until one deadline."""

from __future__ import annotations

import base64
import json
import random
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar, final

from ....domain.security.secrets import hide
from ....domain.values.errors import (
    IncompatibleSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from ....domain.values.registry import with_registry_names
from ....ports.clock import Deadline
from ...http import HttpClient, RequestError, Response, json_fields
from ...security.tls_context import CurrentContext, PemFiles
from ...security.tokens import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ....domain.values.registry import RegistryServer, RegistrySettings

T = TypeVar("T")

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""Many times the size that registries accept for a schema."""

MAX_CONNECT_S: Final = 5.0

_MIN_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 2.0

_UNKNOWN_CODES: Final = frozenset({40401, 40402, 40403, 40404, 40406})
"""No such subject, version or schema; the last two are for softly deleted subjects and versions."""

_UNKNOWN_NAMES: Final = frozenset(
    {"ArtifactNotFoundException", "ContentNotFoundException", "VersionNotFoundException"}
)
"""The errors of Apicurio's own API for unknown objects; others are for unknown paths."""

_ACCEPTED: Final = "application/vnd.schemaregistry.v1+json, application/json"
_COMPATIBLE_API: Final = re.compile(r"/apis/ccompat/v\d+$")

_CONFLICT: Final = 409
_REFUSALS: Final = frozenset({401, 403, 422})
_PASSING: Final = frozenset({408, 425, 429})
_SERVER_ERROR: Final = 500

_MAX_CONFLICT_TEXT: Final = 2_000
"""Registries describe in this text what is incompatible, and how."""

Fields: TypeAlias = "Mapping[str, Any]"


class NonsenseError(Exception):
    """An answer is not a schema registry's; the message has the reason."""


def json_object(content: bytes) -> Fields:
    """Return the fields of a JSON object.

    :raises NonsenseError: if it is not a JSON object.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise NonsenseError("its answer is not JSON") from None
    return as_object(found, "its answer")


def error_of(content: bytes) -> tuple[int, str]:
    """Return the error code and the message of a refusal; 0 and nothing if it has no code.

    The message is shown to users, so another server's, which may be secret, is left out.
    """
    fields = json_fields(content)
    code, message = fields.get("error_code"), fields.get("message")
    if type(code) is not int:
        return 0, ""
    return code, message if isinstance(message, str) else ""


def native_url(url: str) -> str | None:
    """Return the URL of Apicurio's own API, by the URL of its compatible API.

    Apicurio 2 and 3 have the version 2 of their API.
    """
    base, number = _COMPATIBLE_API.subn("/apis/registry/v2", url)
    return base if number else None


def as_object(found: object, what: str) -> Fields:
    """Return a value if it is a JSON object.

    :raises NonsenseError: if it is not an object; ``what`` names it.
    """
    if not isinstance(found, dict):
        refuse(f"{what} is no JSON object")
    return found


def refuse(reason: str) -> NoReturn:
    """Raise the error of an answer that is wrong."""
    raise NonsenseError(reason)


@final
@dataclass(frozen=True, slots=True)
class Request:
    """A request; ``what`` names its object in errors, as in "the registry has no schema 5"."""

    method: str
    path: str
    what: str
    body: Mapping[str, Any] | None = None
    read: Callable[[bytes], Fields] = json_object
    is_native: bool = False
    """Whether it is of Apicurio's own API."""
    group: str = ""
    """Apicurio's group of the subject, if it is not the default one."""


@final
class RestClient:
    """Sends requests to the servers of a registry in turn; any thread may use it.

    Redirects are not followed: logins are for the servers that the settings name.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        """Read the files of TLS; no request is sent yet.

        :raises ValueError: if they cannot be used.
        """
        self._settings = settings
        self._timeout_s = settings.timeout_ms / 1_000
        tls = _current_context(settings)
        self._client = HttpClient(
            lambda: tls.context if tls else None, uses_proxies=True, max_connect_s=MAX_CONNECT_S
        )
        self._first = 0
        """The server that answered last, so that not every request waits for one that is down."""

    def request(self, request: Request, parse: Callable[[Mapping[str, Any]], T]) -> T:
        """Return the answer as parsed by ``parse``, which raises ``NonsenseError`` for a wrong one.

        :raises UnknownSchemaError: if the registry lacks the requested object.
        :raises IncompatibleSchemaError: if it does not accept a schema.
        :raises RegistryRefusedError: if it refuses the login or the request.
        :raises RegistryUnavailableError: if there is no usable answer before the deadline.
        """
        return self._request(request, parse, may_repeat=True)

    def request_once(self, request: Request, parse: Callable[[Mapping[str, Any]], T]) -> T:
        """Return as ``request``, but ask each server once: the answer is optional."""
        return self._request(request, parse, may_repeat=False)

    def _request(
        self, request: Request, parse: Callable[[Mapping[str, Any]], T], *, may_repeat: bool
    ) -> T:
        deadline = Deadline.after(self._timeout_s)
        pause_s = _MIN_PAUSE_S
        while True:
            failures: list[RequestError] = []
            unknown: UnknownSchemaError | None = None
            servers, first = self._settings.servers, self._first
            for place in (*range(first, len(servers)), *range(first)):
                try:
                    found = parse(request.read(self._answer(servers[place], request, deadline)))
                except NonsenseError as error:
                    failures.append(RequestError(str(error)))
                except RequestError as error:
                    failures.append(error)
                except UnknownSchemaError as error:
                    # Another server may be ahead, even one that does not answer now: servers follow
                    # one that registers schemas.
                    unknown = error
                else:
                    self._first = place
                    return found
            if unknown is not None and not failures:
                raise unknown
            may_pass = may_repeat and any(failure.may_pass for failure in failures)
            if not may_pass or deadline.remaining <= pause_s:
                reason = self._shown(str(failures[-1]))
                raise RegistryUnavailableError(self._settings.url, reason) from None
            time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def close(self) -> None:
        """Close the connections of this process."""
        self._client.close()

    def _answer(self, server: RegistryServer, request: Request, deadline: Deadline) -> bytes:
        """Return the content of a good answer."""
        # Half of the time that is left, so that a silent server does not take all of it, but at
        # least a server's share of half of the whole time.
        remaining_s = deadline.remaining
        share_s = self._timeout_s / (2 * len(self._settings.servers))
        seconds = max(0.001, min(remaining_s, max(remaining_s / 2, share_s)))
        base = native_url(server.url) if request.is_native else server.url
        response = self._client.request(
            request.method,
            f"{base}/{request.path}",
            self._headers(server, request),
            Deadline.after(seconds),
            body=None if request.body is None else json.dumps(request.body).encode(),
            max_bytes=MAX_RESPONSE_BYTES,
        )
        if 200 <= response.status < 300:
            return response.body
        self._raise_refusal(request, response)
        raise RequestError(
            _described(response),
            may_pass=response.status in _PASSING or response.status >= _SERVER_ERROR,
        )

    def _headers(self, server: RegistryServer, request: Request) -> dict[str, str]:
        headers = {
            "Accept": "*/*" if request.is_native else _ACCEPTED,
            **dict(self._settings.headers),
        }
        if request.group:
            headers["X-Registry-GroupId"] = request.group
        if request.body is not None:
            headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
        if self._settings.token:
            headers["Authorization"] = f"Bearer {self._settings.token!s}"
        elif server.login:
            headers["Authorization"] = f"Basic {_base64(server.login)}"
        return headers

    def _raise_refusal(self, request: Request, response: Response) -> None:
        """Raise the error of a refusal if the user or the data caused it."""
        url = self._settings.url
        code, message = error_of(response.body)
        if response.status == 404 and (
            _is_unknown(response.body) if request.is_native else code in _UNKNOWN_CODES
        ):
            raise UnknownSchemaError(url, request.what)
        if response.status == _CONFLICT:
            text = self._shown(message, _MAX_CONFLICT_TEXT) or "the registry refused it"
            raise IncompatibleSchemaError(f"The {request.what}", text)
        if response.status in _REFUSALS:
            raise RegistryRefusedError(
                url, f"the {request.what}", self._shown(_described(response))
            )

    def _shown(self, text: str, max_text: int = 300) -> str:
        """Return a text in one line and without secrets, which a server may repeat."""
        logins = [server.login for server in self._settings.servers]
        passwords = [login.partition(":")[2] for login in logins]
        secrets = (*map(_base64, logins), *passwords, str(self._settings.token))
        return readable(hide(text, secrets), max_text).rstrip(".")


def _current_context(settings: RegistrySettings) -> CurrentContext | None:
    if not any(server.url.startswith("https:") for server in settings.servers):
        return None
    files = PemFiles(settings.authorities, settings.certificate, settings.key)
    try:
        return CurrentContext(settings.tls, files)
    except ValueError as error:
        raise ValueError(with_registry_names(str(error))) from None


def _is_unknown(content: bytes) -> bool:
    return json_fields(content).get("name") in _UNKNOWN_NAMES


def _described(response: Response) -> str:
    code, message = error_of(response.body)
    number = f" (error code {code})" if code else ""
    return f"HTTP {response.status}{number}{': ' if message else ''}{message}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
