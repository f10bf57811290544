"""The contract of every ``RackFinder``, with stand-ins for metadata services on the loopback."""

import json

import pytest

from pyspark_kafka.adapters.racks.environment import EnvironmentRackFinder
from pyspark_kafka.adapters.racks.metadata import AwsRackFinder, AzureRackFinder, GoogleRackFinder
from pyspark_kafka.testing import RackFinderContract, RackPlace
from tests.servers.http_server import Request, Response, serving


class EnvironmentPlace(RackPlace):
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._environment = monkeypatch
        self.finder = EnvironmentRackFinder()

    def put(self, rack: str | None) -> None:
        if rack is None:
            self._environment.delenv("KAFKA_CLIENT_RACK", raising=False)
        else:
            self._environment.setenv("KAFKA_CLIENT_RACK", rack)


class TestEnvironmentRackFinder(RackFinderContract):
    @pytest.fixture
    def place(self, monkeypatch):
        return EnvironmentPlace(monkeypatch)


class ServicePlace(RackPlace):
    rack: str | None = None

    def put(self, rack: str | None) -> None:
        self.rack = rack


class AwsPlace(ServicePlace):
    """As https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html."""

    zones = "/latest/meta-data/placement/availability-zone-id"

    def respond(self, request: Request) -> Response:
        if (request.method, request.path) == ("PUT", "/latest/api/token"):
            seconds = int(request.headers["X-aws-ec2-metadata-token-ttl-seconds"])
            return Response(b"AQAAAL-token==", 200 if 0 < seconds <= 21_600 else 400)
        if request.headers.get("X-aws-ec2-metadata-token") != "AQAAAL-token==":
            return Response(b"Unauthorized", 401)
        if request.method != "GET" or request.path != self.zones or self.rack is None:
            return Response(b"Not Found", 404)
        return Response(self.rack.encode())


class GooglePlace(ServicePlace):
    """As https://cloud.google.com/compute/docs/metadata/querying-metadata."""

    def respond(self, request: Request) -> Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            return Response(b"Forbidden", 403)
        flavor = (("Metadata-Flavor", "Google"),)
        if request.path != "/computeMetadata/v1/instance/zone" or self.rack is None:
            return Response(b"Not Found", 404, flavor)
        return Response(f"projects/123/zones/{self.rack}".encode(), headers=flavor)


class AzurePlace(ServicePlace):
    """As https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service."""

    def respond(self, request: Request) -> Response:
        target = "/metadata/instance/compute?api-version=2021-02-01&format=json"
        if request.headers.get("Metadata") != "true" or request.target != target:
            return Response(b'{"error": "Bad request"}', 400)
        location, _, zone = (self.rack or "westeurope-").rpartition("-")
        # A machine may have 64 KiB of user data.
        compute = {"location": location, "zone": zone, "userData": "A" * 88_000}
        return Response(json.dumps(compute).encode())


class TestAwsRackFinder(RackFinderContract):
    @pytest.fixture(params=["availability-zone-id", "availability-zone"])
    def place(self, request):
        made = AwsPlace()
        made.zones = f"/latest/meta-data/placement/{request.param}"
        with serving(made.respond) as url:
            made.finder = AwsRackFinder(request.param, url, timeout_s=60)
            yield made


class TestGoogleRackFinder(RackFinderContract):
    @pytest.fixture
    def place(self):
        made = GooglePlace()
        with serving(made.respond) as url:
            made.finder = GoogleRackFinder(url, timeout_s=60)
            yield made


class TestAzureRackFinder(RackFinderContract):
    @pytest.fixture
    def place(self):
        made = AzurePlace()
        with serving(made.respond) as url:
            made.finder = AzureRackFinder(url, timeout_s=60)
            yield made
