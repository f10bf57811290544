"""Keys and certificates: their formats, what is wrong with them, and files that change."""

import gc
import json
import logging
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import pyspark_kafka
from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.cluster_settings import ClusterSettings
from pyspark_kafka.adapters.kafka_python.settings import check_settings
from pyspark_kafka.adapters.security import store_files
from pyspark_kafka.adapters.security.jks import read_jks
from pyspark_kafka.adapters.security.memory_files import memory_file
from pyspark_kafka.adapters.security.store_files import certificates, key_pair
from pyspark_kafka.adapters.security.tls_context import PemFiles, Rotating, ssl_context
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Store, Tls
from tests.servers.certificates import Authority, Certificate, truststore

from ..conftest import PASSWORD, keytool
from ..options import source_of

KEY_PASSWORD = "key-secret"  # noqa: S105
WRONG = "hunter2"


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def client(authority):
    return authority.issue("client")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Make JKS stores: keys with another password, two certificates, none; and what is none."""
    directory = tmp_path_factory.mktemp("stores")
    os.mkfifo(directory / "pipe")
    with (directory / "large").open("wb") as file:
        file.truncate(store_files.MAX_FILE_BYTES + 1)
    made = ("-genkeypair", "-keyalg", "EC", "-storetype", "JKS", "-keystore")
    for name in ("one", "two"):
        keytool(directory, *made, f"{name}.jks", "-dname", f"CN={name}", "-keypass", KEY_PASSWORD)
        keytool(directory, "-exportcert", "-keystore", f"{name}.jks", "-file", f"{name}.der")
        imported = ("-alias", name, "-file", f"{name}.der", "-storetype", "JKS")
        keytool(directory, "-importcert", *imported, "-keystore", "trust.jks")
    (directory / "empty.jks").write_bytes((directory / "trust.jks").read_bytes())
    for name in ("one", "two"):
        keytool(directory, "-delete", "-alias", name, "-keystore", "empty.jks")
    return directory


def store(kind: str, path: Path, password: str = PASSWORD) -> Store:
    return Store(kind, str(path), Secret(password))


def without_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")


def test_a_jks_store_of_keytools_holds_its_key_which_belongs_to_its_certificate(stores):
    pair = key_pair(store("keystore", stores / "one.jks"), Secret(KEY_PASSWORD))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with memory_file(pair.chain.encode()) as chain, memory_file(pair.key.encode()) as key:
        context.load_cert_chain(chain, key)
    context.load_verify_locations(cadata=certificates(store("truststore", stores / "trust.jks")))
    assert context.cert_store_stats()["x509"] == 2
    assert "PRIVATE" not in repr(pair)


def test_certificate_of_a_key(stores):
    """As in Java, the certificate of a key is trusted, too."""
    found = certificates(store("truststore", stores / "one.jks"))
    assert found.count("BEGIN CERTIFICATE") == 1


def test_jks_without_a_password(stores):
    """As in Java, certificates can be read from a JKS truststore without its password."""
    found = certificates(store("truststore", stores / "trust.jks", ""))
    assert found.count("BEGIN CERTIFICATE") == 2


def test_every_cut_of_jks(stores):
    content = (stores / "one.jks").read_bytes()
    for size in range(len(content)):
        with pytest.raises(ValueError, match=r"another password"):
            read_jks(content[:size], PASSWORD)
        with pytest.raises(ValueError, match=r"ends too early|unknown type"):
            read_jks(content[: size - 20], "")


def test_every_certificate_of_a_truststore_is_trusted(tmp_path):
    path = tmp_path / "trust.p12"
    path.write_bytes(truststore([Authority("One"), Authority("Two")], PASSWORD))
    assert certificates(store("truststore", path)).count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize(
    ("kind", "name", "password", "key_password", "text"),
    [
        ("truststore", "trust.jks", WRONG, "", "as JKS; check 'kafka.ssl.truststore.password'"),
        ("keystore", "one.jks", WRONG, "", "as JKS; check 'kafka.ssl.keystore.password'"),
        ("keystore", "one.jks", PASSWORD, WRONG, "decrypted; check 'kafka.ssl.key.password'"),
        ("keystore", "one.jks", PASSWORD, "", "decrypted; check 'kafka.ssl.key.password'"),
        ("keystore", "trust.jks", PASSWORD, "", "holds no private key"),
        ("truststore", "empty.jks", PASSWORD, "", "contains no certificate"),
        ("truststore", "pipe", "", "", "is not a file"),
        ("truststore", "", "", "", "cannot be read (Is a directory)"),
        ("truststore", "large", "", "", "is larger than 16 MiB"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_in_one_line(
    stores, kind, name, password, key_password, text
):
    given = store(kind, stores / name, password)
    with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)")) as caught:
        key_pair(given, Secret(key_password)) if kind == "keystore" else certificates(given)
    told = str(caught.value)
    assert told.startswith(f"Option 'kafka.ssl.{kind}.location'")
    assert told.endswith(text)
    assert "\n" not in told
    for secret in (PASSWORD, KEY_PASSWORD, WRONG):
        assert secret not in told


def test_a_truststore_that_is_not_ascii(tmp_path):
    path = tmp_path / "trust.pem"
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\nYW\xffj\n-----END CERTIFICATE-----\n")
    with pytest.raises(
        ValueError, match=r"^Option 'kafka\.ssl\.truststore\.location' has PEM that is not"
    ):
        ssl_context(Tls(store("truststore", path)), PemFiles())


@pytest.mark.parametrize("arrange", [lambda _: None, without_memory_files])
def test_content_of_any_size_can_be_read_from_its_path_and_is_gone_afterwards(arrange, monkeypatch):
    arrange(monkeypatch)
    content = os.urandom(300_000)
    with memory_file(content) as path:
        assert Path(path).read_bytes() == content
    with memory_file(content) as other:
        assert other == path
    assert not Path(path).exists()


def test_without_a_path_for_memory_a_file_is_deleted_afterwards(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with memory_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
        assert not path.startswith(("/proc", "/dev"))
    assert not Path(path).parent.exists()


def test_what_memory_holds_cannot_be_changed_while_it_is_read():
    with memory_file(b"key") as path, pytest.raises(PermissionError):
        Path(path).write_bytes(b"other")


KILLED = """
import json, os, signal, ssl, sys
from pyspark_kafka.adapters.kafka_python.settings import check_settings
from pyspark_kafka.domain.options.client_settings import read_java_settings

