"""Secrets in every option that takes one, searched for wherever a process leaves something."""

import base64
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pyspark_kafka.adapters.security.providers import token_provider
from pyspark_kafka.brokers.settings import as_properties_file
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.values.registry import Schema, SchemaType

from ..servers.http_server import serving
from ..servers.registry_stub import RegistryStub
from ..servers.s3 import S3Server
from ..servers.secured import PASSWORD, STORE_PASSWORD, TLS_MECHANISM, SecuredBroker
from ..slowness import bound_s
from .commands import HOME, command

SECONDS: Final = bound_s(480)
"""A bound for machines that do much else; the program takes some 40 s alone."""

PROGRAM: Final = Path(__file__).parent / "programs" / "use_secrets.py"
CLIENTS: Final = ("kafka-python", "confluent")
RECORDS: Final = 3

PLANTED: Final = f"planted-{secrets.token_hex(8)}"
"""A text that the program leaks on purpose."""

CANARIES: Final[Mapping[str, str]] = {
    name: f"canary-{secrets.token_hex(12)}"
    for name in ("key password", "storage secret", "registry password", "registry token")
}

LOGS_EVERYTHING: Final = """
import logging, os
logging.basicConfig(level=logging.DEBUG, filename=os.environ["EVERYTHING_LOGGED"])
"""
"""A module that Python imports at its start, in the driver, in Spark's workers and in commands."""


@dataclass(frozen=True)
class Leaks:
    """Where texts were found: pairs of a secret's name and a place."""

    searched: Path
    needles: Mapping[str, frozenset[bytes]]
    in_arguments: set[tuple[str, str]] = field(default_factory=set)

    def in_files(self) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for file in self.searched.rglob("*"):
            place = file.relative_to(self.searched).parts[0]
            # Spark deletes files of its own at any time.
            with suppress(FileNotFoundError):
                if file.is_file():
                    found |= {(name, place) for name in self._names_in(file.read_bytes())}
        return found

    @contextmanager
    def watching_arguments(self) -> Iterator[None]:
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch_arguments, args=[ended])
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _watch_arguments(self, ended: threading.Event) -> None:
        while not ended.wait(0.2):
            for process in descendants(os.getpid()):
                with suppress(OSError):
                    names = self._names_in(Path(f"/proc/{process}/cmdline").read_bytes())
                    self.in_arguments.update((name, "arguments") for name in names)

    def _names_in(self, content: bytes) -> set[str]:
        return {
            name for name, forms in self.needles.items() if any(form in content for form in forms)
        }


def forms_of(secret: str) -> frozenset[bytes]:
    """Return what a secret looks like in clear, in hexadecimal digits, and within base64."""
    raw = secret.encode()
    forms = {raw, raw.hex().encode()}
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw)
        # The ends depend on what stands before and after it.
        forms.add(encoded[4 if offset else 0 : len(encoded) - 4])
    return frozenset(forms)


def logins(secured: SecuredBroker) -> list[dict[str, str]]:
    key = (secured.directory / "client.pem").read_text()
    pair = re.split(r"(?<=-----END PRIVATE KEY-----)\n", key)
    trusted = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": secured.authority.read_text(),
    }
    inline = {
        "kafka.bootstrap.servers": secured.tls,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": pair[1],
        **trusted,
    }
    by_name = secured.options("SCRAM-SHA-256")
    del by_name["kafka.sasl.jaas.config"]
    found = [
        secured.options("PLAIN"),
        by_name | {"kafka.sasl.username": "scram-256-user", "kafka.sasl.password": PASSWORD},
        secured.options("SCRAM-SHA-512"),
        secured.options("OAUTHBEARER"),
        secured.options(TLS_MECHANISM),
        inline | {"kafka.ssl.keystore.key": pair[0]},
        inline
        | {
            "kafka.ssl.keystore.key": encrypted(pair[0]),
            "kafka.ssl.key.password": CANARIES["key password"],
        },
    ]
    return [options | more for options in found for more in map(client_options, CLIENTS)]


def client_options(client: str) -> dict[str, str]:
    return {"client": client} | ({"kafka.debug": "all"} if client == "confluent" else {})


