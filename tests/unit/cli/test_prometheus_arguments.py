from __future__ import annotations

import pytest

from pyspark_kafka.cli.parser import PrometheusSettings, parse_arguments
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath

GIVEN = ("prometheus", "--bootstrap-servers", "h:9092")


def parsed(*arguments: str) -> PrometheusSettings:
    settings = parse_arguments([*GIVEN, *arguments])
    assert isinstance(settings, PrometheusSettings)
    return settings


def test_checkpoints_are_named_by_their_last_part() -> None:
    """Unless they are given a name; only this machine can connect."""
    settings = parsed(
        *("--checkpoint", "s3a://bucket/queries/orders/"),
        *("--checkpoint", "clicks=hdfs://n/day=5/c"),
        *("--checkpoint", "/data/day=7"),
    )
    assert settings.checkpoints == {
        "orders": StoragePath("s3a://bucket/queries/orders/"),
        "clicks": StoragePath("hdfs://n/day=5/c"),
        "day=7": StoragePath("/data/day=7"),
    }
    assert (settings.host, settings.port, settings.as_json) == ("127.0.0.1", 9464, False)
    assert (settings.interval, settings.timeout, settings.max_counted) == (15, 15, 1_000)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ((), "the following arguments are required: --checkpoint"),
        (
            ("--checkpoint", "a/orders", "--checkpoint", "b/orders"),
            "two checkpoints are named 'orders': name them with NAME=URL",
        ),
        (("--checkpoint", "orders=s3a://key:geheim@bucket/x"), "the URL holds a secret"),
        (("--checkpoint", "x", "--port", "65536"), "'65536' is not a port"),
        (("--checkpoint", "x", "--timeout", "0"), "'0' is not a number of seconds above 0"),
        (("--checkpoint", "x", "--option", "kafka.sasl.jaas.config=geheim"), "holds a secret"),
    ],
)
def test_what_is_wrong_is_said(
    given: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*given)
    errors = capsys.readouterr().err
    assert problem in errors
    assert "geheim" not in errors


def test_settings_hide_secrets(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("secrets") / "storage.json"
    file.write_text('{"secret": "geheim"}')
    settings = parsed("--checkpoint", "s3a://b/c", "--storage-options-file", str(file))
    assert settings.checkpoints["c"].options == {"secret": "geheim"}
    assert "geheim" not in repr(settings)
