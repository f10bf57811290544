"""The targets of the fuzzer. Parsers are imported only when they are needed: instrumented."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .parsers import Parser

KERNELS: Final = (
    "pyspark_kafka.adapters.kafka_format.decode_kernel",
    "pyspark_kafka.adapters.kafka_format.encode_kernel",
    "pyspark_kafka.adapters.kafka_format.legacy_kernel",
    "pyspark_kafka.adapters.partitioning.murmur2",
)


def _decoder() -> Mapping[str, Parser]:
    parser = import_module(f"{__package__}.batch_parser")
    parser.warm_up()
    found: Mapping[str, Parser] = parser.BATCHES
    return found


def _responses() -> Mapping[str, Parser]:
    responses = import_module(f"{__package__}.response_parsers").RESPONSES
    logins = import_module(f"{__package__}.login_parsers").LOGINS
    return {**responses, **logins}


def _files() -> Mapping[str, Parser]:
    files = import_module(f"{__package__}.file_parsers").FILES
    options = import_module(f"{__package__}.option_parsers").OPTIONS
    return {**files, **options}


TARGETS: Final[Mapping[str, Callable[[], Mapping[str, Parser]]]] = {
    "decoder": _decoder,
    "responses": _responses,
    "files": _files,
}
