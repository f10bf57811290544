"""Schemas in files, which the driver reads once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...domain.errors import OptionsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.checkpoints.storage_path import StoragePath
    from ...domain.values.value_options import ValueOptions

_DESCRIPTORS: Final = (".desc", ".pb")


def with_schema_file(
    options: ValueOptions, read_file: Callable[[StoragePath], bytes]
) -> ValueOptions:
    """Return the options with the content of the file that they name.

    :raises OptionsError: if the file cannot be used.
    """
    path = options.schema_file
    if path is None:
        return options
    content = read_file(path)
    if path.url.lower().endswith(_DESCRIPTORS):
        return replace(options, schema_file=None, descriptor=content)
    try:
        return replace(options, schema_file=None, schema=content.decode())
    except UnicodeDecodeError:
        problem = f"Option '{options.column}Schema': the file {path} is not a text in UTF-8"
        raise OptionsError([problem]) from None
