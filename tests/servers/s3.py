"""A storage that speaks the protocol of S3: moto's server, in this process."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from urllib.request import Request, urlopen

KEY: Final = "AKIAKEYOFATEST"
SECRET: Final = "a/secret+of=a test"  # noqa: S105 - of a server in this process


@dataclass(frozen=True)
class S3Server:
    """A running server, by its address."""

    endpoint_url: str

    @property
    def storage_options(self) -> str:
        return json.dumps(
            {
                "key": KEY,
                "secret": SECRET,
                "endpoint_url": self.endpoint_url,
                "client_kwargs": {"region_name": "us-east-1"},
            }
        )

    def new_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4()}"
        request = Request(f"{self.endpoint_url}/{name}", method="PUT")  # noqa: S310 - of ours
        with urlopen(request, timeout=30):  # noqa: S310 - as above
            return name


def store() -> Any:
    """Return what moto's servers in this process have: ``buckets[name].keys``, ``put_object``."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _with_whole_conditions(application: Callable[..., Iterable[bytes]]) -> Any:
    """Let one conditional request at a time be carried out.

    Between moto's look for an object and its write, another thread could write one. S3 has no such
    moment.
    """
    conditional = Lock()

    def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with conditional if "HTTP_IF_NONE_MATCH" in environ else nullcontext():
            return application(environ, start_response)

    return respond


@contextmanager
def run_s3() -> Iterator[S3Server]:
    """Serve S3 on a loopback port until the block ends."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        listener = server._server
        assert listener is not None
        listener.app = _with_whole_conditions(listener.app)
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
