"""The inputs that fuzzers have found, and those that reach every line that they have reached."""

import pytest

from .corpus import read_covering, read_found
from .parsers import Parser, TooSlowError, by_name, encode_input, try_input
from .targets import TARGETS

GUIDED = ("responses", "files", "decoder", "protobuf")
STORED = [
    pytest.param(read, target, id=f"{target}-{read.__name__}")
    for target in GUIDED
    for read in (read_found, read_covering)
    if any(read(target))
]


@pytest.fixture(scope="module", params=GUIDED)
def target(request):
    return str(request.param)


@pytest.fixture(scope="module")
def parsers(target):
    return TARGETS[target]()


def test_valid_inputs(parsers):
    """Every parser reads its valid inputs, or refuses them as it documents."""
    for name, parser in parsers.items():
        for content in parser.valid:
            try_input(parsers, encode_input(name, content))


@pytest.mark.parametrize(("read", "stored"), STORED)
def test_stored_inputs(read, stored):
    """No input that made a parser fail does so again, and none that reaches a line of its own."""
    parsers = TARGETS[stored]()
    for data in read(stored):
        try_input(parsers, data)


def _fails(_: bytes) -> None:
    raise KeyError("not documented")


def _hangs(_: bytes) -> None:
    while True:
        pass


@pytest.mark.parametrize(("read", "error"), [(_fails, KeyError), (_hangs, TooSlowError)])
def test_what_is_a_finding(read, error, monkeypatch):
    """An error that is not documented is a finding, and so is an input that takes too long."""
    monkeypatch.setattr("tests.fuzz.parsers.CPU_S", 0.05)
    parsers = by_name(Parser("a", read, (ValueError,), ()))
    with pytest.raises(error):
        try_input(parsers, encode_input("a", b"x"))
