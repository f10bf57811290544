"""The schema registry of a query, by its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..application.values.schema_cache import SchemaCache
from ..domain.errors import OptionsError, requires_extra
from ..domain.values.registry import registry_problems, registry_settings

if TYPE_CHECKING:
    from ..domain.values.value_options import RegistryOptions


def open_registry(options: RegistryOptions) -> SchemaCache:
    """Return a registry that keeps what it has found; no request is sent yet.

    :raises OptionsError: if the options cannot be used.
    :raises MissingDependencyError: if the extra ``registry`` is not installed.
    """
    problems = registry_problems(options)
    if problems:
        raise OptionsError(problems)
    with requires_extra("registry", "requests", "The HTTP client for schema registries"):
        from ..adapters.schema_registry.http_registry import HttpSchemaRegistry
    try:
        return SchemaCache(HttpSchemaRegistry(registry_settings(options)))
    except ValueError as error:
        # Not chained: the option may hold a key in place of a file.
        raise OptionsError([str(error)]) from None
