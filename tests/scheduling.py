"""Which tests of a run go to the same process."""

from __future__ import annotations

from typing import Final, final

from xdist.scheduler import LoadFileScheduling

_SOAK: Final = "tests/soak"


def scope_of(nodeid: str) -> str:
    """Return the scope of a test: tests of one scope run one after another, in one process.

    A scope is a file, or all files of the soak. Each of them loads a cluster of three brokers at a
    fixed rate for as long as its faults take, which is several times as long if they run at once.
    """
    file = nodeid.split("::", 1)[0]
    return _SOAK if file.startswith(f"{_SOAK}/") else file


@final
class OneSoakAtATime(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes the tests to processes by their scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
