from __future__ import annotations

from pyspark_kafka.domain.html_table import html_table


def test_a_table_without_headings() -> None:
    """Texts are escaped, and numbers are easy to read."""
    assert html_table("a & b", [("<i>", 12_345)]) == (
        "<table><caption>a &amp; b</caption>"
        "<tbody><tr><td>&lt;i&gt;</td><td>12,345</td></tr></tbody></table>"
    )


def test_headings_are_escaped_too() -> None:
    assert "<thead><tr><th>&lt;b&gt;</th></tr></thead>" in html_table("", [], ["<b>"])
