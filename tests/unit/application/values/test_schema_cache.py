import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Final

import pytest

from pyspark_kafka.application.values import schema_cache
from pyspark_kafka.application.values.schema_cache import SchemaCache
from pyspark_kafka.domain.values.errors import RegistryUnavailableError, UnknownSchemaError
from pyspark_kafka.domain.values.registry import (
    ImportedSchema,
    Schema,
    SchemaReference,
    SchemaType,
    SubjectVersion,
)
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry

URL: Final = "http://registry"
THREADS: Final = 8


def schema(text: str, *references: tuple[str, str, int]) -> Schema:
    found = tuple(SchemaReference(*each) for each in references)
    return Schema(SchemaType.PROTOBUF, text, found)


class Scripted(SchemaRegistry):
    """Answers from dictionaries, and notes the requests."""

    def __init__(self) -> None:
        self.ids: dict[int, Schema] = {}
        self.subjects: dict[str, list[Schema]] = {}
        self.requests: list[object] = []
        self.is_closed = False
        self.before: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return URL

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:  # noqa: ARG002
        self.requests.append(schema_id)
        self.before()
        if schema_id not in self.ids:
            raise UnknownSchemaError(URL, f"schema {schema_id}")
        return self.ids[schema_id]

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:  # noqa: ARG002
        self.requests.append(guid)
        self.before()
        if int(guid) not in self.ids:
            raise UnknownSchemaError(URL, f"schema {guid}")
        return self.ids[int(guid)]

    def version(
        self,
        subject: str,
        version: int | None = None,
        *,
        deleted: bool = False,  # noqa: ARG002
    ) -> SubjectVersion:
        self.requests.append((subject, version))
        versions = self.subjects.get(subject, [])
        number = version or len(versions)
        if number > len(versions):
            raise UnknownSchemaError(URL, f"version {version} of {subject}")
        return SubjectVersion(subject, number, 7, versions[number - 1])

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        self.requests.append(("look_up", subject))
        return SubjectVersion(subject, 1, 7, schema)

    def register(self, subject: str, schema: Schema) -> int:
        self.requests.append(("register", subject, schema))
        return 7

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def registry():
    return Scripted()


def test_schemas_of_ids_are_kept(registry):
    registry.ids[5] = schema("five")
    registry.subjects["s"] = [schema("one")]
    cache = SchemaCache(registry)
    for _ in range(3):
        assert cache.by_id(5) == cache.by_guid("5") == schema("five")
        assert cache.version("s", 1) == cache.version("s") == cache.look_up("s", schema("one"))
        assert cache.register("s", schema("two")) == 7
    latest = [("s", None), ("look_up", "s"), ("register", "s", schema("two"))]
    assert registry.requests == [5, "5", ("s", 1), *latest, *latest, *latest]
    assert cache.url == URL
    cache.close()
    assert registry.is_closed


def test_unknown_ids_are_kept_for_a_while(registry):
    cache = SchemaCache(registry, unknown_s=0.05, patience_s=0)
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match="schema 5"):
            cache.by_id(5)
    assert registry.requests == [5]
    registry.ids[5] = schema("five")
    assert Deadline.after(5).poll(lambda: _is_known(cache, 5), 0.01)
    assert registry.requests == [5, 5]


def _is_known(cache: SchemaCache, schema_id: int) -> bool:
    try:
        return bool(cache.by_id(schema_id))
    except UnknownSchemaError:
        return False


def test_an_id_that_a_server_does_not_have_yet(registry):
    """A server that follows another one may lack what was registered a moment ago."""

    def register() -> None:
        if len(registry.requests) == 3:
            registry.ids[5] = schema("five")

    registry.before = register
    assert SchemaCache(registry).by_id(5) == schema("five")
    assert registry.requests == [5, 5, 5]
    registry.requests.clear()
    registry.ids.clear()
    assert SchemaCache(registry).by_guid("5") == schema("five")
    assert registry.requests == ["5", "5", "5"]


