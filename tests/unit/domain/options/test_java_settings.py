import pickle

import pytest

from pyspark_kafka.domain.options.client_settings import not_known, read_java_settings
from pyspark_kafka.domain.options.settings_table import SETTINGS, Ignored, Number
from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Store, StoreFormat, Tls, pem, store_format

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MSK = "software.amazon.msk.auth.iam.IAMLoginModule"
PROTOCOLS = "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nREVG\n-----END PRIVATE KEY-----\n"


def sasl(jaas: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def login(jaas: str, mechanism: str = "PLAIN") -> Login | None:
    read = read_java_settings(sasl(jaas, mechanism))
    assert read.problems == ()
    return read.login


def problem(settings: dict[str, str]) -> str:
    [text] = read_java_settings(settings).problems
    return text


def tls(settings: dict[str, str]) -> Tls:
    read = read_java_settings({"security.protocol": "SSL"} | settings)
    assert read.problems == ()
    assert read.tls is not None
    return read.tls


@pytest.mark.parametrize(
    "setting",
    [setting for setting in SETTINGS if isinstance(setting.read, Ignored)],
    ids=lambda setting: setting.name,
)
def test_settings_without_effect_on_a_read_are_left_out_for_a_reason(setting):
    read = read_java_settings({setting.name: "anything"})
    assert read.others == {}
    assert read.problems == ()


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS if setting.jvm])
def test_settings_that_need_a_jvm_are_refused_unless_empty(name):
    start = f"Option 'kafka.{name}' is not supported: "
    assert problem({name: "com.example.Something"}).startswith(start)
    assert read_java_settings({name: ""}).problems == ()


def test_providers_of_values_are_refused_once():
    settings = {"config.providers": "file", "config.providers.file.class": "com.example.Provider"}
    assert problem(settings).startswith("Option 'kafka.config.providers' is not supported: ")
    del settings["config.providers"]
    read = read_java_settings(settings)
    assert (read.others, read.problems) == ({}, ())


def test_a_login_class_is_refused():
    """A JAAS line says what a class for logins would."""
    assert "set 'kafka.sasl.jaas.config'" in problem({"sasl.login.class": "com.example.Login"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("ssl.provider", "SunJSSE"),
    ],
)
def test_javas_default_may_be_spelled_out(name, value):
    assert read_java_settings({name: value}).problems == ()


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("fetch.min.bytes", "+7", "7"),
        ("connections.max.idle.ms", "-1", "-1"),
        ("metadata.max.age.ms", "9223372036854775807", "2147483647"),
        ("check.crcs", "FALSE", "false"),
        ("client.dns.lookup", "USE_ALL_DNS_IPS", "use_all_dns_ips"),
        ("client.id", "7", "7"),
    ],
)
def test_values_are_read_as_java_reads_them(name, value, read):
    assert read_java_settings({name: value}).others == {name: read}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("fetch.min.bytes", "many", "must be a whole number from 0 on, got 'many'"),
        ("receive.buffer.bytes", "-2", "must be a whole number from -1 on, got '-2'"),
        ("check.crcs", "1", "must be true or false, got '1'"),
        ("security.protocol", "TLS", f"must be one of {PROTOCOLS}, got 'TLS'"),
    ],
)
def test_values_that_java_would_not_read_are_refused(name, value, text):
    assert problem({name: value}) == f"Option 'kafka.{name}' {text}"


@pytest.mark.parametrize(
    ("given", "first", "most"),
    [
        ({"reconnect.backoff.ms": "700"}, "700", "700"),
        ({"reconnect.backoff.max.ms": "20"}, "20", "20"),
        ({"reconnect.backoff.max.ms": "9000"}, "50", "9000"),
        ({"reconnect.backoff.ms": "5", "reconnect.backoff.max.ms": "9"}, "5", "9"),
    ],
)
def test_the_first_wait_never_passes_the_longest_one(given, first, most):
    assert read_java_settings(given).others == {
        "reconnect.backoff.ms": first,
        "reconnect.backoff.max.ms": most,
    }


