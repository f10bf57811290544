import pickle
from typing import Final

import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.oauth import (
    AzureIdentity,
    ClientCredentials,
    GoogleCredentials,
    MskIam,
    TokenFunction,
    TokenSource,
)
from pyspark_kafka.domain.security.secrets import Secret

KAFKA: Final = "org.apache.kafka.common.security.oauthbearer"
MODULE: Final = f"{KAFKA}.OAuthBearerLoginModule"
MSK: Final = "software.amazon.msk.auth.iam"
SPRING: Final = "com.azure.spring.cloud.service.implementation.kafka"
BUS: Final = "ns.servicebus.windows.net"
MSK_MODULE: Final = f"{MSK}.IAMLoginModule"
HANDLER: Final = "sasl.login.callback.handler.class"
ENDPOINT: Final = "https://idp.example.com/token"
OAUTH: Final = {
    "bootstrap.servers": "b:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
}
ISSUER: Final = {"sasl.oauthbearer.token.endpoint.url": ENDPOINT}
LOGIN: Final = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": "hunter2",
}
CREDENTIALS: Final = ClientCredentials(ENDPOINT, "me", Secret("hunter2"))


def source(settings: dict[str, str]) -> TokenSource | None:
    read = read_java_settings(OAUTH | settings)
    assert read.problems == ()
    assert read.login is not None
    return read.login.tokens


def problem(settings: dict[str, str]) -> str:
    [found] = read_java_settings(OAUTH | settings).problems
    assert "hunter2" not in found
    return found


def jaas(options: str, module: str = MODULE) -> dict[str, str]:
    return {"sasl.jaas.config": f"{module} required {options};"}


@pytest.mark.parametrize(
    "settings",
    [
        # Java 4.1 (KIP-1139), Java before it, librdkafka and Strimzi.
        ISSUER | LOGIN,
        ISSUER | jaas("clientId=me clientSecret=hunter2"),
        ISSUER | jaas("clientId=me clientSecret=hunter2", f"kafkashaded.{MODULE}"),
        ISSUER
        | {
            "sasl.oauthbearer.method": "OIDC",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "hunter2",
        },
        jaas(
            f'oauth.client.id="me" oauth.client.secret="hunter2" '
            f'oauth.token.endpoint.uri="{ENDPOINT}"'
        ),
    ],
)
@pytest.mark.parametrize(
    "handler",
    [
        "",
        f"{KAFKA}.OAuthBearerLoginCallbackHandler",
        f"{KAFKA}.secured.OAuthBearerLoginCallbackHandler",
        f"kafkashaded.{KAFKA}.secured.OAuthBearerLoginCallbackHandler",
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
    ],
)
def test_client_credentials(settings, handler):
    assert source(settings | {HANDLER: handler}) == CREDENTIALS


def test_all_of_client_credentials():
    line = (
        "clientId=me clientSecret=hunter2 scope=kafka oauth.audience=brokers "
        "extension_logicalCluster=lkc-1"
    )
    others = {
        "sasl.oauthbearer.extensions": "identityPoolId=pool-1,logicalCluster=none",
        "sasl.oauthbearer.header.urlencode": "true",
        "https.ca.location": "/ca.pem",
    }
    assert source(ISSUER | others | jaas(line)) == ClientCredentials(
        ENDPOINT,
        "me",
        Secret("hunter2"),
        "kafka",
        "brokers",
        (("identityPoolId", "pool-1"), ("logicalCluster", "lkc-1")),
        encodes_header=True,
        ca_location="/ca.pem",
    )


def test_a_source_travels_without_being_shown():
    assert pickle.loads(pickle.dumps(CREDENTIALS)) == CREDENTIALS  # noqa: S301
    assert "hunter2" not in repr(read_java_settings(OAUTH | ISSUER | LOGIN))


