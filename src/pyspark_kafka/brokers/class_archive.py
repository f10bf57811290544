"""Archives of the classes that Kafka's brokers load, which halve the time that they take to start.

Java calls them dynamic archives of application class-data sharing (JEP 350).
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from .errors import BrokerStartError
from .jars import cache_directory
from .java import version_answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_WAIT_SECONDS = 120.0

SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java's options to say nothing of an archive that is missing or does not fit."""


def archive_path(version: str, java: Path) -> Path:
    """Return where the archive of a version of Kafka is, for exactly this Java."""
    build = hashlib.sha256(version_answer(java).encode()).hexdigest()[:12]
    return cache_directory() / f"kafka-{version}-java-{build}.jsa"


def archive_options(archive: Path) -> tuple[str, ...]:
    """Return Java's options to use an archive; one that does not fit is ignored in silence."""
    return f"-XX:SharedArchiveFile={archive}", *SILENT


def make_once(archive: Path, run: Callable[[tuple[str, ...]], None]) -> None:
    """Make an archive unless it is there; without it, brokers start as well, but later.

    ``run`` starts a broker with further options of Java, and ends it in order.
    """
    if archive.exists():
        return
    incomplete = archive.with_suffix(".part")
    with (
        suppress(BrokerStartError, OSError, Timeout),
        FileLock(f"{archive}.lock", timeout=_WAIT_SECONDS),
    ):
        if not archive.exists():
            # It is read-only, and Java does not write over one that was left.
            incomplete.unlink(missing_ok=True)
            run((f"-XX:ArchiveClassesAtExit={incomplete}", *SILENT))
            incomplete.rename(archive)
