"""Building the library of kernels beside the module that loads it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_kafka.adapters.kernels.library import MANIFEST, digest, this_platform

from .linker import link
from .sources import find_kernels, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .targets import Target

FOLDER: Final = Path("adapters", "kernels")


def build_library(package: Path, target: Target, folder: Path | None = None) -> Path:
    """Compile and link all kernels of a package for a target, and return the library.

    It is in the package, if no other folder is given.

    :raises LinkerError: if it cannot be linked.
    """
    kernels = find_kernels(package)
    sources = {
        path.relative_to(package).as_posix(): digest(path.read_bytes())
        for path in sources_of(kernels, package)
    }
    folder = folder or package / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernels-", dir=folder) as directory:
        objects = _compile_all(len(kernels), package, target, Path(directory))
        linked = Path(directory, f"kernels.native{target.suffix}")  # no module for pkgutil
        link(objects, linked, target)
        manifest = {
            "library": linked.name,
            "platform": target.platform,
            "digest": digest(linked.read_bytes()),
            "sources": sources,
            "compiler": _compiler(),
        }
        library = linked.replace(folder / linked.name)
    for other in folder.glob("kernels.native*"):
        if other != library:
            other.unlink()
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return library


def is_built(package: Path, target: Target, folder: Path | None = None) -> bool:
    """Return whether the library is there, for this target, these sources and this compiler."""
    folder = folder or package / FOLDER
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        library = (folder / manifest["library"]).read_bytes()
        changed = [
            name
            for name, known in manifest["sources"].items()
            if digest((package / name).read_bytes()) != known
        ]
        fits = (manifest["platform"], manifest["digest"], manifest["compiler"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return not changed and fits == (target.platform, digest(library), _compiler())


def _compiler() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return digest(b"".join(path.read_bytes() for path in files))


def _compile_all(count: int, package: Path, target: Target, directory: Path) -> Sequence[Path]:
    workers = min(os.cpu_count() or 1, count)
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare, (sys.path,)) as pool:
        jobs = [(number, package, target, directory) for number in range(count)]
        return list(pool.map(_compile_one, jobs))


def _prepare(path: list[str]) -> None:
    sys.path[:] = path


def _compile_one(job: tuple[int, Path, Target, Path]) -> Path:
    number, package, target, directory = job
    # Numba's own code is for this machine; that of another architecture is made of its IR.
    cpu = target.cpu if target.platform.endswith(this_platform().partition("-")[2]) else "generic"
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = cpu, ""
    from .compiler import compile_kernel

    kernel = find_kernels(package)[number]
    path = directory / f"{kernel.symbol}.o"
    path.write_bytes(compile_kernel(kernel, target))
    return path
