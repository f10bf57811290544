"""The rack that the metadata service of a cloud names.

No option sets an address: a query must not send requests to arbitrary hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...domain.reading.racks import RackNotFoundError, checked_rack
from ...ports.clock import Deadline
from ...ports.reading import RackFinder
from ..http import MAX_RESPONSE_BYTES, RequestError, Response, json_fields, request

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S: Final = 1.0
"""For all requests of a finder together."""

_LINK_LOCAL: Final = "http://169.254.169.254"
_MAX_BYTES: Final = 4 * 1024
_OK: Final = 200
_TOKEN: Final = re.compile(r"[!-~]{1,1024}")


@final
@dataclass(frozen=True, slots=True)
class AwsRackFinder(RackFinder):
    """Asks version 2 of EC2's service, whose data is protected by a token (IMDSv2).

    ``zone`` is ``availability-zone-id``, which names the same zone in each account, or
    ``availability-zone``.
    """

    zone: str = "availability-zone-id"
    address: str = _LINK_LOCAL
    timeout_s: float = TIMEOUT_S

    def find(self) -> str:
        deadline = Deadline.after(self.timeout_s)
        url = f"{self.address}/latest/api/token"
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        token = _text(_ask("PUT", url, lifetime, deadline))
        if not _TOKEN.fullmatch(token):
            raise RackNotFoundError(f"PUT {url}", "the response is no token")
        url = f"{self.address}/latest/meta-data/placement/{self.zone}"
        response = _ask("GET", url, {"X-aws-ec2-metadata-token": token}, deadline)
        return checked_rack(f"GET {url}", _text(response))


@final
@dataclass(frozen=True, slots=True)
class GoogleRackFinder(RackFinder):
    """Asks Google Cloud's service."""

    address: str = "http://metadata.google.internal"
    timeout_s: float = TIMEOUT_S

    def find(self) -> str:
        url = f"{self.address}/computeMetadata/v1/instance/zone"
        deadline = Deadline.after(self.timeout_s)
        response = _ask("GET", url, {"Metadata-Flavor": "Google"}, deadline)
        # Another server may have the name outside of the cloud: clients have to check this.
        if response.headers.get("Metadata-Flavor") != "Google":
            raise RackNotFoundError(f"GET {url}", "the response is not of Google's service")
        # projects/<number>/zones/<zone>
        return checked_rack(f"GET {url}", _text(response).rpartition("/")[2])


@final
@dataclass(frozen=True, slots=True)
class AzureRackFinder(RackFinder):
    """Asks Azure's service; a rack is as Kubernetes' label ``topology.kubernetes.io/zone``."""

    address: str = _LINK_LOCAL
    timeout_s: float = TIMEOUT_S

    def find(self) -> str:
        url = f"{self.address}/metadata/instance/compute?api-version=2021-02-01&format=json"
        deadline = Deadline.after(self.timeout_s)
        # The response has the machine's tags and user data, 64 KiB.
        response = _ask("GET", url, {"Metadata": "true"}, deadline, MAX_RESPONSE_BYTES)
        compute = json_fields(response.body)
        if not compute:
            raise RackNotFoundError(f"GET {url}", "the response is no JSON object")
        location, zone = compute.get("location"), compute.get("zone")
        if not (location and zone and isinstance(location, str) and isinstance(zone, str)):
            raise RackNotFoundError(f"GET {url}", "this machine is in no zone")
        return checked_rack(f"GET {url}", f"{location}-{zone}")


def _ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    deadline: Deadline,
    max_bytes: int = _MAX_BYTES,
) -> Response:
    try:
        response = request(method, url, headers, deadline, max_bytes=max_bytes)
    except RequestError as error:
        raise RackNotFoundError(f"{method} {url}", str(error)) from error
    if response.status != _OK:
        raise RackNotFoundError(f"{method} {url}", f"HTTP {response.status}")
    return response


def _text(response: Response) -> str:
    return response.body.decode(errors="replace").strip()