def test_all_problems_are_reported_together():
    read = read_java_settings(
        {
            "security.protocol": "SASL_SSL",
            "fetch.min.bytes": "x",
            "ssl.provider": "BCFIPS",
            "ssl.enabled.protocols": "SSLv3",
            "sasl.jaas.config": "x",
        }
    )
    assert [text.split("'")[1] for text in read.problems] == [
        "kafka.fetch.min.bytes",
        "kafka.ssl.provider",
        "kafka.sasl.jaas.config",
        "kafka.ssl.enabled.protocols",
    ]


@pytest.mark.parametrize(
    ("options", "username", "password"),
    [
        ('username="u" password="p";', "u", "p"),
        ("password='p'   username=u ;", "u", "p"),
        ('\n  username = "u"\n  password = "p";\n', "u", "p"),
        (r'username="u" password="a\"b\\c\101\n";', "u", 'a"b\\cA\n'),
        ('username="u;v=w" password="//p /*q*/";', "u;v=w", "//p /*q*/"),
        ('username="u" /* who */ password="p"; // end', "u", "p"),
        (
            'username="$C" password="Endpoint=sb://x/;Key=a/b+c=";',
            "$C",
            "Endpoint=sb://x/;Key=a/b+c=",
        ),
        ('serviceName="x" username="u"password="p";', "u", "p"),
        ('username=";" password="=";', ";", "="),
    ],
)
def test_jaas_options_are_read_in_any_order_and_quotes(options, username, password):
    assert login(f"{PLAIN} required {options}") == Login("PLAIN", username, Secret(password))


@pytest.mark.parametrize("module", [SCRAM, f"kafkashaded.{SCRAM}"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scrams_login_module_goes_with_both_mechanisms(module, mechanism):
    jaas = f'{module} Required username="u" password="p";'
    assert login(jaas, mechanism) == Login(mechanism, "u", Secret("p"))


def test_delegation_token():
    """A delegation token is SCRAM's user and password, and only the brokers know its owner."""
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    read = read_java_settings(sasl(jaas, "SCRAM-SHA-256"))
    assert read.login == Login("SCRAM-SHA-256", "id", Secret("hmac"), is_delegation_token=True)
    assert read.principal is None


@pytest.mark.parametrize(
    ("options", "read"),
    [
        (
            'useKeyTab=true keyTab="/k" principal="me@R" serviceName="kafka"',
            Login("GSSAPI", service_name="kafka", keytab="/k", principal="me@R"),
        ),
        ("useTicketCache=true", Login("GSSAPI", uses_ticket_cache=True)),
        (
            'useTicketCache=true ticketCache="/cc"',
            Login("GSSAPI", uses_ticket_cache=True, ticket_cache="/cc"),
        ),
    ],
)
def test_kerberos_needs_service_key_table_and_principal(options, read):
    assert login(f"{KERBEROS} required {options};", "GSSAPI") == read


def test_user_and_password_may_be_settings():
    read = read_java_settings(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "plain",
            "sasl.username": "u",
            "sasl.password": "p",
        }
    )
    assert (read.protocol, read.login) == ("SASL_PLAINTEXT", Login("PLAIN", "u", Secret("p")))


TWO_MECHANISMS = "Module requires 'kafka.sasl.mechanism' SCRAM-SHA-256 or SCRAM-SHA-512, not PLAIN"


@pytest.mark.parametrize(
    ("jaas", "mechanism", "text"),
    [
        (f'{PLAIN} required username="u" password="p"', "PLAIN", "does not end with a semicolon"),
        (f"{PLAIN} required", "PLAIN", "does not end with a semicolon"),
        (PLAIN, "PLAIN", "must be a login module's class"),
        (f'{PLAIN} required username="u" password=;', "PLAIN", "option 2 of the login module"),
        (f'{PLAIN} username="u" password="p";', "PLAIN", "must be a login module's class"),
        (f'{PLAIN} required username="u";', "PLAIN", "the login module has no password"),
        (f"{PLAIN} required; {PLAIN} required;", "PLAIN", "must hold one login module"),
        (f'{PLAIN} required username="u" password="p";', "GSSAPI", "mechanism' PLAIN, not GSSAPI"),
        (f'{SCRAM} required username="u" password="p";', "PLAIN", f": ScramLogin{TWO_MECHANISMS}"),
        (f"{OAUTH} required;", "PLAIN", "requires 'kafka.sasl.mechanism' OAUTHBEARER, not PLAIN"),
        (f"{MSK} required;", "OAUTHBEARER", "requires 'kafka.sasl.mechanism' AWS_MSK_IAM"),
        ("com.example.Module required;", "PLAIN", "'com.example.Module' is not supported"),
    ],
)
def test_unsupported_logins_are_refused_with_a_reason(jaas, mechanism, text):
    assert text in problem(sasl(jaas, mechanism))


@pytest.mark.parametrize(
    "jaas",
    [
        "hunter2",
        "username=hunter2 password=hunter2;",
        f'{PLAIN} required username="u" password=hun hunter2;',
        f'{PLAIN} required username="u" password="hunter2"',
        f'{PLAIN} required "hunter2"="x";x',
        f'{PLAIN} required password="hunter2";',
    ],
)
def test_no_problem_has_a_secret(jaas):
    assert "hunter2" not in problem(sasl(jaas))


def test_no_repr_has_a_secret():
    read = read_java_settings(
        sasl(f'{PLAIN} required username="u" password="hunter2";')
        | {
            "ssl.truststore.location": "/t",
            "ssl.truststore.password": "hunter2",
            "ssl.keystore.key": KEY,
            "ssl.keystore.certificate.chain": CERTIFICATE,
            "ssl.key.password": "hunter2",
        }
    )
    assert read.problems == ()
    assert "hunter2" not in repr(read)
    assert "REVG" not in repr(read)
    assert repr([Secret("hunter2")]) == "[[hidden]]"
    assert pickle.loads(pickle.dumps(Secret("hunter2"))) == "hunter2"  # noqa: S301


def test_a_mechanism_with_a_password_needs_one():
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert problem(settings) == (
        "Option 'kafka.sasl.mechanism' PLAIN requires a user name and a password in "
        "'kafka.sasl.jaas.config'; a JVM's JAAS file is not read here"
    )


def test_kerberos_is_the_default_and_needs_no_login_module():
    read = read_java_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": "/k",
            "sasl.kerberos.principal": "me@R",
        }
    )
    assert read.problems == ()
    assert read.login == Login("GSSAPI", service_name="kafka", keytab="/k", principal="me@R")


