from collections.abc import Mapping
from pathlib import Path


def connection(directory: Path, options: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command that connects as a query with these options does."""
    settings = {name.removeprefix("kafka."): value for name, value in options.items()}
    servers = settings.pop("bootstrap.servers")
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ["--bootstrap-servers", servers, "--command-config", str(file)]
