"""Schema registries that answer well, late, too much, or something else."""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.registry import rest_client
from pyspark_kafka.adapters.values.registry.http_registry import (
    HttpSchemaRegistry,
    parse_id,
    parse_schema,
    parse_version,
)
from pyspark_kafka.adapters.values.registry.rest_client import NonsenseError, error_of, json_object
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.errors import OptionsError, PysparkKafkaError
from pyspark_kafka.domain.values.errors import (
    IncompatibleSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import (
    RegistryOptions,
    Schema,
    SchemaReference,
    SchemaType,
    registry_settings,
)
from tests.servers.certificates import Authority, truststore
from tests.servers.http_server import Request, Response, serving
from tests.servers.silent_listeners import silent_listener, trickling_listener

SECRET: Final = "p&ss:w/rd"  # noqa: S105
INT: Final = Schema(SchemaType.AVRO, '"int"')
GOOD: Final = Response(b'{"schema": "\\"int\\""}')
SHORT_MS: Final = "400"


def options(url: str, timeout_ms: str = "20000", **settings: str) -> RegistryOptions:
    """Return options; a name's dots are written as underscores."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return RegistryOptions(url, (("request.timeout.ms", timeout_ms), *named.items()))


def connected(url: str, timeout_ms: str = "20000", **settings: str) -> HttpSchemaRegistry:
    return HttpSchemaRegistry(registry_settings(options(url, timeout_ms, **settings)))


def answers(*responses: Response) -> tuple[Callable[[Request], Response], list[Request]]:
    """Return what answers with these in turn, then with the last, and the requests it got."""
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return responses[min(len(requests), len(responses)) - 1]

    return respond, requests


def as_json(status: int = 200, **fields: object) -> Response:
    return Response(json.dumps(fields).encode(), status)


def test_requests_have_the_paths_and_the_bodies_of_confluents_api():
    reference = SchemaReference("a/b.proto", "a", 3)
    proto = Schema(SchemaType.PROTOBUF, "message M {}", (reference,))
    fields: dict[str, Any] = {
        "subject": "s t/é",
        "version": 2,
        "id": 7,
        "schemaType": "PROTOBUF",
        "schema": "message M {}",
        "references": [{"name": "a/b.proto", "subject": "a", "version": 3}],
    }
    respond, requests = answers(as_json(**fields))
    with serving(respond) as url:
        registry = connected(f"{url}/api/")
        assert registry.by_id(7) == registry.by_guid("ab-c") == proto
        latest = registry.version("s t/é")
        assert (latest.subject, latest.version, latest.schema_id) == ("s t/é", 2, 7)
        assert registry.version("s", 2) == latest == registry.look_up("s", proto)
        assert registry.register("s", proto) == registry.register("s", INT) == 7
        assert url in repr(registry)
    serialized = "format=serialized"
    assert [each.target for each in requests] == [
        *("/api/schemas/ids/7", f"/api/schemas/ids/7?{serialized}"),
        *("/api/schemas/guids/ab-c", f"/api/schemas/guids/ab-c?{serialized}"),
        "/api/subjects/s%20t%2F%C3%A9/versions/latest",
        f"/api/schemas/ids/7?subject=s%20t%2F%C3%A9&{serialized}",
        "/api/subjects/s/versions/2",
        f"/api/schemas/ids/7?subject=s&{serialized}",
        "/api/subjects/s",
        "/api/subjects/s/versions",
        "/api/subjects/s/versions",
    ]
    body = {name: fields[name] for name in ("schema", "schemaType", "references")}
    assert [json.loads(each.body) for each in requests[8:]] == [body, body, {"schema": '"int"'}]
    assert requests[0].headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in requests[0].headers


def test_ids_are_requested_with_their_subject_and_imports_also_if_they_are_deleted():
    respond, requests = answers(as_json(subject="s", version=1, id=7, schema='"int"'))
    with serving(respond) as url:
        registry = connected(url)
        assert registry.by_id(7, ":.lsrc:a b") == INT == registry.by_guid("ab-c", ":.lsrc:s")
        assert registry.version(":.lsrc:s", 1, deleted=True).schema == INT
    assert [each.target for each in requests] == [
        "/schemas/ids/7?subject=%3A.lsrc%3Aa%20b",
        "/schemas/guids/ab-c",
        "/subjects/%3A.lsrc%3As/versions/1?deleted=true",
    ]


DESCRIPTOR: Final = "CgdtLnByb3Rv"


@pytest.mark.parametrize(
    ("answer", "serialized"),
    [
        (as_json(schema=DESCRIPTOR, schemaType="PROTOBUF"), DESCRIPTOR),
        (as_json(schema="message M {}", schemaType="PROTOBUF"), ""),
        (as_json(schema="\n\x07m.proto", schemaType="PROTOBUF"), ""),
        (as_json(400, error_code=400, message="Invalid format"), ""),
        (as_json(404, error_code=40403, message="Not found"), ""),
        (as_json(422, error_code=42201, message="Invalid"), ""),
        (Response(b"<html>"), ""),
        (Response(status=500), ""),
    ],
)
def test_the_descriptor_beside_a_text(answer, serialized):
    """Registries that serialize no schemas, or fail to, are asked for it once."""
    text = as_json(schema="message M {}", schemaType="PROTOBUF")
    respond, requests = answers(text, answer)
    with serving(respond) as url:
        found = connected(url).by_id(7)
    assert found == Schema(SchemaType.PROTOBUF, "message M {}", serialized=serialized)
    assert len(requests) == 2


def test_a_schema_that_is_a_descriptor_is_not_requested_again():
    respond, requests = answers(as_json(schema=DESCRIPTOR, schemaType="PROTOBUF"))
    with serving(respond) as url:
        assert connected(url).by_id(7) == Schema(SchemaType.PROTOBUF, DESCRIPTOR)
    assert len(requests) == 1


def test_a_user_of_the_settings_or_of_the_url_or_a_token_is_sent(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login wrong password wrong\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    respond, requests = answers(GOOD)
    with serving(respond) as url:
        port = url.rpartition(":")[2]
        connected(url, basic_auth_user_info=f"me:{SECRET}").by_id(1)
        connected(f"http://me:p%26ss%3Aw%2Frd@localhost:{port}").by_id(1)
        connected(url, bearer_auth_token="t", bearer_auth_logical_cluster="lsrc-1").by_id(1)  # noqa: S106
        connected(url).by_id(1)
    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    sent = [each.headers.get("Authorization") for each in requests]
    assert sent == [basic, basic, "Bearer t", None]
    assert requests[2].headers["target-sr-cluster"] == "lsrc-1"


def test_failures_that_pass(monkeypatch):
    """A registry that is overloaded or starts, or answers nonsense, is asked again."""
    monkeypatch.setattr(rest_client, "_MIN_PAUSE_S", 0.001)
    passing = [Response(status=status) for status in (503, 500, 429, 408)]
    respond, requests = answers(*passing, Response(b"<html>"), GOOD)
    with serving(respond) as url:
        assert connected(url).by_id(1) == INT
    assert len(requests) == 6


@pytest.mark.parametrize("status", [401, 403, 422])
def test_a_refusal_is_not_repeated(status):
    login = base64.b64encode(f"me:{SECRET}".encode()).decode()
    message = f"No,\n{SECRET} {login} is wrong."
    respond, requests = answers(as_json(status, error_code=100 * status + 1, message=message))
    with serving(respond) as url, pytest.raises(RegistryRefusedError) as raised:
        connected(url, basic_auth_user_info=f"me:{SECRET}").register("s", INT)
    text = str(raised.value)
    assert f"at {url} refused the schema for the subject 's': HTTP {status} " in text
    assert f"(error code {status}01): No, [hidden] [hidden] is wrong. Check " in text
    assert SECRET not in text
    assert len(requests) == 1


UNKNOWN_SCHEMAS: Final = [
    as_json(404, error_code=code, message="not found")
    for code in (40401, 40402, 40403, 40404, 40406)
]
ANSWERS_OF_OTHERS: Final = [
    Response(status=404),
    Response(b"<html>", status=404),
    as_json(404, error_code=404, message="HTTP 404 Not Found"),
    as_json(404, error_code="40403"),
    as_json(404, error_code=True),
    as_json(400, error_code=40403),
    Response(status=400),
    Response(status=301, headers=(("Location", "/"),)),
]


@pytest.mark.parametrize(
    ("response", "error", "told"),
    [
        *((each, UnknownSchemaError, "the id 1") for each in UNKNOWN_SCHEMAS),
        *((each, RegistryUnavailableError, "at http://.* HTTP") for each in ANSWERS_OF_OTHERS),
    ],
)
def test_only_confluents_error_codes_say_that_a_schema_does_not_exist(response, error, told):
    """A server that is no registry is one that fails; neither answer will pass."""
    respond, requests = answers(response)
    with serving(respond) as url, pytest.raises(error, match=told):
        connected(url).by_id(1)
    assert len(requests) == 1


@pytest.mark.parametrize("status", [401, 404, 409, 422, 500])
def test_answers_of_other_servers_are_not_shown(status):
    respond, _ = answers(as_json(status, message=SECRET, error=SECRET))
    with serving(respond) as url, pytest.raises(PysparkKafkaError) as raised:
        connected(url, SHORT_MS).register("s", INT)
    assert SECRET not in str(raised.value)


def test_a_server_that_does_not_speak_http():
    greeting = f"SSH-2.0-{SECRET}\r\n".encode()
    with trickling_listener(greeting, 0) as listener:
        registry = connected(f"http://{listener.address}", SHORT_MS)
        with pytest.raises(RegistryUnavailableError, match="its answer is not HTTP") as raised:
            registry.by_id(1)
    assert SECRET not in str(raised.value)


def test_a_schema_that_is_incompatible():
    """The error has the registry's reason, which may be long."""
    message = "Schema being registered is incompatible: " + "x" * 1_000
    respond, requests = answers(as_json(409, error_code=409, message=message))
    with serving(respond) as url, pytest.raises(IncompatibleSchemaError) as raised:
        connected(url).register("s", INT)
    assert f"The schema for the subject 's' cannot be used: {message}. " in str(raised.value)
    assert len(requests) == 1


def test_redirects_are_not_followed():
    other, requests = answers(GOOD)
    with serving(other) as target:
        respond, _ = answers(Response(status=302, headers=(("Location", target),)))
        with serving(respond) as url, pytest.raises(RegistryUnavailableError, match="HTTP 302"):
            connected(url, basic_auth_user_info=f"me:{SECRET}").by_id(1)
    assert requests == []


def test_a_silent_server_is_waited_for_once():
    with silent_listener() as silent, serving(answers(GOOD)[0]) as url:
        registry = connected(f"http://{silent.address},{url}", "2000")
        for schema_id in range(3):
            assert registry.by_id(schema_id) == INT
        assert silent.connections == 1


def test_further_servers_do_not_shorten_the_time_of_a_request():
    body = b'{"schema": "\\"int\\""}'
    content = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with trickling_listener(content, pause_s=0.6, step=len(content) // 2 + 1) as slow:
        url = f"http://{slow.address}"
        assert connected(f"{url},{url},{url}", "2400").by_id(1) == INT
        assert slow.connections == 1


UNKNOWN: Final = as_json(404, error_code=40403, message="not found")


@pytest.mark.parametrize("first", [Response(b"<html>"), Response(status=404), UNKNOWN, None])
def test_servers_are_used_in_turn(first):
    """A server that fails in any way, or does not have the schema, is followed by the next one."""
    respond, requests = answers(GOOD)
    with ExitStack() as stack:
        url = stack.enter_context(serving(respond))
        other = stack.enter_context(serving(answers(first)[0])) if first else "http://127.0.0.1:1"
        registry = connected(f"{other},{url}")
        assert registry.by_id(1) == INT
        assert registry.url == f"{other},{url}"
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (UNKNOWN, UnknownSchemaError),
        (Response(status=503), RegistryUnavailableError),
        (None, RegistryUnavailableError),
    ],
)
def test_what_no_server_has_is_unknown(second, error):
    """A schema is unknown if all servers say so: one that does not answer may have it."""
    with ExitStack() as stack:
        one = stack.enter_context(serving(answers(UNKNOWN)[0]))
        other = stack.enter_context(serving(answers(second)[0])) if second else "http://127.0.0.1:1"
        for url in (f"{one},{other}", f"{other},{one}"):
            with pytest.raises(error):
                connected(url, SHORT_MS).by_id(1)


