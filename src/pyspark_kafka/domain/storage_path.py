"""A directory on some storage, and how to get in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, final


@final
@dataclass(frozen=True, slots=True)
class StoragePath:
    """A URL of fsspec, and the ``storage_options`` that go with it, as a JSON object.

    The options may carry secrets and are therefore left out of ``repr``; what a URL has of them
    (``s3://key:secret@bucket``) is left out of ``str``.
    """

    url: str = field(repr=False)
    storage_options: str = field(default="{}", repr=False)

    def __post_init__(self) -> None:
        if not self.url.strip():
            raise ValueError("a storage path names a directory")

    @property
    def options(self) -> dict[str, Any]:
        """The storage options, as fsspec takes them."""
        options: dict[str, Any] = json.loads(self.storage_options)
        return options

    def child(self, name: str) -> StoragePath:
        """Give the path of what is directly below."""
        return StoragePath(f"{self.url.rstrip('/')}/{name}", self.storage_options)

    def __str__(self) -> str:
        scheme, separator, rest = self.url.rpartition("://")
        authority, slash, path = rest.partition("/")
        return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
