"""The documents, and their examples."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
DOCUMENTS: Final = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()])


def sources(page: Path) -> list[str]:
    """Return the source of each Python example of a page."""
    parsed = [example.parsed for example in DOCUMENTS.parse(page).examples()]
    return [source for source in parsed if isinstance(source, str)]
