"""Apicurio's own serializers for Java, in a process for each call."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pyspark_kafka.brokers.jars import Artifact, JarSet, resolve
from pyspark_kafka.brokers.java import require_java
from tests.slowness import bound_s

from .serializer_matrix import APICURIO_SERDES as VERSION
from .serializers import Case, Framed, descriptor_set, plain_bytes, plain_row

_JARS: Final = JarSet(
    f"apicurio-serdes-all-{VERSION}",
    (
        Artifact("io.apicurio", "apicurio-registry-serdes-avro-serde", VERSION),
        Artifact("io.apicurio", "apicurio-registry-serdes-protobuf-serde", VERSION),
        Artifact("io.apicurio", "apicurio-registry-serdes-jsonschema-serde", VERSION),
        Artifact("org.apache.kafka", "kafka-clients", "3.9.2"),
    ),
    transitive=True,
)
_PROGRAM: Final = Path(__file__).parent / "programs" / "ApicurioSerdes.java"

_REGISTERED: Final = {
    "apicurio.registry.auto-register": "false",
    "apicurio.registry.find-latest": "true",
}
"""Serializers for JSON do not derive schemas."""

GLOBAL_IDS: Final[dict[str, str]] = {}
CONTENT_IDS: Final = {"apicurio.registry.use-id": "contentId"}
IN_FRONT: Final = {"apicurio.registry.headers.enabled": "false"}
FOUR_BYTES: Final = IN_FRONT | {
    "apicurio.registry.id-handler": "io.apicurio.registry.serde.Legacy4ByteIdHandler"
}


@final
@dataclass(frozen=True, slots=True)
class ApicurioSerdes:
    """The serializer and the deserializer of a topic; ``url`` is that of Confluent's API."""

    url: str
    topic: str
    case: Case

    def write(self, rows: Sequence[Any], settings: Mapping[str, str]) -> list[Framed]:
        """Return native rows as the serializer writes them."""
        values: list[Framed] = []
        for line in self._run("write", [plain_bytes(self.case, row) for row in rows], settings):
            value, *headers = line.split()
            pairs = [header.split("=") for header in headers]
            values.append((bytes.fromhex(value), [(k, bytes.fromhex(v)) for k, v in pairs]))
        return values

    def read(self, values: Sequence[Framed], settings: Mapping[str, str]) -> list[Any]:
        """Return native rows."""
        lines = self._run("read", [bytes(value or b"") for value, _ in values], settings)
        return [plain_row(self.case, bytes.fromhex(line)) for line in lines]

    def _run(self, way: str, lines: Sequence[bytes], settings: Mapping[str, str]) -> list[str]:
        given = {
            **settings,
            "apicurio.registry.url": f"{self.url.partition('/ccompat/')[0]}/registry/v2",
            "apicurio.registry.auto-register": "true",
            **(_REGISTERED if self.case.form == "json" else {}),
            "apicurio.registry.artifact.group-id": "default",
        }
        found = subprocess.run(
            [
                *(require_java(), "-cp", f"{resolve(_JARS)}/*", _PROGRAM),
                *(self.case.form, way, self.topic, _schema(self.case)),
                *(f"{name}={value}" for name, value in given.items()),
            ],
            input="\n".join(line.hex() for line in lines),
            capture_output=True,
            text=True,
            timeout=bound_s(120),
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout.splitlines()


def _schema(case: Case) -> str:
    if case.form != "protobuf":
        return case.schema
    [file] = FileDescriptorSet.FromString(descriptor_set(case.schema)).file
    return file.SerializeToString().hex()