def test_logins_and_stores_mean_nothing_without_security():
    read = read_java_settings({"sasl.jaas.config": "?", "ssl.truststore.location": "/nowhere"})
    assert (read.login, read.tls, read.problems) == (None, None, ())


@pytest.mark.parametrize(
    ("settings", "read"),
    [
        ({}, Tls()),
        ({"ssl.endpoint.identification.algorithm": ""}, Tls(checks_hostname=False)),
        ({"ssl.endpoint.identification.algorithm": "HTTPS"}, Tls()),
        (
            {"ssl.truststore.location": "/t", "ssl.truststore.password": "p"},
            Tls(Store("truststore", "/t", Secret("p"))),
        ),
        (
            {"ssl.truststore.certificates": CERTIFICATE, "ssl.truststore.type": "PEM"},
            Tls(Store("truststore", pem=Secret(CERTIFICATE))),
        ),
        (
            {"ssl.keystore.location": "/k", "ssl.keystore.type": "pkcs12", "ssl.key.password": "p"},
            Tls(keystore=Store("keystore", "/k"), key_password=Secret("p")),
        ),
        (
            {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CERTIFICATE},
            Tls(keystore=Store("keystore", pem=Secret(KEY + CERTIFICATE))),
        ),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv1.1,TLSv1"}, Tls(versions=frozenset({"TLSv1.2"}))),
        ({"ssl.cipher.suites": "ECDHE+AESGCM"}, Tls(ciphers="ECDHE+AESGCM")),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, Tls(versions=frozenset({"TLSv1.3"}))),
        (
            {"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA, TLS_AES_128_GCM_SHA256"},
            Tls(ciphers="AES128-SHA"),
        ),
    ],
)
def test_stores_versions_and_suites_are_read_as_java_reads_them(settings, read):
    assert tls(settings) == read


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    ],
)
def test_javas_suites_become_openssls(java, openssl):
    assert tls({"ssl.cipher.suites": java}).ciphers == openssl


