"""Which values are read and written, with whose serializers and which registries."""

from itertools import product
from pathlib import Path
from typing import Final

FORMATS: Final = ("avro", "protobuf", "json")

REGISTRIES: Final = {
    "confluent-7.6": "Confluent 7.6",
    "confluent-8.1": "Confluent 8.1",
    "apicurio-2.6": "Apicurio 2.6",
    "apicurio-3.0": "Apicurio 3.0",
}
"""Those of Confluent are doubles that follow its documentation and its source."""

OURS: Final = "pyspark-kafka"
CONFLUENT: Final = "Confluent's Python serializers"
PLAIN: Final = {"avro": "fastavro", "protobuf": "protobuf", "json": "json of Python"}
"""Libraries without a registry: the test puts the id of the schema in front of their values."""

SPARK: Final = {
    "avro": "Spark's `from_avro` and `to_avro`",
    "json": "Spark's `from_json` and `to_json`",
}
"""Functions without a registry, which ``tests/spark/test_spark_functions.py`` tests."""

APICURIO_SERDES: Final = "2.6.13.Final"
"""The newest whose dependencies can be resolved; it uses the API of Apicurio 2, which 3.0 has."""

APICURIO: Final = {"avro": ("yes", "yes"), "protobuf": ("yes", ""), "json": ("yes", "yes")}
"""Whether values of Apicurio's serializers are read, and whether they read ours."""

FRAMINGS: Final = ("confluent", "confluent-header")

PACKAGES: Final = dict.fromkeys(SPARK.values(), "pyspark") | {
    "fastavro": "fastavro",
    "protobuf": "protobuf",
}

PART: Final = """\
| format | other library | its values are read | it reads ours | where ids are |
|---|---|---|---|---|
"""


def writers(form: str) -> tuple[str, ...]:
    """Return what writes values of a format; what reads them has the same names."""
    return OURS, CONFLUENT, PLAIN[form]


def pairs() -> list[tuple[str, str, str]]:
    """Return formats with a writer and a reader, one of which is this library."""
    return [
        (form, writer, reader)
        for form in FORMATS
        for writer, reader in product(writers(form), repeat=2)
        if OURS in {writer, reader}
    ]


def framings(writer: str, reader: str, registry: str) -> tuple[str, ...]:
    """Return where ids are: in front of values, or as GUIDs in headers."""
    has_guids = registry == "confluent-8.1"
    return FRAMINGS if has_guids and {writer, reader} <= {OURS, CONFLUENT} else FRAMINGS[:1]


def serializers_part() -> str:
    """Return the table of the documentation."""
    lines = []
    others = {form: [*writers(form)[1:], *filter(None, [SPARK.get(form)])] for form in FORMATS}
    for form, other in [(one, name) for one in FORMATS for name in others[one]]:
        by_spark = {(form, *way) for way in _ways(other) if other in SPARK.values()}
        tested = {(form, other, OURS), (form, OURS, other)} & {*pairs(), *by_spark}
        read, written = ("yes" if (form, *way) in tested else "" for way in _ways(other))
        has_headers = any(len(framings(OURS, other, one)) > 1 for one in REGISTRIES)
        places = "in front, and GUIDs in headers" if has_headers else "in front"
        package = "confluent-kafka" if other == CONFLUENT else PACKAGES.get(other)
        version = f" ({package} {_version(package)})" if package else ""
        lines.append(f"| `{form}` | {other}{version} | {read} | {written} | {places} |")
    library = f"Apicurio's serializers for Java ({APICURIO_SERDES})"
    lines += [
        f"| `{form}` | {library} | {read} | {written} | in front, and ids in headers |"
        for form, (read, written) in APICURIO.items()
    ]
    return PART + "\n".join(lines)


def _ways(other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (other, OURS), (OURS, other)


def _version(package: str) -> str:
    """Return the version of a package that the tests install."""
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").split()
    return next(pin.partition("==")[2] for pin in pins if pin.startswith(f"{package}=="))
