"""The documents, and their examples."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

if TYPE_CHECKING:
    from .interpreter import Run
    from .spark.topics import Topics

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

WITHOUT_SPARK: Final = {
    name: page
    for page in sorted(DOCS.rglob("*.md"))
    if (name := str(page.relative_to(DOCS))) not in WITH_SPARK and "```python" in page.read_text()
}
"""The other pages with examples."""

TESTS: Final = [
    name
    for name, page in WITHOUT_SPARK.items()
    if re.search(r"^(class Test|def test_)", page.read_text(), re.MULTILINE)
]
"""Those of them whose examples are tests of pytest's."""

TABLE: Final = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)

Records = list[tuple[bytes | None, bytes]]

ORDERS: Final[Records] = [(b"ada", b"coffee"), (b"bob", b"tea")]
SALES: Final[Records] = [
    (None, b'{"drink": "coffee", "cups": 2}'),
    (None, b'{"drink": "tea", "cups": 1}'),
]


def sources(page: Path) -> list[str]:
    """Return the source of each Python example of a page."""
    parsed = [example.parsed for example in DOCUMENTS.parse(page).examples()]
    return [source for source in parsed if isinstance(source, str)]


def check_page(name: str, run: Run, topics: Topics, directory: Path) -> None:
    """Run the examples of a page with Spark in their order, which print the tables it has."""
    text = (DOCS / name).read_text()
    code = text.replace("localhost:9092", topics.cluster.bootstrap_servers)
    code = code.replace('"data/', f'"{directory}/')
    for topic in WITH_SPARK[name]:
        code = re.sub(rf'"{topic}"(?=[,):])', f'"{topics.create(1)}"', code)
    page = directory / "page.md"
    page.write_text(code)
    printed = "".join(map(run, sources(page)))
    assert printed.split() == [word for table in TABLE.findall(text) for word in table.split()]
    assert run("print(spark.streams.active)") == "[]\n"


def check_readme(run: Run, topics: Topics, directory: Path) -> None:
    """Run the queries of the README: batches show its rows, and both streams copy the orders."""
    servers = topics.cluster.bootstrap_servers
    orders, copied, live, sales = (topics.create(1) for _ in range(4))
    topics.pairs(orders, ORDERS)
    topics.pairs(sales, SALES)
    page = directory / "README.md"
    page.write_text(
        README.read_text()
        .replace("broker:9092", servers)
        .replace('"orders"', f'"{orders}"')
        .replace('"orders-copy"', f'"{copied}"')
        .replace('"orders-live"', f'"{live}"')
        .replace('"sales"', f'"{sales}"')
        .replace("/checkpoints/", f"{directory}/")
    )
    # The last example ships the package; `tests/packaging` runs it without the package installed.
    batch, stream, typed, continuous, _shipping = sources(page)

    def records(topic: str) -> object:
        given = {
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "kafka.isolation.level": "read_committed",
        }
        run(f"rows = spark.read.format('pyspark_kafka').options(**{given}).load().collect()")
        return ast.literal_eval(run("print([(bytes(row.key), bytes(row.value)) for row in rows])"))

    assert run(batch).strip() in README.read_text()
    run(stream)
    run("query.processAllAvailable()\nquery.stop()")
    assert records(copied) == ORDERS
    assert run(typed).strip() in README.read_text()
    # It reads what comes after its start, as streams do by default.
    run(continuous)
    run("query.processAllAvailable()")
    topics.pairs(orders, ORDERS)
    run("query.processAllAvailable()\nquery.stop()")
    assert records(live) == ORDERS
