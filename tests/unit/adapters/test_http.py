"""The HTTP client: proxies, kept connections, and answers that were not asked for."""

import contextlib
import gzip
import socket
import threading
from collections.abc import Iterator

import pytest

from pyspark_kafka.adapters.http import HttpClient, RequestError, request
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from ...servers.http_server import Request, Response, serving
from ...servers.silent_listeners import trickling_listener

LONG_S = bound_s(30)


def get(client: HttpClient, url: str, seconds: float = LONG_S) -> bytes:
    return client.request("GET", url, {}, Deadline.after(seconds)).body


@pytest.fixture
def proxied():
    client = HttpClient(uses_proxies=True)
    yield client
    client.close()


def test_a_proxys_login_is_sent_to_it(proxied, monkeypatch):
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(b"good")

    with serving(respond) as url:
        monkeypatch.setenv("http_proxy", url.replace("//", "//me:p%40ss@").removeprefix("http://"))
        monkeypatch.setenv("no_proxy", "")
        assert get(proxied, "http://registry.invalid/x") == b"good"
    assert requests[0].target == "http://registry.invalid/x"
    assert requests[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize(
    "networks", ["127.0.0.0/8", "a.example, 127.0.0.1", "10.0.0.0/8,127.0.0.1/32"]
)
def test_no_proxy_is_used_for_excepted_hosts(proxied, monkeypatch, networks):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", networks)
    with serving(lambda _: Response(b"direct")) as url:
        assert get(proxied, url.replace("localhost", "127.0.0.1")) == b"direct"


def test_an_excepted_domain_needs_no_port(proxied, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "invalid")
    with pytest.raises(RequestError, match="gaierror"):
        get(proxied, "http://registry.invalid/x")


def test_a_proxy_that_opens_a_tunnel_for_ever_ends_in_time(proxied, monkeypatch):
    with trickling_listener(b"HTTP/1.1 " + b"0" * 60_000, pause_s=0.01) as listener:
        monkeypatch.setenv("https_proxy", f"http://{listener.address}")
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(RequestError, match="not complete in time"):
            get(proxied, "https://registry.invalid/x", 0.3)


def test_a_compressed_answer_is_refused():
    response = Response(gzip.compress(b"good"), headers=(("Content-Encoding", "gzip"),))
    with serving(lambda _: response) as url, pytest.raises(RequestError, match="is compressed"):
        request("GET", url, {}, Deadline.after(LONG_S))


@contextlib.contextmanager
def counting_listener() -> Iterator[tuple[str, list[int]]]:
    """Yield the URL of a server that keeps connections, and the ports that they came from."""
    ports: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, (_, port) = listener.accept()
                    ports.append(port)
                    with connection:
                        while connection.recv(65_536):
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", ports
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_connection_is_kept_for_the_next_request():
    with counting_listener() as (url, ports):
        client = HttpClient()
        assert [get(client, url) for _ in range(3)] == [b"ok"] * 3
        client.close()
    assert len(ports) == 1


def test_a_request_ends_in_time_on_a_connection_of_an_earlier_one():
    """The server answers the first request, and the second byte by byte."""
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    client = HttpClient()
    with contextlib.ExitStack() as servers:
        listener = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
        is_over = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(first)
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not is_over.wait(0.01):
                    connection.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert get(client, url) == b"ok"
        with pytest.raises(RequestError, match="not complete in time"):
            get(client, url, 0.3)
        is_over.set()
        thread.join()
        client.close()