NOT_TOGETHER = "Options 'kafka.ssl.{}' and 'kafka.ssl.{}' cannot be set together"
ONLY_TOGETHER = "Options 'kafka.ssl.{}' and 'kafka.ssl.{}' must be set together"
ONE_OF = "Option 'kafka.ssl.{}' must be one of {}, got '{}'"
CHAIN = "keystore.certificate.chain"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"truststore.location": "/t", "truststore.certificates": CERTIFICATE},
            NOT_TOGETHER.format("truststore.location", "truststore.certificates"),
        ),
        (
            {"keystore.location": "/k", "keystore.key": KEY},
            NOT_TOGETHER.format("keystore.location", "keystore.key"),
        ),
        ({"keystore.key": KEY}, ONLY_TOGETHER.format("keystore.key", CHAIN)),
        ({"truststore.type": "BKS"}, ONE_OF.format("truststore.type", "JKS, PKCS12, PEM", "BKS")),
        ({"keystore.type": "BKS"}, ONE_OF.format("keystore.type", "JKS, PKCS12, PEM", "BKS")),
        ({"truststore.certificates": "x"}, "certificates' must be PEM, as '-----BEGIN ...'"),
        ({"keystore.key": "x", CHAIN: CERTIFICATE}, "'kafka.ssl.keystore.key' must be PEM"),
        ({"keystore.key": KEY, CHAIN: "x"}, f"'kafka.ssl.{CHAIN}' must be PEM"),
        (
            {"enabled.protocols": "TLSv1.1"},
            "'kafka.ssl.enabled.protocols' must name TLSv1.2, TLSv1.3 or both, got 'TLSv1.1'",
        ),
        ({"cipher.suites": "SSL_RSA_WITH_RC4_128_MD5"}, "'SSL_RSA_WITH_RC4_128_MD5'"),
        (
            {"cipher.suites": "TLS_AES_128_GCM_SHA256", "enabled.protocols": "TLSv1.2"},
            "cipher.suites' has no suite for the versions in 'kafka.ssl.enabled.protocols'",
        ),
        (
            {"endpoint.identification.algorithm": "ldaps"},
            ONE_OF.format("endpoint.identification.algorithm", "https, none", "ldaps"),
        ),
    ],
)
def test_what_java_or_openssl_does_not_take_is_refused(settings, text):
    given = {f"ssl.{name}": value for name, value in settings.items()}
    assert text in problem({"security.protocol": "SSL"} | given)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x30\x82\0\2ab", StoreFormat.PKCS12),
        (b"\x30\x02ab", StoreFormat.PKCS12),
        (b"\x30\x80ab", StoreFormat.PKCS12),
        (b"\xfe\xed\xfe\xed\0\0\0\2", StoreFormat.JKS),
        (CERTIFICATE.encode(), StoreFormat.PEM),
    ],
)
def test_a_store_is_known_by_its_content(content, kind):
    assert store_format(Store("truststore", "/t.jks"), content) is kind


def test_a_jceks_store_is_refused_with_the_command_that_converts_it():
    with pytest.raises(ValueError, match="JCEKS") as caught:
        store_format(Store("keystore", "/my store.jks"), b"\xce\xce\xce\xce\0\0\0\2")
    assert str(caught.value).endswith(
        "keytool -importkeystore -srcstoretype JCEKS -srckeystore '/my store.jks' "
        "-destkeystore '/my store.p12' -deststoretype PKCS12"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x30", "is cut off before its end"),
        (b"\x30\x82\x01\0" + bytes(255), "is cut off before its end"),
        (b"\x30\x82", "is cut off before its end"),
        (b"hello", "is neither PKCS12 nor JKS nor PEM"),
    ],
)
def test_a_file_that_is_no_whole_store_is_refused_by_its_name(content, text):
    with pytest.raises(ValueError, match=f"'/t' {text}"):
        store_format(Store("truststore", "/t"), content)


