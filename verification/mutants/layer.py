"""A layer's mutants: mutmut makes and tries them in a folder of its own."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Final

from .score import module_of

ROOT: Final = Path(__file__).parents[2]

TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "domain": ("tests/unit/domain", "tests/unit/test_errors.py"),
    "application": ("tests/unit/application", "tests/unit/test_errors.py"),
    "adapters/memory": ("tests/contract", "-kMemory"),
}
"""The tests that have to find the mutants of a folder: its own, without Spark and without Kafka.

Mutants of the adapters in memory are wrong adapters: the contract suites have to find them.
"""

LAYERS: Final = tuple(TESTS)

PLUGINS: Final = ("verification.mutants.shortest_first", "verification.mutants.import_time")

SETTINGS: Final = """\
[mutmut]
source_paths = src
only_mutate = src/pyspark_kafka/{layer}/*
do_not_mutate_patterns =
    \\blog\\.\\w+\\(
pytest_add_cli_args_test_selection =
    {tests}
pytest_add_cli_args =
    -p
    no:xdist
    -p
    no:cacheprovider
process_isolation = forkserver
timeout_constant = 10.0
timeout_multiplier = 3.0
use_git_change_detection = false
"""
"""Texts of logs are not changed. The time limits, in seconds, allow for a machine that is busy."""

ENVIRONMENT: Final = {
    "HYPOTHESIS_PROFILE": "mutants",
    "PRODUCER_EXAMPLES": "25",
    "PYTEST_PLUGINS": ",".join(PLUGINS),
    # A test that hangs fails, and ends the run of its mutant.
    "PYTEST_TIMEOUT": "30",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer by its name, and the folder in which mutmut works on it."""

    name: str
    folder: Path

    def try_all(self, processes: int) -> None:
        """Try the mutants that have no outcome for the code as it is."""
        self._prepare()
        self._mutmut("run", "--max-children", str(processes))

    def try_some(self, processes: int, names: Iterable[str]) -> None:
        """Try these mutants, whether they have an outcome or not; asterisks stand for any text."""
        self._prepare()
        if names := list(names):
            self._mutmut("run", "--max-children", str(processes), *names)

    def sample(self, count: int, seed: int) -> list[str]:
        """Return mutants of all modules, of each in proportion to how many it has."""
        self._prepare()
        # mutmut makes the mutants and then fails, since none of them has this name.
        self._mutmut("run", "none", stdout=subprocess.DEVNULL, check=False)
        of_modules: defaultdict[str, list[str]] = defaultdict(list)
        for mutant in self.outcomes():
            of_modules[module_of(mutant)].append(mutant)
        share = count / sum(map(len, of_modules.values()))

        def rank(mutant: str) -> bytes:
            # A change of one function leaves the others in the sample, or out of it.
            return sha256(f"{seed} {mutant}".encode()).digest()

        return [
            mutant
            for mutants in of_modules.values()
            for mutant in sorted(mutants, key=rank)[: ceil(share * len(mutants))]
        ]

    def outcomes(self) -> dict[str, str]:
        """Return the mutants with their outcomes, in mutmut's words."""
        lines = self._mutmut("results", "--all", "true", stdout=subprocess.PIPE).splitlines()
        parts = [line.strip().rpartition(": ") for line in lines]
        return {mutant: outcome for mutant, found, outcome in parts if found}

    def _prepare(self) -> None:
        """Let mutmut find the code and the tests in the folder, and its settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for linked in ("src", "tests", "verification", "pyproject.toml"):
            link = self.folder / linked
            if not link.is_symlink():
                link.symlink_to(ROOT / linked)
        tests = "\n    ".join(TESTS[self.name])
        (self.folder / "setup.cfg").write_text(SETTINGS.format(layer=self.name, tests=tests))

    def _mutmut(self, *arguments: str, stdout: int | None = None, check: bool = True) -> str:
        """Run mutmut, and return what it prints to a pipe."""
        command = Path(sys.executable).with_name("mutmut")
        done = subprocess.run(
            [command, *arguments],
            cwd=self.folder,
            env=os.environ | ENVIRONMENT,
            stdout=stdout,
            text=True,
            check=check,
            stderr=None if check else subprocess.DEVNULL,
        )
        return done.stdout or ""
