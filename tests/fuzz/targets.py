"""The targets of the fuzzer. Parsers are imported only when they are needed: instrumented."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from .parsers import Parser


def _decoder() -> Mapping[str, Parser]:
    parser = import_module(f"{__package__}.batch_parser")
    parser.warm_up()
    return parser.BATCHES


def _responses() -> Mapping[str, Parser]:
    responses = import_module(f"{__package__}.response_parsers").RESPONSES
    logins = import_module(f"{__package__}.login_parsers").LOGINS
    registries = import_module(f"{__package__}.registry_parsers").REGISTRIES
    return {**responses, **logins, **registries}


def _files() -> Mapping[str, Parser]:
    files = import_module(f"{__package__}.file_parsers").FILES
    options = import_module(f"{__package__}.option_parsers").OPTIONS
    return {**files, **options}


def _protobuf() -> Mapping[str, Parser]:
    parsers = import_module(f"{__package__}.protobuf_parsers")
    parsers.warm_up()
    return parsers.MESSAGES


def _json() -> Mapping[str, Parser]:
    trial = import_module(f"{__package__}.json_trial")
    trial.try_values(0, [b"{}"])
    return trial.VALUES


TARGETS: Final[Mapping[str, Callable[[], Mapping[str, Parser]]]] = {
    "decoder": _decoder,
    "responses": _responses,
    "files": _files,
    "protobuf": _protobuf,
    "json": _json,
}
