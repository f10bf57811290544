import pytest

from pyspark_kafka.domain.options.settings_table import SETTINGS
from pyspark_kafka.domain.security.secrets import hide, holds_secret, is_secret, without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.sasl.password",
        "kafka.sasl.pasword",
        "kafka.sasl.passwd",
        "kafka.ssl.key",
        "schema.registry.basic.auth",
        "kafka.sasl.oauthbearer.config",
        "sasl_plain_password",
        "kafka.ssl.keystore.password",
        "kafka.ssl.keystore.key",
        "kafka.ssl.key.password",
        "kafka.ssl.key.pem",
        "ssl_key_pem",
        "kafka.sasl.oauthbearer.client.secret",
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
        "kafka.sasl.oauthbearer.assertion.private.key.pem",
        "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
        "metadataStorageOptions",
        "metadatastorageoptions",
        "secret",
        "token",
        "account_key",
        "connection_string",
        "sas_token",
        "aws_secret_access_key",
    ],
)
def test_secrets_are_known_by_their_names(name):
    assert is_secret(name)


def test_only_these_settings_of_javas_clients_hold_a_secret():
    assert [setting.name for setting in SETTINGS if is_secret(setting.name)] == [
        "sasl.jaas.config",
        "sasl.password",
        "sasl.plain.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.credentials.client.secret",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "kafka.ssl.keystore.location",
        "kafka.ssl.key.location",
        "schema.registry.basic.auth.credentials.source",
        "kafka.ssl.truststore.certificates",
        "kafka.ssl.keystore.certificate.chain",
        "kafka.sasl.oauthbearer.token.endpoint.url",
        "kafka.sasl.oauthbearer.client.credentials.client.id",
        "kafka.sasl.oauthbearer.assertion.private.key.file",
        "key",
        "includeKey",
        "tokenProvider",
    ],
)
def test_other_names_are_no_secrets(name):
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secret", "x"),
        ("metadataPath", "s3://key:secret@bucket/path"),
        ("metadataPath", "s3://key:sec/ret@bucket/path"),
        ("metadataPath", "s3a://key:98/secret@bucket/path"),
        ("metadataPath", "abfss://c@a.dfs.core.windows.net/x?se=1&sig=a"),
        ("metadataPath", "https://bucket/x?X-Amz-Signature=a"),
        ("any", "-----BEGIN RSA PRIVATE KEY-----\nAA"),
        ("client_kwargs", '{"a": [{"aws_secret_access_key": "x"}]}'),
        ("client_kwargs", '{"endpoint_url": "http://u:p@host"}'),
    ],
)
def test_secrets_are_known_by_their_values_too(name, value):
    assert holds_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_kwargs", '{"endpoint_url": "http://host:9000/a@b", "list": [1, null]}'),
        ("metadataPath", "s3://bucket/path"),
        ("subscribe", "password"),
    ],
)
def test_other_values_are_no_secrets(name, value):
    assert not holds_secret(name, value)


KEY = "-----BEGIN EC PRIVATE KEY-----\nhush\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"got '{KEY}' here", "got '[hidden]' here"),
        (f"got {KEY[:36]!r}", "got '[hidden]"),
        ("at 's3://AKIA:hu/sh@bucket/x', twice", "at 's3://bucket/x', twice"),
        ("at s3:/AKIA:hush@bucket/x", "at s3:/bucket/x"),
        ("at s3a://AKIA:98/hush@bucket/x, twice", "at s3a://bucket/x, twice"),
        ("at S3:/AKIA:98/hush@bucket/x", "at S3:/bucket/x"),
        ("at ftp://u:98/hu@sh@host:21/x (no)", "at ftp://u:[hidden]@host:21/x (no)"),
        ("https://hush@host/x (no)", "https://host/x (no)"),
        ("(abfss://a/x?sv=1&sig=hush)", "(abfss://a/x?[hidden])"),
        (
            'P required username="u" password="hush";',
            'P required username="u" password="[hidden]";',
        ),
        ('P required password="hush', 'P required password="[hidden]"'),
        ('{"key": "AKIA", "secret": "hush"}', '{"key": "AKIA", "secret": "[hidden]"}'),
        ("P required password='hush';", 'P required password="[hidden]";'),
        ("P required password=hush;", "P required password=[hidden];"),
        (r'P required password="a\"hush";', 'P required password="[hidden]";'),
        (r"""P required password="a\\"hush\";""", 'P required password="[hidden]"'),
        (r'{"sasl.password": "a\"hush"}', '{"sasl.password": "[hidden]"}'),
        ("{'sasl.password': 'hush'}", "{'sasl.password': \"[hidden]\"}"),
        ('{"password": ["hush"]}', '{"password": "[hidden]"}'),
        ("got 'sasl.password=hush'", "got 'sasl.password=[hidden]'"),
        ("sasl.password = hush", "sasl.password = [hidden]"),
        (r"P required password=\"hush\";", 'P required password=[hidden]";'),
        ("a=b&client_secret=hush&c=d", "a=b&client_secret=[hidden]&c=d"),
        ("Authorization: Basic aHVzaA==", "Authorization: Basic [hidden]"),
        ("{'authorization': 'Bearer hush'}", "{'authorization': 'Bearer [hidden]'}"),
        ("got eyJhbGciOiJub25lIn0.eyJhIjoxfQ.", "got [hidden]."),
        ("sb://x/;SharedAccessKey=hush=;a=b", "sb://x/;SharedAccessKey=[hidden];a=b"),
    ],
)
def test_secrets_are_taken_out_of_texts(text, shown):
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "No Kafka broker answered at SASL_SSL://a:9092,SASL_SSL://b:9092 within 10 s",
        "--allow-principal User:ann@EXAMPLE.COM, kafka/host@EXAMPLE.COM",
        "Set 'kafka.sasl.password'. Did you mean 'topic'? See https://host/x",
        "webhdfs://host:9870/user/ann and webhdfs://host/user/ann@example.com",
        "Option 'kafka.sasl.jaas.config': the login module is not supported",
        "sasl.oauthbearer.token.endpoint.url=https://idp/token, tokenProvider='vault'",
        "Basic authentication is needed. Bearer tokens: see the docs",
    ],
)
def test_other_texts_stay(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        ("hu/sh+1", "hu/sh+1, hu%2Fsh%2B1, a%3Ahu%2Fsh%2B1", "[hidden], [hidden], a%3A[hidden]"),
        ("a b/c", "a+b%2Fc a%20b%2Fc", "[hidden] [hidden]"),
        ("x", "Max retries of x exceeded", "Max retries of [hidden] exceeded"),
        ("", "nothing", "nothing"),
        ("p%s/w?d", "p%25s%2fw%3fd", "[hidden]"),
        ("a&b<cde", "a&amp;b&lt;cde", "[hidden]"),
        ('say"hello"', r"say\"hello\"", "[hidden]"),
        ("pä55word", r"p\u00e455word", "[hidden]"),
    ],
)
def test_known_secrets_are_taken_out_of_texts(secret, text, shown):
    """Also as URLs, HTML and JSON spell them; those of a few letters only as whole words."""
    assert hide(text, [secret]) == shown


def test_json_that_is_nested_too_deeply_names_no_secret():
    assert not holds_secret("x", "[" * 100_000)