def test_ids_are_seldom_requested_again_in_vain(registry, monkeypatch):
    """Values of another serializer look as if they had ids: each is requested once."""
    cache = SchemaCache(registry, patience_s=0.05)
    assert not _is_known(cache, 5)
    assert len(registry.requests) > 1
    registry.requests.clear()
    assert not any(_is_known(cache, number) for number in range(100, 150))
    assert registry.requests == [*range(100, 150)]
    monkeypatch.setattr(cache._patience, "_rest", Deadline.after(0))
    registry.requests.clear()
    assert not _is_known(cache, 6)
    assert len(registry.requests) > 1


def test_an_unknown_id_is_requested_less_and_less(registry, monkeypatch):
    kept_s: list[float] = []

    def after(seconds: float) -> Deadline:
        kept_s.append(seconds)
        return Deadline.after(0)

    monkeypatch.setattr(schema_cache, "Deadline", SimpleNamespace(after=after))
    cache = SchemaCache(registry, patience_s=0)
    assert not any(_is_known(cache, 5) for _ in range(7))
    assert [seconds for seconds in kept_s if seconds] == [1, 2, 4, 8, 16, 30, 30]
    registry.ids[5] = schema("five")
    assert _is_known(cache, 5)


def test_failures_are_not_kept(registry):
    registry.ids[5] = schema("five")

    def fail() -> None:
        raise RegistryUnavailableError(URL, "it is down")

    registry.before = fail
    cache = SchemaCache(registry)
    for _ in range(2):
        with pytest.raises(RegistryUnavailableError):
            cache.by_id(5)
    registry.before = lambda: None
    assert cache.by_id(5) == schema("five")
    assert registry.requests == [5, 5, 5]


@pytest.mark.parametrize("is_known", [True, False])
def test_threads_share_a_request(registry, is_known):
    if is_known:
        registry.ids[5] = schema("five")
    all_ask = threading.Barrier(THREADS)
    requested, answer = threading.Event(), threading.Event()

    def wait() -> None:
        requested.set()
        assert answer.wait(10)

    registry.before = wait
    cache = SchemaCache(registry, patience_s=0)

    def ask(_: int) -> bool:
        all_ask.wait(10)
        return _is_known(cache, 5)

    with ThreadPoolExecutor(THREADS) as pool:
        asked = pool.map(ask, range(THREADS))
        assert requested.wait(10)
        time.sleep(0.05)  # for the other threads to reach the cache
        answer.set()
        assert list(asked) == [is_known] * THREADS
    assert registry.requests == [5]


def test_the_cache_is_bounded(registry, monkeypatch):
    monkeypatch.setattr(schema_cache, "MAX_ANSWERS", 2)
    monkeypatch.setattr(schema_cache, "MAX_UNKNOWN", 2)
    registry.ids.update({number: schema("x" * number) for number in range(1, 9)})
    cache = SchemaCache(registry, patience_s=0)

    def requested(*ids: int) -> list[object]:
        registry.requests.clear()
        for each in ids:
            _is_known(cache, each)
        return registry.requests

    assert requested(1, 2, 3, 3, 2, 1, 3) == [1, 2, 3, 1]
    assert requested(101, 102, 103, 103, 102, 101) == [101, 102, 103, 101]
    monkeypatch.setattr(schema_cache, "MAX_ANSWERS", 100)
    monkeypatch.setattr(schema_cache, "MAX_CHARACTERS", 10)
    assert requested(4, 5, 5, 4, 6, 5) == [4, 5, 6, 5]


def test_imports_come_before_what_needs_them(registry):
    registry.subjects = {
        "a": [schema("old a"), schema("a", ("b.proto", "b", 1), ("c.proto", "c", 1))],
        "b": [schema("b", ("c.proto", "c", 1))],
        "c": [schema("c")],
    }
    registry.ids[5] = schema("five", ("a.proto", "a", 2), ("c.proto", "c", 1))
    cache = SchemaCache(registry)
    found = cache.by_id(5)
    assert (found.text, found.references) == ("five", registry.ids[5].references)
    assert found.imports == (
        ImportedSchema("c.proto", "c"),
        ImportedSchema("b.proto", "b"),
        ImportedSchema("a.proto", "a"),
    )
    assert registry.requests == [5, ("a", 2), ("b", 1), ("c", 1)]
    assert cache.version("a").schema.imports == found.imports[:2]
    assert cache.version("b", 1).schema.imports == found.imports[:1]
    assert registry.requests[4:] == [("a", None)]