def test_a_server_that_is_behind_and_one_that_starts(monkeypatch):
    monkeypatch.setattr(rest_client, "_MIN_PAUSE_S", 0.001)
    starting, _ = answers(Response(status=503), GOOD)
    with serving(answers(UNKNOWN)[0]) as behind, serving(starting) as other:
        assert connected(f"{behind},{other}").by_id(1) == INT


NONSENSE: Final[Mapping[bytes, str]] = {
    b"": "not JSON",
    b"{": "not JSON",
    b"[" * 200_000: "not JSON",
    b"\xff": "not JSON",
    b"1" * 5_000: "not JSON",
    b"[]": "its answer is no JSON object",
    b"{}": "no text for 'schema'",
    b'{"schema": 5}': "no text for 'schema'",
    b'{"schema": "\\ud800"}': "no text for 'schema'",
    b'{"schema": "x", "schemaType": "THRIFT"}': "not one of AVRO, PROTOBUF, JSON",
    b'{"schema": "x", "schemaType": []}': "not one of AVRO, PROTOBUF, JSON",
    b'{"schema": "x", "references": {}}': "no list of at most 1000",
    b'{"schema": "x", "references": [5]}': "a reference in its answer is no JSON object",
    b'{"schema": "x", "references": [{"name": "n", "version": 1}]}': "no text for 'subject'",
    b'{"schema": "x", "references": [{"version": "1"}]}': "no number from 1",
    b'{"schema": "x", "references": [' + b"{}," * 1_000 + b"{}]}": "no list of at most 1000",
}


