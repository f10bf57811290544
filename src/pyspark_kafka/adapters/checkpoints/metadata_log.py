"""A metadata log in a directory of any filesystem of fsspec."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MetadataLogError
from ...domain.options.option import INT64_MAX
from ...ports.checkpoints import EditableLog
from ..process_local import ProcessLocal
from .directory import LogDirectory, LogFile, batch_id_of, failures_of, file_name, is_temporary
from .storages import opener_of

_ABANDONED_SECONDS: Final = 24 * 60 * 60.0
_PURGES: Final = 3
_MAX_UNLISTED: Final = 100
"""Entries that a storage may have and not list yet; the writer adds them one after the other."""


@final
class FsspecMetadataLog(EditableLog):
    """One file per batch, named by the batch id, in the layout of Spark's ``HDFSMetadataLog``.

    A storage may list a new file late, and a deleted one for a while. So this log looks for entries
    by name after the last listed one, unless it has written that itself.

    Other files in the directory stay, except temporary files of this class that are a day old:
    their writers were killed.

    :raises MissingDependencyError: if the storage needs a package that is not installed.
    :raises UnsupportedFeatureError: if the storage cannot create a file exclusively; ``add`` raises
        it if that shows only in use.
    """

    def __init__(self, path: StoragePath) -> None:
        self._path = path
        self._open = opener_of(path)
        self._opened: ProcessLocal[LogDirectory] = ProcessLocal()
        self._swept = False
        self._newest: int | None = None

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    def add(self, batch_id: int, metadata: bytes) -> bool:
        if batch_id > INT64_MAX:
            raise MetadataLogError(
                f"{self._path}/{INT64_MAX}",
                "The log has the last entry that it can have, which no query reaches. Find out "
                "which program can write there, and delete the file",
            )
        name = file_name(batch_id)
        with failures_of(self._path.child(name)):
            added = self._directory().create(name, bytes(metadata))
        self._newest = batch_id if added else None
        self._sweep_once()
        return added

    def get(self, batch_id: int) -> bytes | None:
        name = file_name(batch_id)
        with failures_of(self._path.child(name)):
            return self._directory().read(name)

    def latest(self) -> tuple[int, bytes] | None:
        listed = self.batch_ids()
        if self._newest is not None:
            listed = sorted({*listed, self._newest})
        for batch_id in reversed(listed or [0]):
            metadata = self.get(batch_id)
            if metadata is not None:  # otherwise it was purged since the listing
                return self._last_from(batch_id, metadata)
        return None

    def batch_ids(self) -> Sequence[int]:
        found = (batch_id_of(file.name) for file in self._files())
        return sorted(batch_id for batch_id in found if batch_id is not None)

    def purge(self, threshold: int) -> None:
        for _ in range(_PURGES):
            files = self._files()
            ids = (batch_id_of(file.name) for file in files)
            purged = sorted(one for one in ids if one is not None and one < threshold)
            # In ascending order, so that an interrupted purge leaves no gap.
            self._remove([*map(file_name, purged), *_abandoned(files)])
            if not purged:
                return
        if all(self.get(batch_id) is None for batch_id in purged):
            return
        raise MetadataLogError(
            str(self._path),
            "The storage still has deleted batches. Check the permission to delete files",
        )

    def replace(self, batch_id: int, metadata: bytes) -> None:
        name = file_name(batch_id)
        with failures_of(self._path.child(name)):
            self._directory().replace(name, bytes(metadata))
        self._newest = None

    def remove(self, batch_id: int) -> None:
        self._newest = None
        self._remove([file_name(batch_id)])

    def _last_from(self, batch_id: int, metadata: bytes) -> tuple[int, bytes]:
        """Return the last entry of those that follow one without a gap.

        :raises MetadataLogError: if there are more than a listing can lack.
        """
        last = batch_id + _MAX_UNLISTED
        while self._newest != batch_id and (following := self.get(batch_id + 1)) is not None:
            batch_id, metadata = batch_id + 1, following
            if batch_id > last:
                raise MetadataLogError(
                    str(self._path),
                    f"The storage returns content for more than {_MAX_UNLISTED} files that it does "
                    f"not list, up to '{batch_id}', as a server does that returns the same page "
                    "for every name. Check the address of the storage, and the login",
                )
        self._newest = batch_id
        return batch_id, metadata

    def _files(self) -> list[LogFile]:
        with failures_of(self._path):
            return list(self._directory().files())

    def _remove(self, names: list[str]) -> None:
        with failures_of(self._path):
            self._directory().remove(names)

    def _directory(self) -> LogDirectory:
        return self._opened.get() or self._opened.set(self._open())

    def _sweep_once(self) -> None:
        if not self._swept:
            self._swept = True
            # The batch is written: failing to list or delete old files does not matter here.
            with suppress(MetadataLogError):
                self._remove(_abandoned(self._files()))


def _abandoned(files: list[LogFile]) -> list[str]:
    """Return the temporary files of killed writers."""
    before = time.time() - _ABANDONED_SECONDS
    return [
        file.name
        for file in files
        if is_temporary(file.name) and file.modified is not None and file.modified < before
    ]
