"""Options that need the operator's permission, and the lists that give it."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.errors import OptionPolicyError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.settings_table import BY_NAME
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import (
    DEFAULT_POLICY,
    OWN_SETTINGS,
    RESTRICTED,
    UNRESTRICTED,
    AllowList,
    OptionPolicy,
    allowing,
    check_parsed,
    disallowing,
)

from ..options.given import BASE, SERVERS
from .test_policy import PARSERS

VALUES = {
    "offset.store.method": "file",
    "partitioner.class": "etl.routing:by_region",
    "sasl.client.callback.handler.class": "etl.tokens:new_token",
    "sasl.login.callback.handler.class": "etl.tokens:new_token",
    "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
    "ssl.engine.id": "pkcs11",
    "ssl.providers": "default,/tmp/evil",
}
"""A value of each setting that names no file."""

ENTRIES = {AllowList.MODULES: "etl", AllowList.URLS: "https://idp.example/token"}
CLIENTS = pytest.mark.parametrize("client", ["confluent", "kafka-python", "memory", "another"])
NAMES = [setting.name for setting in RESTRICTED]


def value(name: str) -> str:
    return VALUES.get(name, "/opt/given")


def permitting(name: str) -> OptionPolicy:
    """Return the narrowest policy that allows a setting with the value of the tests."""
    by = next(setting.by for setting in RESTRICTED if setting.name == name)
    entry = name if by is AllowList.OPTIONS else ENTRIES.get(by, "/opt/given")
    return allowing(by, entry, "THE_LIST")


def module_policy(*modules: str) -> OptionPolicy:
    return allowing(AllowList.MODULES, ",".join(modules), "THE_LIST")


@PARSERS
@pytest.mark.parametrize("name", NAMES)
def test_a_dangerous_setting_needs_permission(parse, name):
    raw = {f"kafka.{name}": value(name)}
    with pytest.raises(OptionsError) as caught:
        parse(raw, DEFAULT_POLICY)
    [problem] = caught.value.problems
    assert f"'kafka.{name}' is refused, because it " in problem
    assert "Ask the operator of Spark to list " in problem
    [(entries, _)] = permitting(name).allowed
    assert problem.endswith(f" in {entries.variable}")
    assert "\n" not in problem
    if entries in (AllowList.FILES, AllowList.URLS):
        assert value(name) not in problem
    for policy in (permitting(name), allowing(AllowList.OPTIONS, name, "L"), UNRESTRICTED):
        assert parse(raw, policy)
        assert policy.problems({name: value(name)}, "confluent") == []


@PARSERS
def test_a_function_that_gets_tokens_needs_permission(parse):
    raw = {"tokenProvider": "etl.tokens:new_token", "kafka.sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(OptionsError) as caught:
        parse(raw, DEFAULT_POLICY)
    assert caught.value.problems == (
        (
            "Option 'tokenProvider' or 'kafka.sasl.login.callback.handler.class' is refused, "
            "because it imports a Python module. Ask the operator of Spark to list the module "
            "'etl.tokens' in PYSPARK_KAFKA_ALLOWED_MODULES"
        ),
    )
    assert parse(raw, module_policy("etl.tokens"))
    assert parse(raw | {"tokenProvider": "google"}, DEFAULT_POLICY)


@CLIENTS
@pytest.mark.parametrize("name", NAMES)
def test_no_client_or_spelling_escapes(client, name):
    for spelled in (name, name.upper(), name.replace(".", "_")):
        assert len(DEFAULT_POLICY.problems({spelled: value(name)}, client)) == 1
    assert DEFAULT_POLICY.problems({name: ""}, client) == []


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("sasl.kerberos.kinit.cmd", "/usr/bin/kinit"),
        ("sasl.oauthbearer.metadata.authentication.type", "none"),
        ("offset.store.method", "broker"),
        ("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"),
        ("sasl.login.callback.handler.class", "org.example.JavaHandler"),
        ("sasl.login.callback.handler.class", "google"),
    ],
)
def test_harmless_values_need_no_permission(name, harmless):
    assert DEFAULT_POLICY.problems({name: harmless}, "confluent") == []


def test_every_file_of_several_is_checked():
    policy = allowing(AllowList.FILES, "/opt/a.so, /opt/b.so", "L")
    for paths in ("/opt/a.so", "/opt/a.so;/opt/b.so", " /opt/b.so ; "):
        assert policy.problems({"plugin.library.paths": paths}, "confluent") == []
    for paths in ("/opt/a.so;/opt/c.so", "/opt/../opt/a.so", "/opt/a", "/opt/a.so,/opt/b.so"):
        assert policy.problems({"plugin.library.paths": paths}, "confluent")


@pytest.mark.parametrize(
    "name", ["foo.bar", "enabled_events", "internal.termination.signal", "metadata.broker.list"]
)
def test_unlisted_settings_of_librdkafka_need_permission(name):
    raw = {**BASE, "client": "confluent", f"kafka.{name}": "1"}
    with pytest.raises(OptionsError) as caught:
        parse_source_options(raw, QueryKind.BATCH)
    [problem] = caught.value.problems
    assert problem == (
        f"Option 'kafka.{name}' is not a setting that every query may set with the client "
        f"'confluent'. Ask the operator of Spark to list '{name}' in PYSPARK_KAFKA_ALLOWED_OPTIONS"
    )
    parse_source_options(raw, QueryKind.BATCH, allowing(AllowList.OPTIONS, name, "L"))
    # Another client says itself which settings it has.
    parse_source_options({**raw, "client": "another"}, QueryKind.BATCH)


def test_listed_settings_need_no_permission():
    own = OWN_SETTINGS["confluent"]
    assert not own & set(NAMES)
    assert not own & BY_NAME.keys()
    free = (own | BY_NAME.keys()) - set(NAMES)
    assert DEFAULT_POLICY.problems(dict.fromkeys(free, "1"), "confluent") == []
    provider = {"config.providers.file.param.x": "1", "bootstrap.servers": "b:1"}
    assert DEFAULT_POLICY.problems(provider, "confluent") == []


@pytest.mark.parametrize("name", ["sasl.jaas.config", "sasl_jaas_config", "SASL.JAAS.CONFIG"])
def test_a_jaas_line_needs_the_same_permission(name):
    """An endpoint or a file of a login module is what the setting is that does the same."""
    line = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'oauth.token.endpoint.uri="https://idp.example/token" oauth.client.id="me" '
        'oauth.ssl.truststore.location="/opt/ca.pem";'
    )
    file, url = DEFAULT_POLICY.problems({name: line}, "kafka-python")
    assert file == (
        "Option 'kafka.sasl.jaas.config' is refused, because it reads a file. Ask the operator of "
        "Spark to list the file in PYSPARK_KAFKA_ALLOWED_FILES"
    )
    assert "in PYSPARK_KAFKA_ALLOWED_URLS" in url
    by_value = allowing(AllowList.FILES, "/opt/ca.pem", "L")
    by_value |= allowing(AllowList.URLS, "https://idp.example/token", "L")
    named = "https.ca.location,sasl.oauthbearer.token.endpoint.url"
    for policy in (by_value, allowing(AllowList.OPTIONS, named, "L"), UNRESTRICTED):
        assert policy.problems({name: line}, "kafka-python") == []


@pytest.mark.parametrize("line", ["", "Module required", 'Module required user="x";'])
def test_other_jaas_lines_need_no_permission(line):
    """A login with a password is free, and what cannot be read is left to the client."""
    assert DEFAULT_POLICY.problems({"sasl.jaas.config": line}, "confluent") == []


def test_problems_of_permission_follow_the_jvm_connectors():
    raw = {
        "kafka.plugin.library.paths": "/x.so",
        "kafka.ssl.providers": "legacy",
        "kafka.auto.offset.reset": "latest",
        "nonsense": "",
    }
    with pytest.raises(OptionsError) as caught:
        parse_source_options({**BASE, **raw}, QueryKind.BATCH)
    first, library, providers, last = caught.value.problems
    assert "'auto.offset.reset' is not supported" in first
    assert "'kafka.plugin.library.paths'" in library
    assert "'kafka.ssl.providers'" in providers
    assert last == "Option 'nonsense' is not known."


MODULES = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(".".join)


@given(MODULES, MODULES)
def test_a_package_has_its_modules_allowed(listed, asked):
    is_within = asked.split(".")[: listed.count(".") + 1] == listed.split(".")
    problem = module_policy(listed).module_problem("o", asked)
    assert (problem is None) == is_within
    assert module_policy(listed).module_problem("o", f"{listed}b") is not None


LISTS = st.sets(
    st.sampled_from(
        [
            (AllowList.OPTIONS, "ssl.providers"),
            (AllowList.FILES, "/opt/given"),
            (AllowList.URLS, "https://idp.example/token"),
            (AllowList.MODULES, "etl"),
        ]
    )
)


@given(LISTS, LISTS)
def test_two_lists_allow_what_either_does(first, second):
    one, other = (OptionPolicy(allowed=frozenset(each)) for each in (first, second))
    for name in NAMES:
        problems = [policy.problems({name: value(name)}, "c") for policy in (one, other)]
        joined = (one | other).problems({name: value(name)}, "c")
        assert bool(joined) == all(problems)


def test_a_list_that_forbids_takes_precedence():
    policy = permitting("ssl.providers") | disallowing("ssl.providers", "DENIED")
    with pytest.raises(ValueError, match="listed in DENIED"):
        parse_sink_options({**SERVERS, "kafka.ssl.providers": "x"}, QueryKind.BATCH, policy)


@pytest.mark.parametrize(
    "url",
    [
        "https://idp.example/token",
        "HTTPS://idp.example:8443/a?b=c",
        "http://localhost:8080/token",
        "http://127.0.0.1:8080/token",
        "http://[::1]/token",
        "file:///var/run/secrets/token",
    ],
)
def test_a_url_is_allowed_as_it_is_listed(url):
    policy = allowing(AllowList.URLS, f" {url} ,https://other.example/", "L")
    assert policy.url_problem("o", url) is None
    for other in (f"{url}/", url.upper().replace("HTTP", "Http"), f"{url}#x"):
        assert policy.url_problem("o", other) is not None
    told = DEFAULT_POLICY.url_problem("o", url)
    assert told is not None
    assert told.endswith("to list the URL in PYSPARK_KAFKA_ALLOWED_URLS")


@pytest.mark.parametrize(
    "url",
    [
        "http://idp.example/token",
        "http://localhost@idp.example/",
        "http://localhost.idp.example/",
        "http://10.0.0.1/",
        "http://169.254.169.254/metadata",
        "ftp://localhost/",
        "file://server/share",
        "https:///token",
        "http://[::1/",
        "idp.example/token",
        "",
    ],
)
def test_an_unprotected_url_is_refused(url):
    """A URL is invalid if a secret could be read on its way, for the operator as well."""
    policy = OptionPolicy(allowed=frozenset({(AllowList.URLS, url)}))
    told = policy.url_problem("kafka.o", url)
    assert told == "Option 'kafka.o' must be a URL of https, or of http on this machine"
    if url:
        with pytest.raises(OptionPolicyError, match="URLs must be of https"):
            allowing(AllowList.URLS, url, "THE_LIST")


@pytest.mark.parametrize(
    ("entries", "text", "rule"),
    [
        (AllowList.OPTIONS, "kafka.ssl.providers", "without the 'kafka.' prefix"),
        (AllowList.MODULES, "etl,etl.routing:f", "Modules must be names"),
        (AllowList.MODULES, "etl.*", "Modules must be names"),
        (AllowList.FILES, "lib.so", "Files must be absolute paths"),
    ],
)
def test_an_entry_that_allows_nothing_is_an_error(entries, text, rule):
    with pytest.raises(OptionPolicyError, match=f"No query can run: THE_LIST lists .*{rule}"):
        allowing(entries, text, "THE_LIST")
    assert allowing(entries, " , ", "THE_LIST") == DEFAULT_POLICY


def test_options_of_another_process_are_checked_again():
    """Options parsed elsewhere, without this process's policy, are refused here."""
    raw = {**BASE, "kafka.plugin.library.paths": "/x.so", "client": "confluent"}
    source = parse_source_options(raw, QueryKind.BATCH, UNRESTRICTED)
    routed = {**SERVERS, "kafka.partitioner.class": "etl:route", "topic": "t"}
    sink = parse_sink_options(routed, QueryKind.BATCH, module_policy("etl"))
    for options, option in ((source, "plugin.library.paths"), (sink, "partitioner.class")):
        sent = pickle.loads(pickle.dumps(options))  # noqa: S301  # our own
        with pytest.raises(OptionsError, match=rf"'kafka\.{option}' is refused.* for executors"):
            check_parsed(sent, DEFAULT_POLICY)
        check_parsed(sent, UNRESTRICTED)
    check_parsed(sink, module_policy("etl"))
    with pytest.raises(ValueError, match="listed in DENIED"):
        check_parsed(source, UNRESTRICTED | disallowing("plugin.library.paths", "DENIED"))


def test_round_robin_needs_no_permission_in_tasks():
    """The partitioner that was parsed from Java's class is no module."""
    name = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    raw = {**SERVERS, "kafka.partitioner.class": name}
    check_parsed(parse_sink_options(raw, QueryKind.BATCH), DEFAULT_POLICY)


def test_an_author_who_is_trusted_needs_no_permission():
    assert UNRESTRICTED.module_problem("o", "m") is None
    assert UNRESTRICTED.file_problem("o", "/f") is None
    assert UNRESTRICTED.url_problem("o", "http://example.test") is None


def test_a_list_has_its_names():
    assert AllowList.URLS.variable == "PYSPARK_KAFKA_ALLOWED_URLS"
    assert AllowList.URLS.spark_setting == "spark.pyspark_kafka.allowedUrls"
