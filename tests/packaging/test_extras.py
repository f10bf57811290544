"""The wheel with each set of extras: the cells ``installed-…`` of the matrix choose the tests."""

import json
import re
import signal
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from pyspark_kafka.testing import await_until
from tests.documents import DOCS, TESTS, WITH_SPARK, WITHOUT_SPARK, check_page, sources
from tests.integration.client_files import connection
from tests.integration.test_prometheus_command import scrape, write
from tests.servers.http_server import Request, Response, serving
from tests.servers.secured import TLS_MECHANISM, SecuredBroker

from .environments import output_of
from .installed import Installed

pytestmark = pytest.mark.timeout(900)  # kernels are compiled, in each environment

COMMANDS: Final = re.findall(
    r"^\| \[`pyspark-kafka ([a-z -]+)`\]", (DOCS / "reference" / "cli.md").read_text(), re.MULTILINE
)
NEED_SPARK: Final = ("demo",)
NEED_EXTRAS: Final = ("broker", "completion", "prometheus")

PAGES_WITH_EXTRAS: Final = (
    "guides/choosing-a-client.md",
    "guides/continuous.md",
    "guides/dead-letters.md",
    "guides/metadata-logs.md",
    "library/testing-your-pipeline.md",
    "library/writing-an-adapter.md",
    "operate/lag.md",
)
PAGES_WITH_TESTING: Final = ("library/writing-an-adapter.md",)
GUIDES: Final = [name for name in WITH_SPARK if not name.startswith("get-started/")]
NOTEBOOKS: Final = sorted(DOCS.rglob("*.ipynb"))

NOWHERE: Final = ("--bootstrap-servers", "127.0.0.1:1")
OAUTH: Final = (
    "--option=kafka.security.protocol=SASL_SSL",
    "--option=kafka.sasl.mechanism=OAUTHBEARER",
)
MISSING: Final[dict[str, Sequence[str]]] = {
    "spark": ("demo", *NOWHERE),
    "confluent": ("broker",),
    "prometheus": ("prometheus", "--checkpoint", "/c", *NOWHERE),
    "cli": ("completion", "bash"),
    "s3": ("lag", "--checkpoint", "s3a://bucket/c", *NOWHERE),
    "protobuf": ("tail", "t", *NOWHERE, "--as=protobuf", "--option=valueSchema=order.proto"),
    "msk": ("topics", *NOWHERE, *OAUTH, "--option=tokenProvider=msk"),
    "azure": (
        *("topics", "--bootstrap-servers", "ns.servicebus.windows.net:9093", *OAUTH),
        "--option=tokenProvider=azure",
    ),
    "google": (
        *("topics", "--bootstrap-servers", "bootstrap.c.r.managedkafka.p.cloud.goog:9092", *OAUTH),
        "--option=tokenProvider=google",
    ),
}
"""Commands that report a missing extra, without a broker; ``tls`` needs one's store."""

PROTO: Final = 'syntax = "proto3";\nmessage Order { int64 id = 1; }\n'
AVRO: Final = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}'

CHECKPOINT: Final = """
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
for name in ("offsets", "commits"):
    log = FsspecMetadataLog(StoragePath({path!r} + "/" + name, {options!r}))
    print(log.add(0, b'v1\\n{{}}\\n{{"t":{{"0":4}}}}'), log.add(0, b"other"))
"""

ISSUED: Final = """
from pyspark_kafka import QueryKind, parse_source_options
from pyspark_kafka.adapters.security.tokens import token_provider
from pyspark_kafka.domain.options.client_settings import read_java_settings
options = {{
    "kafka.bootstrap.servers": {servers!r},
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "OAUTHBEARER",
    "tokenProvider": {provider!r},
    "subscribe": "t",
}}
parsed = parse_source_options(options, QueryKind.BATCH)
token = token_provider(read_java_settings(dict(parsed.kafka)).login.tokens).token()
"""


@pytest.fixture
def installed(installed_python, tmp_path):
    return Installed(installed_python, tmp_path)


@pytest.fixture
def written(topics):
    topic = topics.create()
    topics.numbers(topic, 0, range(3))
    return topic


@pytest.fixture
def at_kafka(kafka):
    return ("--bootstrap-servers", kafka.bootstrap_servers)


@pytest.mark.parametrize("name", [name for name in WITHOUT_SPARK if name not in PAGES_WITH_EXTRAS])
def test_a_page_that_needs_no_extra(name, installed):
    run_page(name, installed)


@pytest.mark.parametrize("name", PAGES_WITH_EXTRAS)
def test_a_page_that_needs_extras(name, installed):
    run_page(name, installed)