def test_what_many_import_is_followed_once(registry):
    """Schemas that each import the next two ones are as many imports as there are schemas."""
    levels = [
        schema(f"{n}", *[(f"{m}", "s", m) for m in (n + 1, n + 2) if m <= 30]) for n in range(1, 31)
    ]
    registry.subjects = {"s": levels}
    found = SchemaCache(registry).version("s", 1).schema
    assert [each.text for each in found.imports] == [f"{n}" for n in range(30, 1, -1)]


def _refused(registry: Scripted, first: Schema) -> str:
    registry.ids[5] = first
    with pytest.raises(RegistryUnavailableError) as raised:
        SchemaCache(registry).by_id(5)
    text = str(raised.value)
    assert f"{URL} cannot be used: its schema with the id 5 imports " in text
    return text


def test_schemas_that_import_each_other(registry):
    """A circle of imports is no answer of a registry."""
    registry.subjects = {
        "a": [schema("a", ("b.proto", "b", 1))],
        "b": [schema("b", ("A.proto", "a", 1))],
    }
    told = _refused(registry, schema("five", ("a.proto", "a", 1)))
    assert "version 1 of the subject 'a', which imports itself" in told


def test_imports_are_of_the_context_of_what_imports_them(registry):
    registry.subjects = {
        ":.lsrc:a": [schema("a", ("b.proto", "b", 1), ("c.proto", ":.other:c", 1))],
        ":.lsrc:b": [schema("b")],
        ":.other:c": [schema("c", ("d.proto", "d", 1))],
        ":.other:d": [schema("d")],
    }
    registry.ids[5] = schema("five", ("a.proto", "a", 1))
    cache = SchemaCache(registry)
    for find in (cache.by_id(5, ":.lsrc:s"), cache.by_guid("5", ":.lsrc:s")):
        assert [each.text for each in find.imports] == ["b", "d", "c", "a"]
    assert len(cache.version(":.lsrc:a").schema.imports) == 3


def test_ids_are_kept_by_their_subject(registry):
    registry.ids[5] = schema("five")
    cache = SchemaCache(registry)
    for subject in (None, "a", ":.lsrc:a", "a"):
        assert cache.by_id(5, subject) == schema("five")
    assert registry.requests == [5, 5, 5]


def test_an_import_that_is_missing(registry):
    """A registry without the import is a registry that fails, and not one without the schema."""
    told = _refused(registry, schema("five", ("a.proto", "a", 3)))
    assert "version 3 of the subject 'a', which it does not have" in told


def test_imports_are_bounded(registry, monkeypatch):
    deep = schema_cache.MAX_DEPTH + 1
    chain = [schema("x", (f"{number}", "s", number + 1)) for number in range(1, deep)]
    registry.subjects = {"s": [*chain, schema("last")]}
    assert "nested deeper than 64" in _refused(registry, schema("five", ("0", "s", 1)))
    monkeypatch.setattr(schema_cache, "MAX_IMPORTS", 10)
    many = [(f"{number}", "s", deep) for number in range(11)]
    assert len(SchemaCache(registry).version("s", deep).schema.imports) == 0
    assert "more than 10 schemas" in _refused(registry, schema("five", *many))
    monkeypatch.setattr(schema_cache, "MAX_IMPORTED_CHARACTERS", 10)
    assert "more than 10 characters" in _refused(registry, schema("five", *many[:3]))
    monkeypatch.setattr(schema_cache, "IMPORTS_S", -1.0)
    assert "took too long" in _refused(registry, schema("five", *many[:1]))
