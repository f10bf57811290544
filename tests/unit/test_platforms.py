"""The options on the page of platforms: both clients take them."""

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from tests.documents import ROOT, sources
from tests.servers.certificates import Authority, truststore

PAGE = ROOT / "docs" / "connect" / "platforms.md"
SECRETS = "/secrets/"
PASSWORD = "store"  # noqa: S105


def recipes() -> list[tuple[str, dict[str, str]]]:
    """Return the options of each block, after the last heading and the server that they name."""
    helper, *blocks = sources(PAGE)
    names: dict[str, dict[str, str]] = {}
    exec(helper, names)  # noqa: S102 - the page's own example
    found = []
    for block in blocks:
        exec(block, names)  # noqa: S102
        options = names.pop("options", None)
        if options is None:
            continue
        login = options.get("kafka.sasl.mechanism", "certificate")
        found.append((f"{options['kafka.bootstrap.servers']} {login}", options))
    return found


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Return a directory with the files that the page names."""
    directory = tmp_path_factory.mktemp("secrets")
    authority = Authority()
    client = authority.issue("client")
    for name in ("ca.crt", "ca.pem"):
        (directory / name).write_text(authority.pem)
    (directory / "truststore.p12").write_bytes(truststore([authority], PASSWORD))
    for name in ("keystore.p12", "user.p12"):
        client.write_pkcs12(directory / name, PASSWORD)
    (directory / "service.cert").write_text(client.chain_pem)
    (directory / "service.key").write_text(client.key_pem())
    (directory / "ada.keytab").write_bytes(b"\x05\x02")
    return directory


def with_files(options: dict[str, str], secrets: Path) -> dict[str, str]:
    """Return options with files that exist, and with their passwords and PEM."""
    authority = Authority()
    client = authority.issue("client")
    pem = {
        "value of ca.pem": authority.pem,
        "value of client.key": client.key_pem(),
        "value of client.pem": client.chain_pem,
    }
    passwords = {name for name in options if name.endswith("store.password")}
    return {
        name: PASSWORD if name in passwords else pem.get(text, text).replace(SECRETS, f"{secrets}/")
        for name, text in options.items()
    }


@pytest.mark.parametrize(("name", "options"), recipes())
def test_each_block_is_taken_by_the_clients_without_a_connection(name, options, client, secrets):
    given = with_files(options, secrets) | {"client": client, "subscribe": "t"}
    is_refused = "GSSAPI" in name and (client == "confluent" or find_spec("gssapi") is None)
    with (
        closing_clients(
            container_for(parse_source_options(given, QueryKind.BATCH, UNRESTRICTED))
        ) as container,
        pytest.raises(OptionsError, match="kerberos") if is_refused else nullcontext(),
    ):
        container.offset_fetcher()
        container.record_reader()
