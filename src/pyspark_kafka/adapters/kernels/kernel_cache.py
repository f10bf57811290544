"""The cache of compiled kernels on disk. A broken cache costs time and raises no error."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from numba.core.caching import FunctionCache, IndexDataCacheFile

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

SHARED: Final = ("kafka_format", "value_columns", "value_encoding")
"""The packages of adapters whose functions the kernels of others call."""


@final
class KernelCache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """Numba's cache of a function, with two additions.

    A kernel is compiled again when a module of its folder, of this one or of one of ``SHARED`` has
    changed, as kernels call functions of other modules: numba checks the kernel's own only. A
    cache that cannot be read or written (a full disk, a truncated file) is ignored.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        """Choose the cache directory.

        :raises RuntimeError: if none is writable.
        """
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), _stamp(function)),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001
            # Reading a damaged pickle raises nearly any error.
            log.debug("Cannot load a compiled kernel from %s: %s", self._cache_path, error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            log.debug("Cannot store a compiled kernel in %s: %s", self._cache_path, error)


def _stamp(function: Callable[..., object]) -> tuple[tuple[str, int, int], ...]:
    """Return names, modification times and sizes of the modules that a kernel may be made of."""
    here = Path(__file__).parent
    shared = (here.parent / name for name in SHARED)
    folders = {here, *shared, Path(function.__code__.co_filename).parent}
    modules = sorted(path for folder in folders for path in folder.glob("*.py"))
    stats = ((module.name, module.stat()) for module in modules)
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