@pytest.mark.parametrize("body", NONSENSE)
def test_answers_that_are_no_schema(body):
    with pytest.raises(NonsenseError) as raised:
        parse_schema(json_object(body))
    assert NONSENSE[body] in str(raised.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "7"},
        {"id": True},
        {"id": 7.0},
        {"id": -1},
        {"id": 2**31},
        {"version": 0},
        {"version": None},
        {"subject": None},
        {"guid": "7"},
        {"guid": 7},
    ],
)
def test_answers_that_are_no_version(fields):
    """Ids and versions are numbers of Java's ``int``, and GUIDs are optional."""
    good: dict[str, object] = {"subject": "s", "version": 1, "id": 7, "schema": "x"}
    [name] = fields
    assert (parse_version(good).version, parse_version(good).guid) == (1, None)
    guid = "89791762-2336-4186-9674-299b90a802e2"
    assert parse_version(good | {"guid": guid}).guid == guid
    with pytest.raises(NonsenseError, match=f"for '{name}'"):
        parse_version(good | fields)


NAMES: Final = ("schema", "schemaType", "references", "name", "subject", "version", "id", "guid")
LEAVES: Final[st.SearchStrategy[object]] = st.sampled_from(
    [None, True, -1, 1, 2**40, 0.5, "AVRO", "x", "ü", [], {}, [[]]]
)
OBJECTS: Final = st.dictionaries(st.sampled_from(NAMES), LEAVES)
ANSWERS: Final = st.dictionaries(st.sampled_from(NAMES), LEAVES | st.lists(OBJECTS, max_size=2))


