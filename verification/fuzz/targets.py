"""The targets of the guided fuzzer. Parsers are imported when they are needed: instrumented."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from .parsers import Parser

TARGETS: Final = {
    "decoder": ("batch_parser",),
    "responses": ("response_parsers", "login_parsers", "registry_parsers"),
    "files": ("file_parsers", "option_parsers"),
    "protobuf": ("protobuf_parsers",),
    "json": ("json_trial",),
}
"""The modules of each target, whose ``PARSERS`` are tried."""


def parsers_of(target: str) -> Mapping[str, Parser]:
    """Return the parsers of a target by their names, which are unique."""
    modules = [import_module(f"{__package__}.{name}") for name in TARGETS[target]]
    for module in modules:
        if warm_up := getattr(module, "warm_up", None):
            warm_up()
    parsers: list[Parser] = [parser for module in modules for parser in module.PARSERS]
    named = {parser.name: parser for parser in parsers}
    assert len(named) == len(parsers)
    return named
