"""Errors of storages as errors of this library, in one line and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MetadataLogError, PysparkKafkaError
from ...domain.security.secrets import PORT_OR_PASSWORD, URL_LOGIN, hide, without_secrets
from .directory import OversizedFileError

_LENGTH: Final = 240
# The address of a storage may be shown; any other option may be a secret.
_PUBLIC: Final = frozenset({"endpoint_url", "region_name", "host", "port", "user"})
_QUERY: Final = re.compile(r"\?[^\s'\")]*")
_SEPARATOR: Final = re.compile("[/?#]")
"""What ends the host of a URL, for libraries that split one whose password is not encoded."""


@contextmanager
def failures_of(path: StoragePath) -> Iterator[None]:
    """Raise any error of a storage as a ``MetadataLogError`` that names the path."""
    try:
        yield
    except PysparkKafkaError:
        raise
    except Exception as error:  # noqa: BLE001 - the storages' exceptions have no common base
        # The storage's own exception is not chained, since it may contain a token.
        raise MetadataLogError(str(path), problem_of(error, path)) from None


def problem_of(error: Exception, path: StoragePath) -> str:
    """Return in one line what a storage's exception means, and what to check."""
    if isinstance(error, OversizedFileError):
        return str(error)
    reason = _one_line(error, path)
    if isinstance(error, PermissionError) or _is_a(error, "Credentials"):
        return (
            f"The storage refuses access: {reason}. Check the credentials in the storage options, "
            "or in the environment, and the permissions of the directory"
        )
    if isinstance(error, ImportError):
        return f"The storage's package cannot be imported: {reason}. Install it again"
    if isinstance(error, FileNotFoundError):
        return f"The bucket or directory does not exist: {reason}. Check its name"
    if isinstance(error, ConnectionError | TimeoutError) or _is_a(error, "Connection", "Timeout"):
        return f"The storage does not answer: {reason}. Check its address, and that it is running"
    return f"The storage failed: {reason}. Check that it has free space, and see its logs"


def _is_a(error: Exception, *words: str) -> bool:
    """Whether a class of the exception has such a name; vendors' packages are optional."""
    return any(word in kind.__name__ for kind in type(error).__mro__ for word in words)


def _one_line(error: Exception, path: StoragePath) -> str:
    # Hadoop's servers append their stack trace to the first line.
    lines = str(error).strip().splitlines() or ["no reason given"]
    text = " ".join(lines[0].split())
    secrets = (*_texts(path.options), *_user_information(path.url))
    text = without_secrets(_QUERY.sub("", hide(text, secrets))).rstrip(".")
    shown = text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
    return f"{type(error).__name__}: {shown}"


def _texts(options: Any) -> Iterator[str]:
    if isinstance(options, dict):
        for name, value in options.items():
            public = name in _PUBLIC and isinstance(value, str)
            yield from _user_information(value) if public else _texts(value)
    elif isinstance(options, list):
        for value in options:
            yield from _texts(value)
    elif isinstance(options, str):
        yield options


def _user_information(url: str) -> Iterator[str]:
    """Yield ``user:password`` of a URL, the password, and what is between its slashes."""
    login = URL_LOGIN.search(url)
    found = login or PORT_OR_PASSWORD.search(url)
    user = found[0].lstrip("/").removesuffix("@") if found else url.rpartition("@")[0]
    password = user.partition(":")[2]
    yield from (user, password)
    if login is not None:
        yield from _SEPARATOR.split(password)