@pytest.mark.parametrize("name", [name for name in PAGES_WITH_EXTRAS if name in TESTS])
def test_all_tests_of_a_page(name, installed):
    run_tests_of(name, installed)


@pytest.mark.parametrize("name", PAGES_WITH_TESTING)
def test_the_tests_of_a_page(name, installed):
    run_tests_of(name, installed)


def run_page(name: str, installed: Installed) -> None:
    with installed.interpreter() as run:
        for source in sources(DOCS / name):
            run(source)


def run_tests_of(name: str, installed: Installed) -> None:
    module = installed.directory / "test_page.py"
    module.write_text("\n".join(sources(DOCS / name)))
    command: Sequence[str | Path] = [installed.python, "-m", "pytest", "-q", module]
    shell = {"cwd": installed.directory, "env": installed.environment}
    assert " passed" in output_of(command, **shell)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name, installed):
    assert f"pyspark-kafka {name}" in installed.printed(*name.split(), "--help")


def test_commands_without_extras(installed, at_kafka, written, topics, tmp_path):
    """All but those that start Spark, the embedded broker or an exporter, and the completion."""
    empty, checkpoint = topics.create(), tmp_path / "orders"
    write(checkpoint, 0, f'{{"{written}":{{"0":1}}}}')
    stopped = ("--query-is-stopped", "--yes")
    runs: dict[str, tuple[Sequence[str], str]] = {
        "doctor": (("--topic", written, *at_kafka), f"'{written}': 1 partition"),
        "topics": ((f"^{written}$", *at_kafka), written),
        "tail": ((written, "--from=earliest", "--once", *at_kafka), "2\n"),
        "lag": (("--checkpoint", str(checkpoint), "--json", *at_kafka), '"total": 2'),
        "offsets show": ((str(checkpoint),), written),
        "offsets diff": ((str(checkpoint), *at_kafka), "+2"),
        "offsets export": ((str(checkpoint),), f'{{"{written}":{{"0":1}}}}\n'),
        "offsets rewrite": ((str(checkpoint), "--to=latest", *stopped, *at_kafka), "+2"),
        "offsets undo": ((str(checkpoint), *stopped), ""),
        "dead-letters list": (("--topic", empty, *at_kafka), "0 records in 0 letters"),
        "dead-letters replay": (("--topic", empty, "--to", written, *at_kafka), "Wrote no records"),
    }
    assert {*runs, *NEED_SPARK, *NEED_EXTRAS} == {*COMMANDS}
    for name, (arguments, expected) in runs.items():
        status = 3 if name == "doctor" else 0  # it warns that there is no PySpark
        assert expected in installed.printed(*name.split(), *arguments, status=status), name


@pytest.mark.parametrize("extra", [*MISSING, "tls"])
def test_a_missing_extra(extra, installed, request):
    """One line says which, and how to install it."""
    (installed.directory / "order.proto").write_text(PROTO)
    arguments = MISSING.get(extra) or with_key_stores(installed, request)
    ended = installed.ended(*arguments)
    [line] = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert line.startswith("error: [KAFKA_MISSING_DEPENDENCY] ")
    assert f"pip install 'pyspark-kafka[{extra}]'" in line


def with_key_stores(installed: Installed, request: pytest.FixtureRequest) -> Sequence[str]:
    secured: SecuredBroker = request.getfixturevalue("secured")
    return ("topics", *connection(installed.directory, secured.options(TLS_MECHANISM)))


def test_pkcs12_stores(installed, request, secured, fresh_name):
    topic = fresh_name()
    secured.cluster.create_topic(topic)
    assert topic in installed.printed(*with_key_stores(installed, request))


def test_a_checkpoint_on_s3(installed, s3):
    """The library writes entries without replacing any, and a command reads them."""
    check_storage(installed, f"s3a://{s3.new_bucket()}/orders", s3.storage_options)


def test_a_checkpoint_on_hdfs(installed, hdfs, fresh_name):
    check_storage(installed, f"{hdfs.url}/{fresh_name()}")


def check_storage(installed: Installed, path: str, options: str = "{}") -> None:
    with installed.interpreter() as run:
        assert run(CHECKPOINT.format(path=path, options=options)) == "True False\n" * 2
    keys = installed.directory / "storage.json"
    keys.write_text(options)
    given = ("offsets", "export", path, "--storage-options-file", str(keys))
    assert installed.printed(*given) == '{"t":{"0":4}}\n'


def test_a_schema_registry(installed, at_kafka, topics, schema_registry):
    topic = topics.create()
    registry = open_registry(RegistryOptions(schema_registry))
    number = registry.register(f"{topic}-value", Schema(SchemaType.AVRO, AVRO))
    topics.values(topic, [id_prefix(number) + b"\x02"])
    given = ("--as=avro", f"--option=schema.registry.url={schema_registry}")
    assert tailed(installed, topic, *at_kafka, *given) == {"id": 1}


