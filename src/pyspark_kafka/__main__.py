"""The command ``pyspark-kafka``, also run by ``python -m pyspark_kafka``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from .cli.parser import (
    BrokerSettings,
    CompletionSettings,
    DemoSettings,
    DiffOffsetsSettings,
    DoctorSettings,
    ExportOffsetsSettings,
    LagSettings,
    ListLettersSettings,
    PrometheusSettings,
    ReplayLettersSettings,
    RewriteOffsetsSettings,
    Settings,
    ShowOffsetsSettings,
    TailSettings,
    TopicListSettings,
    UndoRewriteSettings,
    WarmSettings,
    parse_arguments,
)
from .cli.process import prepare_output
from .domain.errors import PysparkKafkaError
from .domain.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FAILED: Final = 1
INTERRUPTED: Final = 130
"""The exit status that shells report for a command ended by SIGINT."""


COMMANDS: Final[Mapping[type, tuple[str, str]]] = {
    BrokerSettings: ("broker", "run_broker"),
    CompletionSettings: ("completion", "run_completion"),
    DemoSettings: ("demo", "run_demo"),
    DiffOffsetsSettings: ("offsets", "run_diff"),
    DoctorSettings: ("doctor", "run_doctor"),
    ExportOffsetsSettings: ("offsets", "run_export"),
    LagSettings: ("lag", "run_lag"),
    ListLettersSettings: ("dead_letters", "run_list"),
    PrometheusSettings: ("prometheus", "run_prometheus"),
    ReplayLettersSettings: ("dead_letters", "run_replay"),
    RewriteOffsetsSettings: ("offsets_rewrite", "run_rewrite"),
    ShowOffsetsSettings: ("offsets", "run_show"),
    TailSettings: ("tail", "run_tail"),
    TopicListSettings: ("topic_list", "run_topics"),
    UndoRewriteSettings: ("offsets_rewrite", "run_undo"),
    WarmSettings: ("warm", "run_warm"),
}
"""The module and the function that run a command, imported when it runs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    prepare_output()
    settings = parse_arguments(argv)
    try:
        return _run(settings)
    except PysparkKafkaError as error:
        return _fail(f"error: {one_line(str(error))} (who can fix it: {error.fault.value})")
    except OSError as error:
        return _fail(f"error: {one_line(str(error))}")
    except KeyboardInterrupt:
        return _fail("Interrupted; everything is stopped.", INTERRUPTED)


def _fail(message: str, status: int = FAILED) -> int:
    print(message, file=sys.stderr)  # noqa: T201 - a command's output
    return status


def _run(settings: Settings) -> int:
    module, function = COMMANDS[type(settings)]
    run: Callable[[Settings], int] = getattr(import_module(f".cli.{module}", __package__), function)
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
