"""A directory of a storage, with its credentials."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, final

from ..security.secrets import without_secrets


@final
@dataclass(frozen=True, slots=True)
class StoragePath:
    """A URL for fsspec and its ``storage_options``, a JSON object.

    Options may contain secrets: ``repr`` omits them, and ``str`` omits secrets in the URL
    (``s3://key:secret@bucket``).
    """

    url: str = field(repr=False)
    storage_options: str = field(default="{}", repr=False)

    def __post_init__(self) -> None:
        if not self.url.strip():
            raise ValueError("a storage path must not be empty")

    @property
    def options(self) -> dict[str, Any]:
        """The storage options for fsspec."""
        options: dict[str, Any] = json.loads(self.storage_options)
        return options

    def child(self, name: str) -> StoragePath:
        """Return the path of a direct child."""
        return StoragePath(f"{self.url.rstrip('/')}/{name}", self.storage_options)

    def __str__(self) -> str:
        return without_secrets(self.url)
