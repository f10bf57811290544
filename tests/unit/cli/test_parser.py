from argparse import Namespace
from pathlib import Path

import pytest

from pyspark_kafka.bootstrap.plugins import client_names
from pyspark_kafka.cli.arguments import Connection, client_settings, storage_options
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from tests.unit.cli.arguments import parsed, refused


def test_the_demo_needs_no_option():
    assert parsed("demo") == {
        "bootstrap_servers": None,
        "topic": None,
        "client": "kafka-python",
        "events": None,
        "spark_log": None,
        "continuous": False,
    }


def test_options_of_the_demo_have_their_values():
    given = [
        *("demo", "--bootstrap-servers", "h:9092", "--client", "confluent"),
        *("--events", "100000", "--spark-log", "x.log", "--continuous"),
    ]
    assert parsed(*given) == {
        "bootstrap_servers": "h:9092",
        "topic": None,
        "client": "confluent",
        "events": 100_000,
        "spark_log": Path("x.log"),
        "continuous": True,
    }


def test_demo_of_a_topic():
    given = parsed("demo", "--bootstrap-servers", "h:9092", "--topic", "mine")
    assert (given["bootstrap_servers"], given["topic"]) == ("h:9092", "mine")


LAG = ("lag", "--checkpoint", "s3a://b/c", "--bootstrap-servers", "h:9092")


def test_a_checkpoint_and_a_cluster_are_enough_to_show_a_querys_lag():
    given = parsed(*LAG)
    assert Connection.given(Namespace(**given)) == Connection("h:9092")
    assert storage_options(Namespace(**given)) == "{}"
    assert given["checkpoint"] == "s3a://b/c"
    assert (given["interval"], given["count_up_to"]) == (None, 1_000)
    assert not given["json"]
    assert not given["once"]


def test_storage_options_are_json_if_they_parse_as_such_and_strings_otherwise():
    given = [
        *("--option", "kafka.security.protocol=SASL_SSL", "--option", "kafka.sasl.x=a=b"),
        *("--storage-option", "anon=true", "--storage-option", "key=AK"),
        *("--storage-option", 'client_kwargs={"region_name":"x"}', "--storage-option", 'n="1"'),
        *("--client", "confluent", "--count-up-to", "0", "--json", "--interval", "0.5"),
    ]
    found = parsed(*LAG, *given)
    options = (("kafka.security.protocol", "SASL_SSL"), ("kafka.sasl.x", "a=b"))
    assert Connection.given(Namespace(**found)) == Connection("h:9092", "confluent", options)
    assert storage_options(Namespace(**found)) == (
        '{"anon": true, "key": "AK", "client_kwargs": {"region_name": "x"}, "n": "1"}'
    )
    assert (found["interval"], found["json"], found["count_up_to"]) == (0.5, True, 0)


def test_lag_hides_what_may_be_secret(tmp_path):
    config, storage = tmp_path / "client.properties", tmp_path / "storage.json"
    config.write_text("sasl.jaas.config=geheim")
    storage.write_text('{"secret": "geheim", "key": "AK"}')
    files = ("--command-config", str(config), "--storage-options-file", str(storage))
    given = Namespace(**parsed(*LAG, *files, "--storage-option", "key=other"))
    connection = Connection.given(given)
    assert connection.options == (("kafka.sasl.jaas.config", "geheim"),)
    assert storage_options(given) == '{"secret": "geheim", "key": "other"}'
    checkpoint = StoragePath(given.checkpoint, storage_options(given))
    assert "geheim" not in repr((connection, checkpoint))


CLUSTER = ("--bootstrap-servers", "h:9092")


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ([*LAG, "--option", "kafka.sasl.jaas.config=geheim"], "--command-config"),
        ([*LAG, "--option", "kafka.ssl.key.pem=geheim"], "--command-config"),
        ([*LAG, "--storage-option", "secret=geheim"], "--storage-options-file"),
        (
            [*LAG, "--storage-option", 'client_kwargs={"aws_secret_access_key":"geheim"}'],
            "--storage-options-file",
        ),
        (["lag", "--checkpoint", "s3://k:geheim@b/c", *CLUSTER], "--storage-options-file"),
        (["lag", "--checkpoint", "s3://k:ge/geheim@b/c", *CLUSTER], "--storage-options-file"),
        (["lag", "--checkpoint", "abfss://c@a/x?sig=geheim", *CLUSTER], "--storage-options-file"),
    ],
)
def test_secrets_are_refused_on_the_command_line(given, instead, capsys):
    said = refused(given, capsys)
    assert "holds a secret, and other users of this machine can read the command line" in said
    assert said.rstrip().endswith(f"write it to a file and pass the file with {instead}")
    assert "geheim" not in said


def test_a_wrong_argument_is_shown_without_a_secret(capsys):
    said = refused([*LAG, "--interval", "s3://k:geheim@b/c"], capsys)
    assert "'s3://b/c' is not a number" in said


@pytest.mark.parametrize("text", ["geheim", "[1]", '{"secret": "geheim"'])
def test_a_file_of_storage_options_must_be_a_json_object(text, tmp_path, capsys):
    file = tmp_path / "storage.json"
    file.write_text(text)
    said = refused([*LAG, "--storage-options-file", str(file)], capsys)
    assert f"'{file}' holds no JSON object" in said
    assert "geheim" not in said


