"""The checks and the page of a package index for the distribution."""

import re
import sys
from pathlib import Path

from tests.documents import README

from .environments import output_of

TOOLS = Path(sys.prefix) / "publish" / "bin"
"""`make test` and `make dist` install them there."""


def run(tool: str, *arguments: str | Path) -> str:
    return output_of([TOOLS / tool, *arguments])


def test_an_index_accepts_the_distribution(wheel):
    [sdist] = wheel.parent.glob("*.tar.gz")
    run("twine", "check", "--strict", sdist, wheel)
    run("check-wheel-contents", wheel)


def test_the_readme_renders_as_on_an_index():
    """Each heading, table and example of the README becomes one of the page, and none is lost."""
    text = README.read_text()
    page = run("python", "-m", "readme_renderer", "--format", "md", README)
    prose = re.sub(r"^```.*?^```", "```", text, flags=re.MULTILINE | re.DOTALL)
    for pattern, tag in ((r"^#+ ", "h[1-6]"), (r"^\| ?-[-:| ]*\|$", "table"), ("^```$", "pre")):
        expected = len(re.findall(pattern, prose, re.MULTILINE))
        assert len(re.findall(rf"<{tag}[ >]", page)) == expected > 0, tag
    assert "```" not in page
