"""The versions of schemas with which a stream is read, stored for restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.checkpoints.schema_version_log import (
    SchemaVersion,
    read_schema_versions,
    write_schema_versions,
)
from ...domain.errors import MetadataLogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ports.checkpoints.metadata_log import MetadataLog


@final
class SchemaVersions:
    """The newest entry of a log says which version each column has; without a log there is none."""

    def __init__(self, log: MetadataLog | None) -> None:
        self._log = log
        self._latest: tuple[int, Mapping[str, SchemaVersion]] | None = None

    def stored(self) -> Mapping[str, SchemaVersion]:
        """Return the versions by ``key`` and ``value``.

        :raises MetadataLogError: if the log cannot be read.
        """
        return self._read()[1]

    def store(self, versions: Mapping[str, SchemaVersion]) -> None:
        """Store versions, unless they are stored already.

        :raises MetadataLogError: if the log cannot be written, or another query writes it.
        """
        number, stored = self._read()
        if self._log is None or not versions or stored == versions:
            return
        added = self._log.add(number + 1, write_schema_versions(versions))
        self._latest = None
        if not added and self.stored() != versions:
            raise MetadataLogError(
                str(self._log),
                "Another query has stored other versions of schemas at the same time. Give each "
                "query a 'metadataPath' of its own, and start this one again",
            )

    def _read(self) -> tuple[int, Mapping[str, SchemaVersion]]:
        if self._latest is None:
            self._latest = self._read_log()
        return self._latest

    def _read_log(self) -> tuple[int, Mapping[str, SchemaVersion]]:
        found = None if self._log is None else self._log.latest()
        if found is None:
            return -1, {}
        number, content = found
        try:
            return number, read_schema_versions(content)
        except ValueError as error:
            raise MetadataLogError(str(self._log), str(error)) from error
