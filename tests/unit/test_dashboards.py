"""The dashboard and the alert rules: they use series that are exported, and are explained."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus import (
    PrometheusCheckpointExporter,
    PrometheusLagExporter,
    PrometheusProgressListener,
)
from tests.documents import DOCS, ROOT

from .adapters.test_prometheus import BAD, FAILED, MEASURED, PROGRESS, lag

RULES: Final = DOCS / "operate" / "prometheus-alerts.yml"
DASHBOARD: Final = json.loads((DOCS / "operate" / "grafana-dashboard.json").read_text())
VARIABLE: Final = {"type": "prometheus", "uid": "${datasource}"}
SERIES: Final = re.compile(r"\bpyspark_kafka_\w+")
ALTERNATIVES: Final = re.compile(r'__name__=~"(\w+)\(([\w|]+)\)"')

PROMTOOL: Final = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool, of Debian's package prometheus, is not installed"
)


def exported() -> dict[str, set[str]]:
    """Return the labels of each series that the adapters export, by its name."""
    registry = CollectorRegistry()
    exporter = PrometheusCheckpointExporter(registry)
    exporter.put(FAILED)
    exporter.put(MEASURED)
    in_driver = CollectorRegistry()
    PrometheusLagExporter(in_driver).export(replace(lag(), bad_records=BAD))
    PrometheusProgressListener(in_driver).progressed(replace(PROGRESS, bad_records=BAD))
    samples = [
        sample
        for each in (registry, in_driver)
        for metric in each.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    ]
    return {sample.name: set(sample.labels) for sample in samples}


def panels() -> Iterator[dict[str, Any]]:
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions() -> list[str]:
    variables = DASHBOARD["templating"]["list"]
    asked = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    defined = [variable["definition"] for variable in variables if "definition" in variable]
    return [*asked, *map(_spelled_out, defined), RULES.read_text().partition("groups:")[2]]


def _spelled_out(definition: str) -> str:
    return ALTERNATIVES.sub(
        lambda found: " ".join(found[1] + name for name in found[2].split("|")), definition
    )


def test_what_is_asked_for_is_exported():
    """A name that no adapter exports would show an empty panel, or an alert that never fires."""
    asked = {name for text in expressions() for name in SERIES.findall(text)}
    assert asked <= exported().keys()
    # Bounds and epochs are there for people.
    assert len(exported().keys() - asked) < 6


@pytest.mark.parametrize("name", sorted(exported()))
def test_every_series_has_an_entry(name):
    text = (DOCS / "reference" / "metrics.md").read_text()
    [row] = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    assert set(re.findall(r"`(\w+)`", row.split("|")[2])) == exported()[name]


def test_panels_are_told_apart():
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(set(places)) == len(places)
    assert all(panel["title"] for panel in panels())
    asking = [panel for panel in panels() if panel["type"] != "row"]
    assert all(panel["datasource"] == VARIABLE and panel["description"] for panel in asking)
    for panel in asking:
        targets = panel["targets"]
        assert all(target["datasource"] == VARIABLE for target in targets)
        assert len({target["refId"] for target in targets}) == len(targets) > 0


def test_the_data_source_and_the_queries_are_chosen():
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "query"}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["query"]["datasource"] == VARIABLE
    selections = [expression.count("{") for expression in expressions()[:-2]]
    chosen = [expression.count('{query=~"$query"}') for expression in expressions()[:-2]]
    assert chosen == selections
    assert min(chosen) > 0


def test_every_alert_is_explained():
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    page = (DOCS / "operate" / "alerts.md").read_text()
    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == alerts
    tested = (ROOT / "tests" / "unit" / "alert_rules_test.yml").read_text()
    assert {name for name in alerts if f"alertname: {name}" not in tested} == set()


@needs_promtool
def test_rules_are_valid_and_fire():
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(ROOT / "tests" / "unit" / "alert_rules_test.yml"))


@needs_promtool
def test_the_dashboard_s_expressions_are_valid(tmp_path):
    asked = {each.replace("$query", ".*") for each in expressions()[:-2]}
    rules = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(sorted(asked))]
    file = tmp_path / "rules.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


def promtool(*arguments: str) -> None:
    command = [str(PROMTOOL), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