def test_protobuf_values(installed, at_kafka, topics):
    """Values are decoded with the text of a .proto file, which is compiled."""
    topic = topics.create()
    topics.values(topic, [b"\x08\x01"])
    (installed.directory / "order.proto").write_text(PROTO)
    given = ("--as=protobuf", "--option=valueSchema=order.proto")
    assert tailed(installed, topic, *at_kafka, *given) == {"id": 1}


def tailed(installed: Installed, topic: str, *given: str) -> object:
    line = installed.printed("tail", topic, *given, "--from=earliest", "--once", "--json")
    return json.loads(line)["value"]


def test_an_exporter(installed, at_kafka, written, tmp_path):
    write(tmp_path / "orders", 0, f'{{"{written}":{{"0":1}}}}')
    (tmp_path / "orders" / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    given = ("--checkpoint", str(tmp_path / "orders"), "--port", "0", "--interval", "0.2")
    with installed.running("prometheus", *at_kafka, *given) as exporter:
        url = exporter.await_line(bool).split()[-1]
        await_until(lambda: 2 in scrape(url).values())
        assert exporter.end(signal.SIGTERM) == 0
    assert list(exporter.errors) == []


def test_completion(installed):
    assert "dead-letters" in installed.printed("completion", "bash")


@pytest.mark.parametrize(
    ("provider", "servers_of_the_cloud"),
    [
        ("msk", "b-1.c.kafka.eu-west-1.amazonaws.com:9098"),
        ("azure", "ns.servicebus.windows.net:9093"),
        ("google", "bootstrap.c.r.managedkafka.p.cloud.goog:9092"),
    ],
)
def test_a_token(provider, servers_of_the_cloud, installed):
    """A token is signed on this machine, or issued by the metadata server of a virtual machine."""

    def respond(_: Request) -> Response:
        answer = {
            "access_token": "token",
            "expires_in": 240,
            "expires_on": str(int(time.time()) + 240),
            "email": "me@project.iam.gserviceaccount.com",
            "scopes": [],
            "aliases": [],
        }
        return Response(json.dumps(answer).encode(), headers=(("Metadata-Flavor", "Google"),))

    with serving(respond) as url:
        host = url.removeprefix("http://")
        variables = {
            "AWS_ACCESS_KEY_ID": "AKIAME",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "IDENTITY_ENDPOINT": url,
            "IDENTITY_HEADER": "secret",
            "GCE_METADATA_HOST": host,
            "GCE_METADATA_IP": host,
            "CLOUDSDK_CONFIG": str(installed.directory),
        }
        with installed.interpreter(**variables) as run:
            run(ISSUED.format(servers=servers_of_the_cloud, provider=provider))
            assert run("print(token.expires_ms > 0, bool(token.value))") == "True True\n"


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide(name, installed, topics, tmp_path):
    with installed.interpreter() as run:
        check_page(name, run, topics, tmp_path)


def test_the_demo_on_a_cluster(installed, at_kafka):
    """On a cluster, the demo needs Spark and no embedded broker."""
    assert "All 2,000 events" in installed.printed("demo", "--events=2000", *at_kafka)


def test_a_real_broker(installed):
    """Kafka's jars are found by Spark's Ivy."""
    with installed.running("broker", "--kafka", "--topic", "orders:2") as broker:
        line = broker.await_line(lambda line: "kafka.bootstrap.servers=" in line)
        servers = line.strip().partition("=")[2]
        assert "orders" in installed.printed("topics", "--bootstrap-servers", servers)
        assert broker.end(signal.SIGTERM) == 0


def test_an_embedded_broker(installed):
    """The embedded broker is librdkafka's, and the client reads it."""
    with installed.running("broker", "--topic", "orders:2") as broker:
        line = broker.await_line(lambda line: "kafka.bootstrap.servers=" in line)
        given = ("--bootstrap-servers", line.strip().partition("=")[2], "--client", "confluent")
        assert "orders" in installed.printed("topics", *given)
        assert broker.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("more", [(), ("--continuous", "--client=confluent")])
def test_the_demo(more, installed):
    assert "All 2,000 events" in installed.printed("demo", "--events=2000", *more)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook(notebook, installed):
    """Its cells run; what they show is tested with Jupyter."""
    cells = json.loads(notebook.read_text())["cells"]
    with installed.interpreter() as run:
        for cell in cells:
            if cell["cell_type"] == "code":
                run("".join(cell["source"]))
