"""Memory that lives as long as a process has a bound."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark_kafka

SOURCE: Final = Path(pyspark_kafka.__file__).parent
REASONS: Final[dict[str, str]] = {
    "adapters/security/clear_text.py::_warn_once": "two mechanisms",
    "adapters/security/clear_text.py::_warn_once_about_registry": "a token or a password",
    "adapters/kernels/kernel.py::_types_of": "the kinds of each kernel, and few tuples in them",
}
"""Why a function of arguments may keep all its results, by ``path::name``."""


def unbounded(text: str) -> Iterator[str]:
    """Yield the functions that keep a result for each argument, whatever their number."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and _takes_any(node.args):
            for decorator in node.decorator_list:
                spelled = ast.unparse(decorator).removeprefix("functools.")
                if spelled in {"cache", "lru_cache(None)", "lru_cache(maxsize=None)"}:
                    yield node.name


def _takes_any(arguments: ast.arguments) -> bool:
    some = (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)
    return any(some) or arguments.vararg is not None or arguments.kwarg is not None


def test_caches_have_a_bound():
    """A cache without a bound would grow with the names in records and queries."""
    found = {
        f"{path.relative_to(SOURCE)}::{name}"
        for path in SOURCE.rglob("*.py")
        for name in unbounded(path.read_text(encoding="utf-8"))
    }
    assert found == REASONS.keys()


def test_a_function_without_arguments_has_one_result():
    text = (
        "@cache\ndef a(x): ...\n@functools.lru_cache(maxsize=None)\ndef b(*x): ...\n"
        "@cache\ndef c(): ...\n@lru_cache(maxsize=8)\ndef d(x): ...\n"
    )
    assert list(unbounded(text)) == ["a", "b"]
