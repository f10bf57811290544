from collections.abc import Mapping
from pathlib import Path

from pyspark_kafka.brokers.settings import as_properties_file


def connection(directory: Path, options: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command that connects as a query with these options does."""
    settings = {name.removeprefix("kafka."): value for name, value in options.items()}
    servers = settings.pop("bootstrap.servers")
    file = directory / "client.properties"
    file.write_text(as_properties_file(settings))
    return ["--bootstrap-servers", servers, "--command-config", str(file)]