@settings(max_examples=50, deadline=None)
@given(answer=ANSWERS)
def test_any_answer_is_a_schema_or_nonsense(answer):
    content = json.dumps(answer).encode()
    error_of(content)
    for parse in (parse_schema, parse_version, parse_id):
        with suppress(NonsenseError):
            hash(parse(json_object(content)))


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (Response(b" " * 70_000), "exceeds 1000 by"),
        (Response(b"x", headers=(("Content-Encoding", "gzip"),)), "is compressed"),
        (Response(status=204), "http://"),
    ],
)
def test_an_answer_that_is_not_read(response, told, monkeypatch):
    monkeypatch.setattr(rest_client, "MAX_RESPONSE_BYTES", 1_000)
    respond, _ = answers(response)
    with serving(respond) as url, pytest.raises(RegistryUnavailableError, match=told):
        connected(url, SHORT_MS).by_id(1)


@pytest.mark.parametrize(
    "content", [None, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99, b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 99]
)
def test_an_answer_without_end(content):
    """The wait for an answer that comes byte by byte, or never, ends at the deadline."""
    listening = trickling_listener(content, 0.02) if content else silent_listener()
    with listening as listener:
        registry = connected(f"http://{listener.address}", "1500")
        began = time.monotonic()
        with pytest.raises(RegistryUnavailableError, match="not complete in time"):
            registry.by_id(1)
        assert time.monotonic() - began < 20
        assert listener.connections >= 2


def test_a_silent_server_leaves_time_for_the_next():
    respond, _ = answers(GOOD)
    with silent_listener() as listener, serving(respond) as url:
        assert connected(f"http://{listener.address},{url}", "2000").by_id(1) == INT


