"""One process of a fuzzer: libFuzzer, guided by the lines of the package that an input reaches.

It tries inputs until its time is up, or until one ends the process. A Python error does not end
it: the input is saved, and the next one is tried.
"""

import faulthandler
import logging
import random
import resource
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from .findings import Findings
from .mutations import mutate_input, spliced
from .parsers import try_input
from .targets import parsers_of

ROOM_BYTES: Final = 1024**3
"""How much address space inputs may take beyond what the process has at first."""


def main(atheris: ModuleType, target: str, folder: Path, arguments: Sequence[str]) -> None:
    with atheris.instrument_imports(include=["pyspark_kafka"]):
        parsers = parsers_of(target)
    findings = Findings(folder, parsers)

    def try_one(data: bytes) -> None:
        try:
            try_input(parsers, data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # any is a finding
            findings.add(data, error)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        return mutate_input(data, max_size, random.Random(seed), atheris.Mutate)  # noqa: S311

    def splice(data: bytes, other: bytes, max_size: int, seed: int) -> bytes:
        return spliced(data, other, max_size, random.Random(seed))  # noqa: S311

    faulthandler.enable()
    logging.disable()
    _limit_memory()
    atheris.Setup(
        [sys.argv[0], *arguments], try_one, custom_mutator=mutate, custom_crossover=splice
    )
    atheris.Fuzz()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    name, place, *rest = sys.argv[1:]
    module: Any = import_module("atheris")
    main(module, name, Path(place), rest)