@pytest.mark.parametrize(
    ("servers", "settings", "expected"),
    [
        (
            "b-1.c.abc.c2.kafka.eu-west-1.amazonaws.com:9098,other:9098",
            {"sasl.mechanism": "AWS_MSK_IAM"},
            MskIam("eu-west-1"),
        ),
        (
            "boot-x.c1.kafka-serverless.us-east-2.amazonaws.com:9098",
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.client.callback.handler.class": f"{MSK}.IAMClientCallbackHandler",
                **jaas('awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName=s', MSK_MODULE),
            },
            MskIam("us-east-2", role_arn="arn:aws:iam::1:role/r", session_name="s"),
        ),
        (
            "proxy:9098",
            {HANDLER: f"{MSK}.IAMOAuthBearerLoginCallbackHandler", **jaas("awsProfileName=prod")},
            MskIam(profile="prod"),
        ),
        ("proxy:9098", {HANDLER: "msk"}, MskIam()),
        (
            "bootstrap.c.eu.managedkafka.p.cloud.goog:9092",
            {
                HANDLER: "kafkashaded.com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
                **jaas(""),
            },
            GoogleCredentials(),
        ),
        ("bootstrap.c.eu.managedkafka.p.cloud.goog:9092", {HANDLER: "google"}, GoogleCredentials()),
        (
            f"{BUS}:9093",
            {
                HANDLER: f"{SPRING}.KafkaOAuth2AuthenticateCallbackHandler",
                **jaas("clientId=managed"),
            },
            AzureIdentity(f"https://{BUS}/.default", "managed"),
        ),
        (f"{BUS}:9093,", {HANDLER: "azure"}, AzureIdentity(f"https://{BUS}/.default")),
        (f"SASL_SSL://{BUS}:9093", {HANDLER: "azure"}, AzureIdentity(f"https://{BUS}/.default")),
        (BUS, {HANDLER: "azure"}, AzureIdentity(f"https://{BUS}/.default")),
        ("b:9092", {HANDLER: "my.module:token"}, TokenFunction("my.module:token")),
        ("b:9092", {HANDLER: "vault"}, TokenFunction("vault")),
        ("b:9092", {"sasl.oauthbearer.grant.type": "jwt-bearer"}, None),
        ("b:9092", {"enable.sasl.oauthbearer.unsecure.jwt": "true"}, None),
    ],
)
def test_other_sources(servers, settings, expected):
    assert source({"bootstrap.servers": servers} | settings) == expected


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            ISSUER,
            (
                "requires 'kafka.sasl.oauthbearer.client.credentials.client.id', "
                "'kafka.sasl.oauthbearer.client.credentials.client.secret'; or set the option "
                "'tokenProvider'"
            ),
        ),
        (LOGIN, "requires 'kafka.sasl.oauthbearer.token.endpoint.url'; or"),
        ({HANDLER: "com.example.Handler"}, "no Java class runs here, and 'com.example.Handler'"),
        (jaas("oauth.access.token=hunter2"), "'oauth.access.token' is not supported"),
        (
            {"sasl.oauthbearer.jwt.retriever.class": "com.example.FileJwtRetriever"},
            "no Java class runs here, and 'com.example.FileJwtRetriever' is not known",
        ),
        (ISSUER | LOGIN | {"sasl.oauthbearer.header.urlencode": "1"}, "must be true or false"),
        (ISSUER | LOGIN | {"sasl.oauthbearer.extensions": "auth=x"}, "the extension 'auth' needs"),
        (ISSUER | LOGIN | {"sasl.oauthbearer.extensions": "a=x\1"}, "the extension 'a' needs"),
        (
            ISSUER | jaas('clientId=me clientSecret=hunter2 ssl.truststore.location="/t.jks"'),
            "'ssl.truststore.location' must be PEM",
        ),
        ({HANDLER: "google"}, "go to brokers of cloud.goog only, not to 'b'"),
        (
            {HANDLER: "azure", "bootstrap.servers": "n.servicebus.windows.net:1,evil.net:1"},
            "not to 'evil.net'",
        ),
        (
            {HANDLER: "azure", "bootstrap.servers": "SASL_SSL://evil.net"},
            "not to 'evil.net'",
        ),
        (
            {"sasl.mechanism": "PLAIN", HANDLER: "vault"},
            "Option 'kafka.sasl.login.callback.handler.class' requires 'kafka.sasl.mechanism'",
        ),
    ],
)
def test_what_cannot_get_a_token_is_refused_with_its_reason(settings, text):
    assert text in problem(settings)


@pytest.mark.parametrize(
    ("endpoint", "is_accepted"),
    [
        ("https://idp.example.com:8443/realms/r/token?x=1", True),
        ("http://localhost:8080/token", True),
        ("http://127.0.0.1/token", True),
        ("http://[::1]/token", True),
        ("http://idp.example.com/token", False),
        ("http://127.0.0.1.example.com/token", False),
        ("file:///etc/passwd", False),
        ("https://user:hunter2@idp.example.com/token", False),
        ("https://idp.example.com:x/token", False),
        ("https:///token", False),
        ("https://login..example.com/token", False),
        ("idp.example.com/token", False),
    ],
)
def test_a_secret_is_sent_by_https_or_to_this_machine(endpoint, is_accepted):
    settings = LOGIN | {"sasl.oauthbearer.token.endpoint.url": endpoint}
    if is_accepted:
        found = source(settings)
        assert isinstance(found, ClientCredentials)
        assert found.endpoint == endpoint
    else:
        assert "Option 'kafka.sasl.oauthbearer.token.endpoint.url'" in problem(settings)


@pytest.mark.parametrize("parse", [parse_source_options, parse_sink_options])
def test_a_provider_of_tokens_is_named(parse):
    """The option takes precedence over Java's class, and needs the mechanism that has tokens."""
    options = {f"kafka.{name}": value for name, value in OAUTH.items()}
    options |= {"tokenProvider": "vault", f"kafka.{HANDLER}": "com.example.Handler"}
    options |= {"subscribe": "t"} if parse is parse_source_options else {}
    login = read_java_settings(dict(parse(options, QueryKind.STREAM).kafka)).login
    assert login is not None
    assert login.tokens == TokenFunction("vault")
    with pytest.raises(OptionsError) as caught:
        parse(options | {"kafka.sasl.mechanism": "PLAIN"}, QueryKind.STREAM)
    needed = "Option 'tokenProvider' requires 'kafka.sasl.mechanism' OAUTHBEARER"
    assert caught.value.problems == (needed,)


def test_certificates_of_the_endpoint_in_a_jaas_line():
    line = 'clientId=me clientSecret=s ssl.truststore.location="/ca.pem" ssl.truststore.type=PEM'
    found = source(ISSUER | jaas(line))
    assert isinstance(found, ClientCredentials)
    assert found.ca_location == "/ca.pem"


def test_a_token_of_aws_is_for_the_region_of_its_broker():
    source = MskIam("eu-west-1", profile="p")
    assert source.at("b-1.name.abc.c2.kafka.us-east-1.amazonaws.com") == MskIam("us-east-1", "p")
    assert source.at("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com") == source
    assert source.at("broker.of.a.proxy") == source
