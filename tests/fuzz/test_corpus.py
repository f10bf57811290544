"""The inputs that fuzzers have found, and those that reach every line that they have reached."""

import pytest

from verification.fuzz.corpus import read_covering, read_found
from verification.fuzz.parsers import encode_input, try_input
from verification.fuzz.targets import TARGETS, parsers_of

STORED = [
    pytest.param(read, target, id=f"{target}-{read.__name__}")
    for target in TARGETS
    for read in (read_found, read_covering)
    if any(read(target))
]


@pytest.mark.parametrize("target", TARGETS)
def test_valid_inputs(target):
    """Every parser reads its valid inputs, or refuses them as it documents."""
    parsers = parsers_of(target)
    for name, parser in parsers.items():
        for content in parser.valid:
            try_input(parsers, encode_input(name, content))


@pytest.mark.parametrize(("read", "stored"), STORED)
def test_stored_inputs(read, stored):
    """No input that made a parser fail does so again, and none that reaches a line of its own."""
    parsers = parsers_of(stored)
    for data in read(stored):
        try_input(parsers, data)
