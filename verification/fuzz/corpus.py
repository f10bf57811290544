"""The inputs in the repository: what was found, and what reaches all lines that were reached."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .findings import SUFFIX
from .parsers import decode_input, encode_input

CORPUS: Final = Path(__file__).parent / "corpus"
VALID: Final = "valid-"
_COVERING: Final = "covering.txt"


def read_found(target: str) -> Iterator[bytes]:
    """Yield the inputs of findings that are fixed."""
    for path in sorted((CORPUS / target).glob(f"*{SUFFIX}")):
        yield path.read_bytes()


def read_covering(target: str) -> Iterator[bytes]:
    """Yield the inputs that reach all lines that were reached."""
    path = CORPUS / target / _COVERING
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
        name, _, content = line.partition(" ")
        yield encode_input(name, b64decode(content))


def write_covering(folder: Path, target: str, max_bytes: int) -> None:
    """Replace them by the inputs of a folder, without those that are larger."""
    # The others are valid inputs, which the parsers know.
    found = (path for path in folder.iterdir() if not path.name.startswith(VALID))
    inputs = sorted({path.read_bytes() for path in found})
    lines = [
        f"{name} {b64encode(content).decode()}"
        for name, content in map(decode_input, inputs)
        if len(content) <= max_bytes
    ]
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    (CORPUS / target / _COVERING).write_text("\n".join(lines) + "\n", encoding="ascii")