settings, has_memory_files = json.load(sys.stdin)
if not has_memory_files:
    del os.memfd_create

load = ssl.SSLContext.load_cert_chain

def load_cert_chain(context, *arguments):
    load(context, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)

ssl.SSLContext.load_cert_chain = load_cert_chain
check_settings(read_java_settings(settings))
"""


@pytest.mark.parametrize("has_memory_files", [True, False])
@pytest.mark.parametrize("is_inline", [True, False])
def test_killed_while_it_loads_a_key(client, tmp_path, is_inline, has_memory_files):
    """A process that is killed in the middle of loading a key leaves it in no file."""
    temporary, working = tmp_path / "temporary", tmp_path / "working"
    for directory in (temporary, working):
        directory.mkdir()
    settings = {"bootstrap.servers": "b:9092", "security.protocol": "SSL"}
    if is_inline:
        settings |= {
            "ssl.keystore.key": client.key_pem(),
            "ssl.keystore.certificate.chain": client.chain_pem,
        }
    else:
        location = client.write_pkcs12(tmp_path / "key.p12", PASSWORD)
        settings |= {"ssl.keystore.location": str(location), "ssl.keystore.password": PASSWORD}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED],
        input=json.dumps((settings, has_memory_files)),
        cwd=working,
        env=os.environ
        | {"PYTHONPATH": str(Path(pyspark_kafka.__file__).parents[1]), "TMPDIR": str(temporary)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [path for directory in (temporary, working) for path in directory.rglob("*")] == []


def tls(directory: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SSL",
        "ssl.certificate.location": str(directory / "chain.pem"),
        "ssl.key.location": str(directory / "key.pem"),
        "ssl.truststore.location": str(directory / "trust.pem"),
    }


def write(directory: Path, certificate: Certificate, authority: Authority) -> None:
    (directory / "chain.pem").write_text(certificate.chain_pem)
    (directory / "key.pem").write_text(certificate.key_pem())
    (directory / "trust.pem").write_text(authority.pem)


def test_new_connections_use_replaced_files_that_fit(authority, client, tmp_path, caplog):
    write(tmp_path, client, authority)
    current = check_settings(read_java_settings(tls(tmp_path)))["ssl_context"]
    first = current.context
    assert current.context is first

    other = authority.issue("client")
    with caplog.at_level(logging.WARNING, "pyspark_kafka"):
        (tmp_path / "key.pem").write_text(other.key_pem())
        assert current.context is first
        assert current.context is first
    [record] = caplog.records
    assert "the private key cannot be used" in record.getMessage()
    assert "PRIVATE KEY" not in caplog.text

    (tmp_path / "chain.pem").write_text(other.chain_pem)
    second = current.context
    assert second is not first
    replaced = tmp_path / "replaced.pem"
    replaced.write_text(Authority("Other").pem)
    replaced.rename(tmp_path / "trust.pem")
    third = current.context
    assert third is not second
    [trusted] = third.get_ca_certs()
    assert (("organizationName", "Other"),) in trusted["subject"]


def test_a_file_that_is_gone(authority, client, tmp_path):
    write(tmp_path, client, authority)
    current = check_settings(read_java_settings(tls(tmp_path)))["ssl_context"]
    first = current.context
    (tmp_path / "key.pem").unlink()
    assert current.context is first
    with pytest.raises(OptionsError, match=r"'kafka\.ssl\.key\.location'.*cannot be read"):
        check_settings(read_java_settings(tls(tmp_path)))


def test_rotating_again(tmp_path, caplog):
    """A file that cannot be used is tried again and logged once for each of its versions."""
    file, calls = tmp_path / "file", 0

    def make() -> str:
        nonlocal calls
        calls += 1
        text = file.read_text()
        if text.startswith("bad"):
            raise ValueError(text)
        return text

    file.write_text("good")
    rotating = Rotating([str(file)], make)
    file.write_text("bad")
    assert [rotating.current(), rotating.current()] == ["good", "good"]
    assert (calls, len(caplog.records)) == (3, 1)
    file.write_text("bad again")
    assert rotating.current() == "good"
    assert (calls, len(caplog.records)) == (4, 2)
    file.write_text("better")
    assert [rotating.current(), rotating.current()] == ["better", "better"]
    assert calls == 5


def test_rotation_of_librdkafka(authority, client, tmp_path, caplog):
    """A client is replaced once librdkafka can load the new files, and not before."""
    keystore = client.write_pem(tmp_path / "key.pem")
    settings = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.location": str(keystore),
        "kafka.ssl.truststore.certificates": authority.pem,
    }
    used = ClusterSettings(source_of("confluent", settings))

    def is_outdated() -> bool:
        return used.is_outdated

    assert not is_outdated()
    first = used.config({}, {})
    assert not is_outdated()

    other = authority.issue("client")
    keystore.write_text(other.key_pem() + client.chain_pem)
    assert not is_outdated()
    assert used.config({}, {}) == first
    [record] = caplog.records
    assert "key values mismatch" in record.getMessage()
    assert "PRIVATE KEY" not in caplog.text

    other.write_pem(keystore)
    assert is_outdated()
    assert used.config({}, {})["ssl.key.pem"] == other.key_pem()
    assert not is_outdated()


def test_a_password_that_librdkafka_cannot_use(client):
    settings = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.key": client.key_pem(KEY_PASSWORD),
        "kafka.ssl.keystore.certificate.chain": client.chain_pem,
        "kafka.ssl.key.password": WRONG,
    }
    cluster = Cluster(source_of("confluent", settings))
    with pytest.raises(OptionsError) as caught:
        cluster.make(AdminClient, {})
    told = str(caught.value)
    assert "kafka.ssl.keystore.key" in told
    assert "\n" not in told
    for secret in (WRONG, KEY_PASSWORD, "PRIVATE KEY"):
        assert secret not in told


RESET = struct.pack("ii", 1, 0)
"""The value of ``SO_LINGER`` that ends a connection by a reset."""


def test_a_socket_whose_connection_was_reset_before_tls_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connected = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        accepted.close()
        connected.setblocking(False)
        assert select.select([connected], [], [], 10)[0]
        with pytest.raises(ConnectionResetError):
            ssl_context(Tls(), PemFiles()).wrap_socket(
                connected, server_hostname="broker", do_handshake_on_connect=False
            )
    gc.collect()
