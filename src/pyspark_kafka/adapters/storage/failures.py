"""Failures of storages as errors of this library: one line each, and no secret in it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ...domain.errors import MetadataLogError, PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...domain.storage_path import StoragePath

_LENGTH: Final = 240
_HIDDEN: Final = "***"
# Where a storage is may be shown; whatever else the options hold may be a secret.
_PUBLIC: Final = frozenset({"endpoint_url", "region_name", "host", "port", "user"})
_QUERY: Final = re.compile(r"\?[^\s'\")]*")
_USER_INFORMATION: Final = re.compile(r"//[^/@\s]+@")


@contextmanager
def failures_of(path: StoragePath) -> Iterator[None]:
    """Raise what a storage raises within as a ``MetadataLogError`` that names the path."""
    try:
        yield
    except PysparkKafkaError:
        raise
    except Exception as error:  # noqa: BLE001 - the storages' exceptions have no base in common
        # The storage's own exception stays out of the traceback, since it may hold a token.
        raise MetadataLogError(str(path), problem_of(error, path)) from None


def problem_of(error: Exception, path: StoragePath) -> str:
    """Say in one line what a storage's exception means, and what to look at."""
    said = _one_line(error, path)
    if isinstance(error, PermissionError) or _is_a(error, "Credentials"):
        return (
            f"The storage refuses access: {said}. Check the credentials in the storage options, "
            "or in the environment, and the rights on the directory"
        )
    if isinstance(error, FileNotFoundError):
        return f"The storage has no such place: {said}. Check the bucket's or the directory's name"
    if isinstance(error, ConnectionError | TimeoutError) or _is_a(error, "Connection", "Timeout"):
        return f"The storage does not answer: {said}. Check its address, and that it runs"
    return f"The storage failed: {said}"


def _is_a(error: Exception, *words: str) -> bool:
    """Whether a class of the exception is named so; the vendors' classes are optional imports."""
    return any(word in kind.__name__ for kind in type(error).__mro__ for word in words)


def _one_line(error: Exception, path: StoragePath) -> str:
    # A server of Hadoop puts its stack behind the first line.
    lines = str(error).strip().splitlines() or ["no reason is given"]
    text = " ".join(lines[0].split())
    for secret in sorted(_secrets(path), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    text = _USER_INFORMATION.sub("//", _QUERY.sub("", text)).rstrip(".")
    shown = text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
    return f"{type(error).__name__}: {shown}"


def _secrets(path: StoragePath) -> set[str]:
    texts = {*_texts(path.options), *_user_information(path.url)} - {""}
    return texts | {quote(text, safe="") for text in texts}


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
    """Give ``user:password`` of an URL, and the password."""
    user = url.partition("://")[2].partition("/")[0] if "://" in url else url
    user = user.rpartition("@")[0]
    yield user
    yield user.partition(":")[2]