def encrypted(key: str) -> str:
    encryption = BestAvailableEncryption(CANARIES["key password"].encode())
    private = load_pem_private_key(key.encode(), None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def stream_options(secured: SecuredBroker, s3: S3Server) -> dict[str, str]:
    storage = json.loads(s3.storage_options) | {"secret": CANARIES["storage secret"]}
    return secured.options("SCRAM-SHA-512") | {
        "metadataPath": f"s3://{s3.new_bucket()}/log",
        "metadataStorageOptions": json.dumps(storage),
    }


def registry_options(secured: SecuredBroker, url: str) -> list[dict[str, str]]:
    scheme, _, address = url.partition("://")
    password = CANARIES["registry password"]
    given = [
        {"schema.registry.url": f"{scheme}://user:{password}@{address}"},
        {"schema.registry.url": url, "schema.registry.basic.auth.user.info": f"user:{password}"},
        {
            "schema.registry.url": url,
            "schema.registry.bearer.auth.token": CANARIES["registry token"],
        },
    ]
    return [secured.options("PLAIN") | {"valueFormat": "avro"} | each for each in given]


@contextmanager
def running_registry(topic: str) -> Iterator[tuple[str, RegistryStub]]:
    stub = RegistryStub()
    fields = [{"name": "id", "type": "long"}]
    text = json.dumps({"type": "record", "name": "Event", "fields": fields})
    assert stub.registry.register(f"{topic}-value", Schema(SchemaType.AVRO, text)) == 1
    with serving(stub.respond) as url:
        yield url, stub


def needles(secured: SecuredBroker) -> dict[str, frozenset[bytes]]:
    key = (secured.directory / "client.pem").read_text().splitlines()
    named = {
        "planted": PLANTED,
        "password": re.sub(r"\W+", " ", PASSWORD).split()[-1],
        "store password": STORE_PASSWORD,
        # Neither the first line, which begins as in all keys, nor one that another may end.
        "private key": key[2],
        **CANARIES,
    }
    found = {name: forms_of(secret) for name, secret in named.items()}
    # All tokens of an issuer begin with the same header.
    return found | {"bearer token": frozenset({bearer_token(secured)[:24].encode()})}


def bearer_token(secured: SecuredBroker) -> str:
    options = secured.options("OAUTHBEARER")
    settings = {name.removeprefix("kafka."): value for name, value in options.items()}
    login = read_java_settings(settings).login
    assert login is not None
    assert login.tokens is not None
    return token_provider(login.tokens).token().value


def descendants(process: int) -> list[int]:
    children: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, file.read_text().split())
    return [process, *(each for child in children for each in descendants(child))]


@pytest.fixture(scope="module")
def leaks(secured, s3, tmp_path_factory):
    """Run the queries and the command, kill all processes at once, and search what is left."""
    root = tmp_path_factory.mktemp("secrets")
    searched, inputs = root / "searched", root / "inputs"
    for folder in (inputs, searched / "tmp"):
        folder.mkdir(parents=True)
    (inputs / "sitecustomize.py").write_text(LOGS_EVERYTHING)
    found = Leaks(searched, needles(secured))
    environment = surroundings(secured, searched, inputs)
    typed_topic = f"typed-{secrets.token_hex(4)}"
    secured.cluster.create_topic(typed_topic)
    with running_registry(typed_topic) as (url, stub):
        given = program_input(secured, s3, searched)
        given |= {"typed topic": typed_topic, "typed": registry_options(secured, url)}
        run_and_search(secured, found, environment, inputs, given)
        logins = {request.headers["Authorization"].partition(" ")[0] for request in stub.requests}
    assert logins == {"Basic", "Bearer"}
    return found


def run_and_search(
    secured: SecuredBroker,
    found: Leaks,
    environment: Mapping[str, str],
    inputs: Path,
    given: Mapping[str, Any],
) -> None:
    searched = found.searched
    with found.watching_arguments(), running_program(environment, searched, given) as program:
        ready = program.stdout.readline() if program.stdout else ""
        assert ready == "ready\n", (searched / "errors").read_text()[-4_000:]
        for client in CLIENTS:
            show_lag(secured, client, environment, searched, inputs)
        assert program.poll() is None


def program_input(secured: SecuredBroker, s3: S3Server, searched: Path) -> dict[str, Any]:
    topic, copy = (f"{name}-{secrets.token_hex(4)}" for name in ("topic", "copy"))
    for name in (topic, copy):
        secured.cluster.create_topic(name)
    return {
        "searched": str(searched),
        "planted": PLANTED,
        "topic": topic,
        "copy": copy,
        "records": RECORDS,
        "logins": logins(secured),
        "sinks": [secured.options("PLAIN") | client_options(client) for client in CLIENTS],
        "stream": stream_options(secured, s3),
    }


def surroundings(secured: SecuredBroker, searched: Path, inputs: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": os.pathsep.join((str(inputs), str(HOME))),
        "EVERYTHING_LOGGED": str(searched / "log"),
        "TMPDIR": str(searched / "tmp"),
        "PYSPARK_KAFKA_ALLOWED_URLS": secured.token_url,
    }


@contextmanager
def running_program(
    environment: Mapping[str, str],
    searched: Path,
    given: Mapping[str, Any],
    program: Path = PROGRAM,
) -> Iterator[subprocess.Popen[str]]:
    with (searched / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=searched / "tmp",
            env=environment,
        )
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(given))
        process.stdin.close()
        yield process
    finally:
        timer.cancel()
        for each in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def show_lag(
    secured: SecuredBroker,
    client: str,
    environment: Mapping[str, str],
    searched: Path,
    inputs: Path,
) -> None:
    config = inputs / "client.properties"
    options = secured.options("SCRAM-SHA-512")
    settings = {name.removeprefix("kafka."): value for name, value in options.items()}
    config.write_text(as_properties_file(settings))
    servers = ("--bootstrap-servers", secured.sasl, "--client", client)
    files = ("--checkpoint", str(searched / "checkpoint"), "--command-config", str(config))
    with (searched / f"lag of {client}").open("w") as output:
        subprocess.run(
            command("lag", "--once", *servers, *files),
            stdout=output,
            stderr=output,
            check=True,
            env=environment,
        )


@pytest.mark.timeout(600)
def test_secrets_are_nowhere(leaks):
    """A process that is killed leaves nothing of a secret behind, at any log level.

    The planted text shows that the search finds what is there, in all places.
    """
    places = {"checkpoint", "errors", "events", "local", "log", "plans", "tmp"}
    planted = {("planted", place) for place in places}
    assert leaks.in_files() == planted
    assert leaks.in_arguments == {("planted", "arguments")}
