"""Fuzzes what reads bytes of others, guided by the lines that an input reaches.

    python -m verification.fuzz --target decoder|responses|files|json|protobuf --minutes 60 --seed 1
    python -m verification.fuzz --target kernels|exchange|avro|encode-json|encode-avro
    python -m verification.fuzz --target encode-protobuf --minutes 60
    python -m verification.fuzz --target files --replay build/fuzz/findings/files/x.input
    python -m verification.fuzz --target files --keep-in-repository 300

It needs atheris, which `make fuzz` installs. Inputs that reach new lines are kept in
``build/fuzz/corpus``, so that the next run begins with them. A finding is saved and does not end
the run. ``--keep-in-repository`` writes the inputs that reached new lines, without larger ones,
to ``verification/fuzz/corpus``.
"""

import argparse
import logging
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import batches
from .corpus import VALID, read_covering, write_covering
from .findings import SUFFIX, say
from .parsers import MAX_BYTES, encode_input, try_input
from .targets import TARGETS, parsers_of

_HUNG_S: Final = 30
_MAX_BYTES: Final = {"protobuf": 4_096}
"""Of an input, if not ``MAX_BYTES``: a message becomes dozens of others."""

_PROGRESS: Final = re.compile(
    r"^#(?P<tried>\d+)\s+\S+\s+cov: (?P<lines>\d+) ft: \d+ corp: (?P<kept>\d+)"
)


@dataclass(slots=True)
class Run:
    """A run of several processes: each that ends before its time leaves a finding."""

    target: str
    folder: Path
    seed: int
    tried: int = 0
    first_lines: int = 0
    lines: int = 0
    kept: int = 0

    def fuzz(self, seconds: float) -> None:
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.findings.mkdir(parents=True, exist_ok=True)
        self._write_seeds()
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 1:
            self._run_process(remaining)
            self.seed += 1

    @property
    def corpus(self) -> Path:
        """The folder of inputs that reach new lines."""
        return self.folder / "corpus" / self.target

    @property
    def findings(self) -> Path:
        return self.folder / "findings" / self.target

    def _write_seeds(self) -> None:
        inputs = [
            encode_input(name, content)
            for name, parser in parsers_of(self.target).items()
            for content in parser.valid
        ]
        for number, data in enumerate([*inputs, *read_covering(self.target)]):
            (self.corpus / f"{VALID}{number}").write_bytes(data)

    def _run_process(self, seconds: float) -> None:
        command = [
            sys.executable,
            "-m",
            "verification.fuzz.guided",
            self.target,
            str(self.findings),
        ]
        limits = [
            f"-timeout={_HUNG_S}",
            # By the wall clock, which other programs slow down; parsers have a limit of their own.
            f"-report_slow_units={_HUNG_S}",
            "-rss_limit_mb=0",
            f"-max_len={_MAX_BYTES.get(self.target, MAX_BYTES)}",
            f"-artifact_prefix={self.findings}/ended-",
            f"-max_total_time={int(seconds)}",
            f"-seed={self.seed + 1}",
            "-reload=0",
        ]
        tried = 0
        with subprocess.Popen(
            [*command, *limits, str(self.corpus)], stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            with (self.folder / f"{self.target}.log").open("a") as log:
                for line in process.stderr:
                    log.write(line)
                    if found := _PROGRESS.match(line):
                        tried = int(found["tried"])
                        self.lines, self.kept = int(found["lines"]), int(found["kept"])
                        self.first_lines = self.first_lines or self.lines
        self.tried += tried


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", choices=[*TARGETS, *batches.TRIALS], default="kernels")
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    options.add_argument("--replay", type=Path, nargs="+")
    options.add_argument("--keep-in-repository", type=int, metavar="MAX_BYTES")
    chosen = options.parse_args()
    logging.disable()
    if chosen.target in batches.TRIALS:
        return _fuzz_batches(chosen)
    run = Run(chosen.target, chosen.keep, chosen.seed)
    if chosen.replay:
        for path in chosen.replay:
            try_input(parsers_of(chosen.target), path.read_bytes())
        return 0
    if chosen.keep_in_repository:
        write_covering(run.corpus, chosen.target, chosen.keep_in_repository)
        return 0
    run.fuzz(60 * chosen.minutes)
    if not run.tried:
        say(f"No input was tried, without atheris perhaps: {run.folder}/{chosen.target}.log")
        return 1
    found = sorted([*run.findings.glob(f"*{SUFFIX}"), *run.findings.glob("ended-*")])
    say(
        f"{run.tried} inputs; coverage {run.first_lines} -> {run.lines}; {run.kept} inputs kept; "
        f"{len(found)} findings"
    )
    for path in found:
        command = f"{sys.executable} -m verification.fuzz --target {chosen.target}"
        say(f"replay: {command} --replay {path}")
    return min(len(found), 1)


def _fuzz_batches(chosen: argparse.Namespace) -> int:
    for path in chosen.replay or ():
        batches.replay(chosen.target, path, chosen.keep)
    if chosen.replay:
        return 0
    chosen.keep.mkdir(parents=True, exist_ok=True)
    return min(batches.parent(chosen.target, chosen.seed, chosen.minutes, chosen.keep), 1)


if __name__ == "__main__":
    sys.exit(main())
