"""The documents, and their examples."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
WITH_SPARK: Final = {
    "get-started/first-stream.md": ["orders"],
    "get-started/json-to-parquet.md": ["sales"],
    "get-started/exactly-once-copy.md": ["payments", "invoices"],
    "guides/batch.md": ["orders"],
    "guides/starting-offsets.md": ["orders"],
    "guides/streams.md": ["orders"],
}
"""The pages whose examples need Spark and a real Kafka, with the topics that they use."""

DOCUMENTS: Final = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()])


def sources(page: Path) -> list[str]:
    """Return the source of each Python example of a page."""
    parsed = [example.parsed for example in DOCUMENTS.parse(page).examples()]
    return [source for source in parsed if isinstance(source, str)]
