"""The command line of ``pyspark-kafka doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..application.cluster.doctor import Resources
from .argument_values import Commands, add_client, add_command, add_connection
from .connection import Connection

if TYPE_CHECKING:
    import argparse

_DOCTOR: Final = """\
Check what a query needs: versions, network, TLS, login, brokers and rights.

Each finding is ok, a warning or an error, with what to do next. The exit status is
0 if all is well, 3 if the worst finding is a warning, and 1 if it is an error.
Nothing is written to Kafka, and no secret is printed.
"""


@final
@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """The cluster and the resources to check; with ``master``, Spark's executors as well."""

    connection: Connection
    resources: Resources
    master: str | None = None
    as_json: bool = False


def add_doctor(commands: Commands) -> None:
    """Add the command ``doctor``."""
    summary = "check a cluster, and what a query needs to use it"
    doctor = add_command(commands, "doctor", summary, _DOCTOR, _settings)
    add_connection(doctor)
    add_client(doctor)
    for name, metavar, text in (
        ("--topic", "TOPIC", "check this topic, and the rights to read and write it"),
        ("--group", "NAME", "check the rights on this consumer group"),
        ("--transactional-id", "ID", "check the rights on this transactional id"),
    ):
        doctor.add_argument(
            name, metavar=metavar, action="append", default=[], help=f"{text}; may be repeated"
        )
    doctor.add_argument(
        "--master",
        metavar="URL",
        help="check the executors of this Spark master, too, such as spark://host:7077",
    )
    doctor.add_argument("--json", action="store_true", help="print a line of JSON per finding")


def _settings(given: argparse.Namespace) -> DoctorSettings:
    resources = Resources(tuple(given.topic), tuple(given.group), tuple(given.transactional_id))
    return DoctorSettings(Connection.given(given), resources, given.master, given.json)
