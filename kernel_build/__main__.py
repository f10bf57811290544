"""Build the library of kernels in this checkout: ``python -m kernel_build``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def main() -> int:
    """Run the command."""
    sys.path.insert(0, str(SOURCE))
    from .build import build_library, is_built
    from .targets import TARGETS, here

    parser = argparse.ArgumentParser("python -m kernel_build", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, help="another platform than this one")
    parser.add_argument("--if-needed", action="store_true", help="only if sources have changed")
    parser.add_argument("--into", type=Path, help="another folder than that of the package")
    given = parser.parse_args()
    package = SOURCE / "pyspark_kafka"
    target = TARGETS[given.target] if given.target else here()
    if not (given.if_needed and is_built(package, target, given.into)):
        print(build_library(package, target, given.into))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
