"""Jars from Maven, and archives of the classes that brokers load from them, cached for the user.

The Ivy in PySpark's jars resolves jars. Java calls the archives dynamic archives of application
class-data sharing (JEP 350); they halve the time that brokers take to start.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from ..domain.errors import MissingDependencyError
from .errors import BrokerStartError, JarsError, last_lines
from .java import require_java, version_answer

_RESOLVE_SECONDS = 900.0
_ARCHIVE_SECONDS = 120.0

_WITHOUT_POMS: Final = (
    '<ivysettings><settings defaultResolver="central"/><resolvers>'
    '<ibiblio name="central" m2compatible="true" usepoms="false"/>'
    "</resolvers></ivysettings>"
)
"""Ivy's settings that download artifacts from Maven Central by their names alone."""


SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java's options to log nothing about an archive that is missing or does not fit."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A Maven artifact: group, name and version, and for archives the extension and classifier."""

    group: str
    name: str
    version: str
    extension: str = "jar"
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """The file name of its jar or archive once it is resolved."""
        return f"{self.name}-{self.version}.{self.extension}"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Artifacts that are resolved together, with or without their dependencies.

    Without ``has_poms``, no pom is read: some cannot be, since the repository lacks their parent.
    """

    name: str
    artifacts: tuple[Artifact, ...]
    transitive: bool
    has_poms: bool = True


KAFKA_VERSION: Final = "4.3.1"
"""The version of Apache Kafka that runs unless another one is named."""

_CONNECTORS: Final = {"4.0": "4.0.2", "4.1": "4.1.1"}
_NEWEST_CONNECTOR: Final = "4.2.0"
_AVRO: Final = {"4.0": "4.0.2"}
_NEWEST_AVRO: Final = "4.1.1"


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the directory with the jars of Apache Kafka and of its dependencies.

    The first call for a version downloads about 45 MB.

    :raises JarsError: if they cannot be downloaded.
    :raises JavaError: without Java 17.
    :raises MissingDependencyError: if PySpark is not installed.
    """
    return resolve(
        JarSet(
            f"kafka-{version}",
            (
                Artifact("org.apache.kafka", "kafka_2.13", version),
                # Kafka's pom has no SLF4J 1.7 provider, and without one the broker does not log why
                # it ends.
                Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
            ),
            transitive=True,
        )
    )


def connector_jars() -> tuple[Path, ...]:
    """Return the jars of Spark's JVM connector for Kafka; raise as ``kafka_jars`` does."""
    return _paths(connector_for(_installed_spark()))


def avro_jars() -> tuple[Path, ...]:
    """Return the jars of Spark's ``from_avro`` and ``to_avro``; raise as ``kafka_jars`` does."""
    return _paths(avro_for(_installed_spark()))


def connector_for(spark: str) -> JarSet:
    """Return the JVM connector for a version of Spark.

    Without dependencies: the connector's pom names a repository that some networks cannot reach,
    and Spark contains the others. Some repositories lack the token provider in the connector's
    version, and the connector in the newest; these read, stream and share checkpoints on PySpark
    4.0.2, 4.1.1, 4.2.0 and 4.3.0.
    """
    connector = _CONNECTORS.get(_minor(spark), _NEWEST_CONNECTOR)
    return JarSet(
        f"connector-{connector}",
        (
            Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", connector),
            Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
            Artifact("org.apache.kafka", "kafka-clients", "3.9.2"),
            Artifact("org.apache.commons", "commons-pool2", "2.12.1"),
        ),
        transitive=False,
    )


def avro_for(spark: str) -> JarSet:
    """Return the Avro functions for a version of Spark, which contains their dependencies.

    Some repositories have none newer than 4.1.1, which works on Spark 4.2 as well.
    """
    avro = _AVRO.get(_minor(spark), _NEWEST_AVRO)
    artifact = Artifact("org.apache.spark", "spark-avro_2.13", avro)
    return JarSet(f"spark-avro-{avro}", (artifact,), transitive=False)


def _installed_spark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        # `resolve` raises this error unless the jars are cached.
        return ""


def _minor(spark: str) -> str:
    return ".".join(spark.split(".")[:2])


def _paths(jars: JarSet) -> tuple[Path, ...]:
    directory = resolve(jars)
    return tuple(directory / artifact.file_name for artifact in jars.artifacts)


def cache_directory() -> Path:
    """Return the directory of cached jars: ``$PYSPARK_KAFKA_CACHE``, or in the user's cache.

    The directory is created if it does not exist.

    :raises JarsError: if it cannot be made, or the user has no home directory.
    """
    configured = os.environ.get("PYSPARK_KAFKA_CACHE")
    try:
        cache = Path(configured).absolute() if configured else user_cache_path("pyspark-kafka")
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise JarsError("Kafka", f"there is no directory for them: {error}", _SET_CACHE) from error
    return cache


