"""Command-line arguments that several commands have, and their values."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

from ..bootstrap.plugins import MEMORY, client_names
from ..domain.options.option import PREFIX
from ..domain.options.source_table import CLIENT
from ..domain.security.secrets import holds_secret

if TYPE_CHECKING:
    from ..domain.options.source import SourceOptions

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - has no other name
else:
    Commands = object

STORAGE_FILE: Final = "write it to a file and pass the file with --storage-options-file"

_COMMAND_CONFIG: Final = "write it to a file and pass the file with --command-config"

_CONNECTION_DEFAULTS: Final = {
    # As long as a person waits for an answer; the query's own timeouts may be much longer.
    "kafka.default.api.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "5000",
}


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command; ``run`` takes the parsed arguments, and returns the exit status.

    For wrong arguments ``run`` calls their ``error``, which ends the process with status 2.
    """
    raw = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser(name, help=summary, description=description, formatter_class=raw)
    command.set_defaults(run=run, error=command.error)
    return command


def add_file(
    command: argparse.ArgumentParser,
    name: str,
    read: Callable[[str], object],
    text: str,
    default: object = None,
) -> None:
    """Add an option whose value is the name of a file."""
    added = command.add_argument(name, metavar="FILE", type=read, default=default, help=text)
    added.complete = "file"  # type: ignore[attr-defined]  # read by shtab


def add_client(command: argparse.ArgumentParser) -> None:
    """Add ``--client``: those installed here that connect to a Kafka, so not ``memory``."""
    names = [name for name in client_names() if name != MEMORY]
    text = "the Kafka client (default: %(default)s)"
    command.add_argument("--client", choices=names, default=CLIENT.default, help=text)


def add_connection(command: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Add ``--bootstrap-servers``, ``--option``, ``--command-config`` and ``--client``."""
    command.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,...",
        required=is_required,
        help="the Kafka cluster",
    )
    command.add_argument(
        "--option",
        metavar="NAME=VALUE",
        dest="options",
        type=public(_COMMAND_CONFIG),
        action="append",
        default=[],
        help="an option of the query, such as kafka.security.protocol=SASL_SSL or "
        "kafka.isolation.level=read_committed, but no secret; may be repeated",
    )
    add_file(
        command,
        "--command-config",
        client_settings,
        "a file of client settings, one name=value a line, without the prefix 'kafka.': "
        "the place for passwords",
        default=(),
    )
    add_client(command)


@final
@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster and the client to use; ``options`` may contain secrets."""

    bootstrap_servers: str
    client: str = CLIENT.default
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def given(cls, given: argparse.Namespace, *defaults: tuple[str, str]) -> Self:
        """Return the options that ``add_connection`` has parsed; they override defaults."""
        settings = ((f"{PREFIX}{name}", value) for name, value in given.command_config)
        options = (*defaults, *settings, *given.options)
        return cls(given.bootstrap_servers, given.client, options)

    def source_options(self, **query: str) -> SourceOptions:
        """Return the options of a stream; ``query`` takes precedence over those given.

        :raises OptionsError: if one is not valid.
        :raises DisallowedOptionError: if the operator forbids one.
        """
        return self._parsed({**self._given(), **query})

    def lag_options(self) -> SourceOptions:
        """Return the options of a stream whose topics a checkpoint has; raise as the others do."""
        from ..domain.options.source import with_any_topic

        return self._parsed(with_any_topic(self._given()))

    def _given(self) -> dict[str, str]:
        return {
            **_CONNECTION_DEFAULTS,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "client": self.client,
            **dict(self.options),
        }

    @staticmethod
    def _parsed(raw: dict[str, str]) -> SourceOptions:
        from ..bootstrap.option_policy import operator_policy
        from ..domain.options.option import QueryKind
        from ..domain.options.source import parse_source_options

        return parse_source_options(raw, QueryKind.STREAM, operator_policy())


def add_storage_options(command: argparse.ArgumentParser) -> None:
    """Add ``--storage-option`` and ``--storage-options-file``."""
    command.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        dest="storage_options",
        type=public(STORAGE_FILE),
        action="append",
        default=[],
        help="a setting of the checkpoint's storage, named as in fsspec, in JSON or as text, "
        "but no secret; may be repeated",
    )
    text = "a file with such settings as a JSON object: the place for keys and tokens"
    add_file(command, "--storage-options-file", json_file, text, default={})


def storage_options(given: argparse.Namespace) -> str:
    """Return the settings of ``--storage-options-file`` and ``--storage-option`` as JSON."""
    named = {name: _json_or_text(text) for name, text in given.storage_options}
    return json.dumps(given.storage_options_file | named)


def positive(text: str) -> int:
    """Parse an integer of 1 or more."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def not_negative(text: str) -> int:
    """Parse an integer of 0 or more."""
    return 0 if text == "0" else positive(text)


def port(text: str) -> int:
    """Parse the number of a port; 0 is any that is free."""
    if not (text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return int(text)


def seconds(text: str) -> float:
    """Parse a number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return number


def milliseconds(text: str) -> int:
    """Parse a time of ISO 8601; without a time zone it is in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time of ISO 8601") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)


def public(instead: str) -> Callable[[str], tuple[str, str]]:
    """Return a parser of ``name=value`` that refuses secrets and names the place for them."""

    def parse(text: str) -> tuple[str, str]:
        name, value = _name_and_value(text)
        if holds_secret(name, value):
            raise _refused(f"'{name}'", instead)
        return name, value

    return parse


def public_url(instead: str) -> Callable[[str], str]:
    """Return a parser of a URL that refuses a password and names the place for it."""

    def parse(text: str) -> str:
        if holds_secret("", text):
            raise _refused("the URL", instead)
        return text

    return parse


def _refused(what: str, instead: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(
        f"{what} holds a secret, and other users of this machine can read the command line; "
        f"{instead}"
    )


def _name_and_value(text: str) -> tuple[str, str]:
    """Parse ``name=value``; no error message shows the value, which may be a secret."""
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise argparse.ArgumentTypeError("an option has the form name=value")
    return name, value


def client_settings(name: str) -> tuple[tuple[str, str], ...]:
    """Read a file of client settings like Kafka's own tools, by ``java.util.Properties``.

    Unlike with those tools, a line without a value is refused, and the file is in UTF-8.
    """
    from javaproperties import InvalidUEscapeError, KeyValue, parse

    try:
        elements = [*parse(content(name).removeprefix("\ufeff"))]
    except InvalidUEscapeError as error:
        raise argparse.ArgumentTypeError(f"'{name}' cannot be read: {error}") from error
    settings = [each for each in elements if isinstance(each, KeyValue)]
    if not all(
        each.key and (each.value or each.source.rstrip().endswith(("=", ":"))) for each in settings
    ):
        raise argparse.ArgumentTypeError("a setting has the form name=value")
    return tuple((each.key, each.value.strip()) for each in settings)


def json_file(name: str) -> dict[str, Any]:
    """Read a file with a JSON object; no error message shows its content."""
    try:
        parsed = json.loads(content(name))
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise argparse.ArgumentTypeError(f"'{name}' holds no JSON object")
    return parsed


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def content(name: str) -> str:
    """Read a file of text."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"'{name}' cannot be read: {error}") from error
