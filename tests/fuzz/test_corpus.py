"""The inputs that fuzzers have found, and those that reach every line that they have reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .corpus import read_covering, read_found
from .parsers import Parser, TooSlowError, by_name, encode_input, try_input
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GUIDED = ("responses", "files", "decoder", "protobuf")


@pytest.fixture(scope="module", params=GUIDED)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def parsers(target: str) -> Mapping[str, Parser]:
    return TARGETS[target]()


def test_valid_inputs(parsers: Mapping[str, Parser]) -> None:
    """Every parser reads its valid inputs, or refuses them as it documents."""
    for name, parser in parsers.items():
        for content in parser.valid:
            try_input(parsers, encode_input(name, content))


def test_inputs_that_were_found(target: str, parsers: Mapping[str, Parser]) -> None:
    """No input that once made a parser fail does so again."""
    for data in read_found(target):
        try_input(parsers, data)


def test_inputs_that_reach_all_lines(target: str, parsers: Mapping[str, Parser]) -> None:
    """No input of the corpus makes a parser fail."""
    for data in read_covering(target):
        try_input(parsers, data)


def _fails(_: bytes) -> None:
    raise KeyError("not documented")


def _hangs(_: bytes) -> None:
    while True:
        pass


@pytest.mark.parametrize(("read", "error"), [(_fails, KeyError), (_hangs, TooSlowError)])
def test_what_is_a_finding(
    read: Callable[[bytes], None], error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is not documented is a finding, and so is an input that takes too long."""
    monkeypatch.setattr("tests.fuzz.parsers.CPU_S", 0.05)
    parsers = by_name(Parser("a", read, (ValueError,), ()))
    with pytest.raises(error):
        try_input(parsers, encode_input("a", b"x"))