def test_the_mock_broker_needs_no_option_and_has_no_topics_by_default():
    assert parsed("broker") == {"kafka": False, "brokers": 1, "port": None, "topics": []}


def test_options_of_the_broker_have_their_values():
    given = ["--kafka", "--brokers", "3", "--port", "9092", "--topic", "a:4", "--topic", "b"]
    topics = [("a", 4), ("b", 1)]
    expected = {"kafka": True, "brokers": 3, "port": 9092, "topics": topics}
    assert parsed("broker", *given) == expected


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_clients_are_those_of_the_option_client(client):
    assert parsed("demo", "--client", client)["client"] == client
    assert client in client_names()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "the following arguments are required: command"),
        (["demo", "--topic", "t"], "--topic needs --bootstrap-servers"),
        (["demo", "--events", "0"], "'0' is not a positive number"),
        (["demo", "--events", "many"], "'many' is not a positive number"),
        (["demo", "--events", "80001"], "more than 80000 --events need a Kafka"),
        (["demo", "--client", "java"], "invalid choice: 'java'"),
        (
            ["demo", "--bootstrap-servers", "h:1", "--topic", "t", "--events", "5"],
            "--events cannot go with --topic",
        ),
        (
            ["demo", "--bootstrap-servers", "h:1", "--topic", "t", "--continuous"],
            "--continuous cannot go with --topic",
        ),
        (["lag", "--checkpoint", "c"], "the following arguments are required: --bootstrap"),
        ([*LAG, "--once", "--interval", "1"], "--interval cannot go with --once"),
        ([*LAG, "--interval", "0"], "'0' is not a number of seconds above 0"),
        ([*LAG, "--interval", "nan"], "'nan' is not a number of seconds above 0"),
        ([*LAG, "--interval", "soon"], "'soon' is not a number of seconds above 0"),
        ([*LAG, "--count-up-to", "-1"], "'-1' is not a positive number"),
        ([*LAG, "--option", "kafka.x"], "an option has the form name=value"),
        ([*LAG, "--option", "=x"], "an option has the form name=value"),
        (["broker", "--port", "9092"], "--port needs --kafka"),
        (["broker", "--kafka", "--port", "70000"], "'70000' is not a port"),
        (["broker", "--topic", ":3"], "':3' does not name a topic"),
        (["broker", "--topic", "a:0"], "'0' is not a positive number"),
    ],
)
def test_what_cannot_be_run(given, problem, capsys):
    assert problem in refused(given, capsys)


def test_help_tells_what_is_written_where(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed("demo", "--help")
    assert ended.value.code == 0
    assert "nothing is written" in capsys.readouterr().out


def test_client_settings_are_read_from_a_file(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "# a comment\n"
        "\n"
        "security.protocol = SASL_SSL\n"
        "sasl.jaas.config=a.Module required \\\n"
        '    username="u" password="p=q";\n'
    )
    given = ["lag", "--checkpoint", "/c", "--bootstrap-servers", "b:1"]
    found = parsed(*given, "--command-config", str(file), "--option", "assign={}")
    assert Connection.given(Namespace(**found)).options == (
        ("kafka.security.protocol", "SASL_SSL"),
        ("kafka.sasl.jaas.config", 'a.Module required username="u" password="p=q";'),
        ("assign", "{}"),
    )


def test_client_settings_are_read_as_javas_properties(tmp_path):
    """The meaning of each line is that of ``java.util.Properties``, which has read it."""
    file = tmp_path / "client.properties"
    file.write_text(
        "\ufeff# see C:\\dir\\\n"
        "security.protocol=SASL_PLAINTEXT\r\n"
        "! another comment\n"
        r"sasl.jaas.config=a.Module required password=\"p\\\"x\";"
        "\n"
        r"ssl.truststore.password caf\u00e9\=1"
        "\n"
        "ssl.key.password : a\u2028b\n"
        "a.b=c\\\\\n"
        "d\\=e=f\\\n   \tg\n"
        r"h=\t\q"
        "\n"
        r"i=\ud83d\ude00",
        newline="",
    )
    assert client_settings(str(file)) == (
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.jaas.config", 'a.Module required password="p\\"x";'),
        ("ssl.truststore.password", "café=1"),
        ("ssl.key.password", "a\u2028b"),
        ("a.b", "c\\"),
        ("d=e", "fg"),
        ("h", "q"),
        ("i", "\U0001f600"),
    )


@pytest.mark.parametrize("text", ["nosetting", "= value", r"a=\u12", None])
def test_an_invalid_settings_file_is_refused(text, tmp_path, capsys):
    file = tmp_path / "client.properties"
    if text is not None:
        file.write_text(text)
    given = ["lag", "--checkpoint", "/c", "--bootstrap-servers", "b:1"]
    assert "--command-config" in refused([*given, "--command-config", str(file)], capsys)


def test_clients_of_other_distributions_can_be_chosen(monkeypatch):
    names = ["confluent", "kafka-python", "memory", "mine"]
    monkeypatch.setattr("pyspark_kafka.cli.arguments.client_names", lambda: names)
    assert parsed(*LAG, "--client", "mine")["client"] == "mine"
    with pytest.raises(SystemExit):
        parsed(*LAG, "--client", "memory")