@pytest.mark.parametrize(
    "text",
    [
        CERTIFICATE,
        CERTIFICATE.replace("\n", " "),
        CERTIFICATE.replace("\n", "\r\n"),
        f"Bag Attributes\n{CERTIFICATE}",
    ],
)
def test_pem_may_be_one_line(text):
    assert pem("x", text) == CERTIFICATE


def test_a_line_that_breaks_off_in_an_escape_is_refused():
    """Unreadable text is reported by its place, since it may be a password."""
    line = f'{PLAIN} required username="a" password="s3cret\\'
    place = line.index('"s3cret') + 1
    assert problem(sasl(line)).endswith(f" cannot be read from character {place} on")


def test_two_names_of_a_kerberos_service_are_refused():
    settings = sasl(f'{KERBEROS} required serviceName="other";', "GSSAPI")
    assert problem({**settings, "sasl.kerberos.service.name": "kafka"}).endswith(
        "serviceName 'other' is not the 'kafka' of 'kafka.sasl.kerberos.service.name'"
    )


def test_the_headers_of_an_old_key_keep_their_lines():
    """An encrypted key of the old kind has headers, which are no base64."""
    body = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nREVG"
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    assert pem("ssl.keystore.key", text) == text


def test_an_unknown_setting_is_named_with_the_client_and_the_nearest_one():
    expected = "Option 'kafka.x.y' is not known to the client 'confluent'."
    assert not_known("x.y", "confluent") == expected
    assert not_known("securty.protocol", "kafka-python").endswith(
        "to the client 'kafka-python'. Did you mean 'kafka.security.protocol'?"
    )


@pytest.mark.parametrize(("number", "nearest"), [(-1, 7), (0, 1), (5, 5), (10, 9)])
def test_a_number_becomes_the_nearest_that_a_client_accepts(number, nearest):
    assert Number(1, 9, unlimited=7).nearest(number) == nearest
    assert Number(1, 9).nearest(-1) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security.protocol": "SSL"}, None),
        (sasl(f'{PLAIN} required username="ada" password="p";'), "User:ada"),
        (sasl(f'{KERBEROS} required principal="ada/host@REALM";', "GSSAPI"), "User:ada"),
        (sasl(f"{KERBEROS} required useTicketCache=true;", "GSSAPI"), None),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, None),
    ],
)
def test_the_principal_is_known_if_the_login_has_a_name(settings, expected):
    assert read_java_settings(settings).principal == expected


def test_kafka_pythons_own_names_are_read_as_the_common_ones():
    given = {"security_protocol": "SSL", "ssl_ciphers": "AES", "ssl_cafile": "/ca.pem"}
    read = read_java_settings(given, "kafka-python")
    assert read.tls == Tls(ciphers="AES")
    assert read.others == {"ssl.ca.location": "/ca.pem"}
    assert read_java_settings(given, "confluent").others == given


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ssl_cafile", "ssl.ca.location"),
        ("ssl.keyfile", "ssl_key_location"),
        ("ssl_ciphers", "ssl.cipher.suites"),
        ("ssl_check_hostname", "ssl.endpoint.identification.algorithm"),
    ],
)
def test_one_setting_under_two_names_is_refused(first, second):
    given = {"security.protocol": "SSL", first: "true", second: "https"}
    [told] = read_java_settings(given, "kafka-python").problems
    assert told == (
        f"Options 'kafka.{first}' and 'kafka.{second}' are the same setting: set one of them"
    )


def test_kafka_pythons_check_of_hostnames_is_javas_algorithm():
    given = {"security.protocol": "SSL"}
    read = read_java_settings(given | {"ssl_check_hostname": "false"}, "kafka-python")
    assert read.tls == Tls(checks_hostname=False)
    read = read_java_settings(given | {"ssl_check_hostname": "no"}, "kafka-python")
    assert read.problems == ("Option 'kafka.ssl.check.hostname' must be true or false",)


def test_a_client_can_leave_settings_out():
    read = read_java_settings({"client.id": "i", "fetch.min.bytes": "x", "check.crcs": "y"})
    assert len(read.problems) == 2
    rest = read.without({"fetch.min.bytes", "client.id"})
    assert rest.others == {}
    assert rest.problems == (problem({"check.crcs": "y"}),)