_SET_CACHE: Final = "Set the variable PYSPARK_KAFKA_CACHE to a directory that this user may write."


def resolve(jars: JarSet) -> Path:
    """Return the directory with the jars, after resolving them if it does not exist."""
    cache = cache_directory()
    complete = cache / jars.name
    if not complete.is_dir():
        with FileLock(cache / f"{jars.name}.lock"):
            if not complete.is_dir():
                _resolve_atomically(jars, complete)
    return complete


def ivy_module(jars: JarSet) -> str:
    """Return Ivy's module descriptor of the jars."""
    dependencies = "".join(
        f'<dependency org="{artifact.group}" name="{artifact.name}" rev="{artifact.version}" '
        f'conf="default->default" transitive="{str(jars.transitive).lower()}">'
        f"{_archive(artifact)}</dependency>"
        for artifact in jars.artifacts
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="pyspark-kafka" module="{jars.name}"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies>"
        "</ivy-module>"
    )


def _archive(artifact: Artifact) -> str:
    """Return Ivy's element of an artifact that is not a jar, or is one of several jars."""
    if (artifact.extension, artifact.classifier) == ("jar", ""):
        return ""
    classifier = f' m:classifier="{artifact.classifier}"' if artifact.classifier else ""
    kind = artifact.extension
    return f'<artifact name="{artifact.name}" type="{kind}" ext="{kind}"{classifier}/>'


def _resolve_atomically(jars: JarSet, complete: Path) -> None:
    prefix = f"{jars.name}.part-"
    # This process holds the lock, so these belong to processes that were killed.
    for abandoned in complete.parent.glob(f"{prefix}*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=prefix, dir=complete.parent, ignore_cleanup_errors=True
    ) as name:
        _run_ivy(jars, Path(name), complete.with_name(f"{jars.name}.log"))
        (Path(name) / "libs").replace(complete)


def _run_ivy(jars: JarSet, directory: Path, log: Path) -> None:
    module = directory / "ivy.xml"
    module.write_text(ivy_module(jars))
    settings: list[str | Path] = []
    if not jars.has_poms:
        settings = ["-settings", directory / "ivysettings.xml"]
        (directory / "ivysettings.xml").write_text(_WITHOUT_POMS)
    command: list[str | Path] = [
        *(require_java(), "-jar", _ivy_jar(jars), *settings),
        *("-ivy", module, "-cache", directory / "cache"),
        *("-retrieve", directory / "libs" / "[artifact]-[revision].[ext]"),
        # Some of Kafka's dependencies are published as OSGi bundles.
        *("-types", "jar", "bundle", *{artifact.extension for artifact in jars.artifacts}, "-warn"),
    ]
    with log.open("wb") as output:
        try:
            code = subprocess.run(  # noqa: S603 - Java and Ivy with arguments of our own
                command, stdout=output, stderr=output, timeout=_RESOLVE_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            raise JarsError(jars.name, f"Ivy took more than {_RESOLVE_SECONDS:g} s") from None
    missing = [
        artifact.file_name
        for artifact in jars.artifacts
        if not (directory / "libs" / artifact.file_name).is_file()
    ]
    if code or missing:
        raise JarsError(jars.name, f"Ivy ended with {code}, its log {log}:\n{last_lines(log)}")


def _ivy_jar(jars: JarSet) -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError("pyspark", "spark")
    directory = Path(spec.submodule_search_locations[0]) / "jars"
    found = sorted(directory.glob("ivy-*.jar"))
    if not found:
        raise JarsError(jars.name, f"{directory} contains no Ivy: this PySpark is incomplete.")
    return found[-1]


def archive_path(version: str, java: Path) -> Path:
    """Return where the archive of a version of Kafka is, for exactly this Java."""
    build = hashlib.sha256(version_answer(java).encode()).hexdigest()[:12]
    return cache_directory() / f"kafka-{version}-java-{build}.jsa"


def archive_options(archive: Path) -> tuple[str, ...]:
    """Return Java's options to use an archive; one that does not fit is silently ignored."""
    return f"-XX:SharedArchiveFile={archive}", *SILENT


def make_once(archive: Path, run: Callable[[tuple[str, ...]], None]) -> None:
    """Make an archive unless it is there; without it, brokers start as well, but later.

    ``run`` starts a broker with further options of Java, and ends it in order.
    """
    if archive.exists():
        return
    incomplete = archive.with_suffix(".part")
    with (
        suppress(BrokerStartError, OSError, Timeout),
        FileLock(f"{archive}.lock", timeout=_ARCHIVE_SECONDS),
    ):
        if not archive.exists():
            # The archive is read-only, and Java does not overwrite an old one.
            incomplete.unlink(missing_ok=True)
            run((f"-XX:ArchiveClassesAtExit={incomplete}", *SILENT))
            incomplete.rename(archive)
