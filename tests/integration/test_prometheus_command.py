"""``pyspark-kafka prometheus``, scraped while checkpoints come, fail and are fixed."""

import json
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from pyspark_kafka.testing import await_until
from tests.documents import DOCS

from .commands import SECONDS, running

PROMETHEUS: Final = shutil.which("prometheus")


def write(checkpoint: Path, batch_id: int, ends: str) -> None:
    for log, text in (("offsets", f'v1\n{{"batchTimestampMs":1500}}\n{ends}'), ("commits", "v1\n")):
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / str(batch_id)).write_text(text)


def scrape(url: str) -> dict[str, float]:
    with urlopen(url) as answer:  # noqa: S310 - the URL is on this machine
        lines = answer.read().decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_a_scrape(kafka, topics, tmp_path):
    topic = topics.create()
    topics.numbers(topic, 0, range(9))
    orders, clicks = tmp_path / "orders", tmp_path / "clicks"
    query_id = str(uuid.uuid4())
    write(orders, 3, f'{{"{topic}":{{"0":2}}}}')
    (orders / "metadata").write_text(json.dumps({"id": query_id}))
    with running(
        "prometheus",
        *("--bootstrap-servers", kafka.bootstrap_servers, "--count-up-to", "0"),
        *("--checkpoint", str(orders), "--checkpoint", f"late={clicks}"),
        *("--port", "0", "--interval", "0.2"),
    ) as exporter:
        url = exporter.await_line(bool).split()[-1]
        assert url.startswith("http://127.0.0.1:")
        query = f'query="orders",query_id="{query_id}"'
        lag = f'pyspark_kafka_lag{{partition="0",{query},source="0",topic="{topic}"}}'
        await_until(lambda: scrape(url).get(lag) == 7)
        await_until(lambda: scrape(url).get('pyspark_kafka_checkpoint_up{query="late"}') == 0)
        await_until(lambda: len(exporter.errors) == 1)
        assert " late: [KAFKA_NO_CHECKPOINT] " in exporter.errors[0]
        found = scrape(url)
        assert found['pyspark_kafka_checkpoint_up{query="orders"}'] == 1
        assert found['pyspark_kafka_checkpoint_batch{query="orders"}'] == 3
        failures = 'pyspark_kafka_checkpoint_errors_total{condition="KAFKA_NO_CHECKPOINT"'
        # It fails in each round, and says so once.
        await_until(lambda: scrape(url).get(f'{failures},query="late"}}', 0) > 2)
        write(clicks, 0, f'{{"{topic}":{{"0":9}}}}')
        (clicks / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        await_until(lambda: scrape(url).get('pyspark_kafka_checkpoint_up{query="late"}') == 1)
        await_until(lambda: len(exporter.errors) == 2)
        assert exporter.errors[1].endswith(" late: The lag is measured again\n")
        assert exporter.end(signal.SIGTERM) == 0
    assert len(exporter.errors) == 2


def test_brokers_that_do_not_answer(tmp_path):
    write(tmp_path, 0, '{"t":{"0":2}}')
    with running(
        *("prometheus", "--bootstrap-servers", "127.0.0.1:1", "--checkpoint", f"t={tmp_path}"),
        *("--port", "0", "--timeout", "0.5", "--interval", "0.1", "--json"),
    ) as exporter:
        json.loads(exporter.await_line(bool))
        await_until(lambda: len(exporter.errors) == 1)
        line = json.loads(exporter.errors[0])
        assert (line["query"], line["condition"]) == ("t", "TIMEOUT")
        assert exporter.end(signal.SIGTERM) == 0


@contextmanager
def prometheus(target: str, directory: Path) -> Iterator[str]:
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "lag", "static_configs": [{"targets": [target]}]}],
        "rule_files": [str(DOCS / "operate" / "prometheus-alerts.yml")],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(PROMETHEUS),
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(command) as process:
        try:
            yield f"http://{address}/api/v1"
        finally:
            process.terminate()
            process.wait(SECONDS)


def answer(url: str) -> Any:
    with suppress(OSError), urlopen(url) as found:  # noqa: S310 - the URL is on this machine
        return json.load(found)["data"]
    return {}


def alerts(api: str) -> set[tuple[str, str, str]]:
    found = answer(f"{api}/alerts").get("alerts", ())
    labels = [(each["labels"], each["state"]) for each in found]
    return {(each["alertname"], each.get("query", ""), state) for each, state in labels}


@pytest.mark.skipif(
    PROMETHEUS is None, reason="prometheus, of Debian's package prometheus, is not installed"
)
def test_a_real_prometheus(kafka, topics, tmp_path):
    topic = topics.create()
    topics.numbers(topic, 0, range(9))
    write(tmp_path / "orders", 3, f'{{"{topic}":{{"0":2}}}}')
    (tmp_path / "orders" / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    with running(
        *("prometheus", "--bootstrap-servers", kafka.bootstrap_servers, "--count-up-to", "0"),
        *("--checkpoint", str(tmp_path / "orders"), "--port", "0"),
    ) as exporter:
        target = exporter.await_line(bool).split()[-1].split("/")[2]
        with prometheus(target, tmp_path) as api:
            lag = f"{api}/query?query=pyspark_kafka_lag"
            await_until(lambda: bool(answer(lag).get("result")), SECONDS)
            [found] = answer(lag)["result"]
            assert found["value"][1] == "7"
            assert found["metric"]["topic"] == topic
            # The batch began in 1970, and there is lag.
            pending = ("PysparkKafkaQueryStalled", "orders", "pending")
            await_until(lambda: alerts(api) == {pending}, SECONDS)
        assert exporter.end(signal.SIGTERM) == 0