def test_nobody_listens():
    """A registry that is down is asked until the deadline, and the error has the reason."""
    began = time.monotonic()
    with pytest.raises(RegistryUnavailableError) as raised:
        connected("http://me:hunter2@127.0.0.1:1/api", SHORT_MS).by_id(1)
    assert time.monotonic() - began < 20
    assert "at http://127.0.0.1:1/api cannot be used: " in str(raised.value)
    assert "refused" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_proxy_of_the_environment(monkeypatch):
    respond, requests = answers(GOOD)
    with serving(respond) as url:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", "")
        assert connected("http://registry.invalid:8081").by_id(1) == INT
    assert requests[0].headers["Host"] == "registry.invalid:8081"


@pytest.fixture
def authority():
    """Return an authority that no machine trusts."""
    return Authority()


@pytest.fixture
def tls(authority, tmp_path):
    """Return the TLS of a server named ``localhost``, which trusts the authority."""
    certificate = authority.issue("localhost", hosts=["localhost"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.write_pem(tmp_path / "server.pem"))
    context.load_verify_locations(cadata=authority.pem)
    return context


def test_a_servers_certificate_has_to_be_trusted_and_to_have_its_name(authority, tls, tmp_path):
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "trust.p12").write_bytes(truststore([authority], "changeit"))
    trusted = {"ssl_ca_location": str(tmp_path / "ca.pem")}
    store = {
        "ssl_truststore_location": str(tmp_path / "trust.p12"),
        "ssl_truststore_password": "changeit",
    }
    respond, requests = answers(GOOD)
    with serving(respond, tls) as url:
        for settings in (trusted, store):
            assert connected(url, **settings).by_id(1) == INT
        with pytest.raises(RegistryUnavailableError, match="certificate verify failed"):
            connected(url).by_id(1)
        by_address = url.replace("localhost", "127.0.0.1")
        with pytest.raises(RegistryUnavailableError, match="certificate verify failed"):
            connected(by_address, **trusted).by_id(1)
        unnamed = {"ssl_endpoint_identification_algorithm": "", **trusted}
        assert connected(by_address, **unnamed).by_id(1) == INT
    assert len(requests) == 3


def test_authorities_of_the_settings_alone_are_trusted(authority, tls, tmp_path, monkeypatch):
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "other.pem").write_text(Authority().pem)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, str(tmp_path / "ca.pem"))
    respond, requests = answers(GOOD)
    with (
        serving(respond, tls) as url,
        pytest.raises(RegistryUnavailableError, match="certificate verify failed"),
    ):
        connected(url, ssl_ca_location=str(tmp_path / "other.pem")).by_id(1)
    assert requests == []


def test_a_certificate_of_the_client(authority, tls, tmp_path):
    """A server may require a certificate, from a store or from files."""
    tls.verify_mode = ssl.CERT_REQUIRED
    client = authority.issue("client")
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "client.pem").write_text(client.chain_pem)
    (tmp_path / "key.pem").write_text(client.key_pem("k"))
    trusted = {"ssl_ca_location": str(tmp_path / "ca.pem")}
    store = {
        "ssl_keystore_location": str(client.write_pkcs12(tmp_path / "key.p12", "changeit")),
        "ssl_keystore_password": "changeit",
    }
    files = {
        "ssl_certificate_location": str(tmp_path / "client.pem"),
        "ssl_key_location": str(tmp_path / "key.pem"),
        "ssl_key_password": "k",
    }
    with serving(answers(GOOD)[0], tls) as url:
        for settings in (store, files):
            assert connected(url, **trusted, **settings).by_id(1) == INT
        with pytest.raises(RegistryUnavailableError):
            connected(url, SHORT_MS, **trusted).by_id(1)


def test_files_that_are_replaced(authority, tls, tmp_path):
    trusted = tmp_path / "ca.pem"
    trusted.write_text(Authority("Another authority").pem)
    with serving(answers(GOOD)[0], tls) as url:
        registry = connected(url, ssl_ca_location=str(trusted))
        with pytest.raises(RegistryUnavailableError):
            registry.by_id(1)
        trusted.write_text(authority.pem)
        assert registry.by_id(1) == INT


def test_a_registry_is_opened_by_its_options_and_errors_name_them():
    with serving(answers(GOOD)[0]) as url:
        registry = open_registry(options(url))
        assert (registry.by_id(1), registry.url) == (INT, url)
        registry.close()
    with pytest.raises(OptionsError, match=r"'schema\.registry\.url'"):
        open_registry(options("x"))
    with pytest.raises(OptionsError, match=r"Option 'schema\.registry\.ssl\.ca\.location'"):
        open_registry(options("https://registry", ssl_ca_location="/no/such.pem"))
