from argparse import Namespace

import pytest

from pyspark_kafka.cli.prometheus import _checkpoints
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from tests.unit.cli.arguments import parsed, refused

GIVEN = ("prometheus", "--bootstrap-servers", "h:9092")


def given(*arguments: str) -> Namespace:
    return Namespace(**parsed(*GIVEN, *arguments))


def test_checkpoints_are_named_by_their_last_part():
    found = given(
        *("--checkpoint", "s3a://bucket/queries/orders/"),
        *("--checkpoint", "clicks=hdfs://n/day=5/c"),
        *("--checkpoint", "/data/day=7"),
    )
    assert _checkpoints(found) == {
        "orders": StoragePath("s3a://bucket/queries/orders/"),
        "clicks": StoragePath("hdfs://n/day=5/c"),
        "day=7": StoragePath("/data/day=7"),
    }
    assert (found.host, found.port, found.json) == ("127.0.0.1", 9464, False)
    assert (found.interval, found.timeout, found.count_up_to) == (15, 15, 1_000)


@pytest.mark.parametrize(
    ("arguments", "problem"),
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
def test_what_is_wrong_is_said(arguments, problem, capsys):
    errors = refused([*GIVEN, *arguments], capsys)
    assert problem in errors
    assert "geheim" not in errors


def test_settings_hide_secrets(tmp_path_factory):
    file = tmp_path_factory.mktemp("secrets") / "storage.json"
    file.write_text('{"secret": "geheim"}')
    found = _checkpoints(given("--checkpoint", "s3a://b/c", "--storage-options-file", str(file)))
    assert found["c"].options == {"secret": "geheim"}
    assert "geheim" not in repr(found)
