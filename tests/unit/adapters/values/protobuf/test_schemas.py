import base64
import sys
import tempfile
from typing import Final

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from pyspark_kafka.adapters.values.protobuf import compiler, schemas
from pyspark_kafka.adapters.values.protobuf.invalid_descriptor import InvalidDescriptorError
from pyspark_kafka.adapters.values.protobuf.schemas import Messages, compiled_messages
from pyspark_kafka.adapters.values.protobuf.spark_types import is_map, is_map_entry
from pyspark_kafka.domain.errors import MissingDependencyError, OptionsError
from pyspark_kafka.domain.values.registry import ImportedSchema, Schema, SchemaType

from .schemas import registered

pytestmark = pytest.mark.usefixtures("folders")

TWO: Final = 'syntax = "proto3"; package p; message A { message B { message C {} } } message D {}'


def file(name: str, *imports: str, message: str = "") -> FileDescriptorProto:
    proto = FileDescriptorProto(name=name, package="p", syntax="proto3", dependency=imports)
    if message:
        proto.message_type.add(name=message)
    return proto


def serialized(*files: FileDescriptorProto) -> bytes:
    return FileDescriptorSet(file=files).SerializeToString()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Yield where the compiler makes its folders; none is left there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiled_messages.cache_clear()
    yield tmp_path
    assert not list(tmp_path.iterdir())


def test_files_in_any_order():
    """Files may be before those that they import, and lack Protobuf's own."""
    first = file("a.proto", "b.proto", "google/protobuf/timestamp.proto", message="A")
    messages = Messages(serialized(first, file("b.proto", message="B")))
    assert messages.named("p.B").full_name == "p.B"
    assert messages.named("A").full_name == "p.A"
    assert messages.at((0,)) is messages.named("A")


def test_messages_by_name():
    """A nested message is found by its full name, an outermost one by its name alone."""
    messages = compiled_messages(registered(TWO))
    assert messages.named("p.A.B.C").name == "C"
    assert messages.named("D").full_name == "p.D"
    with pytest.raises(InvalidDescriptorError, match=r"no message 'C'; there are 'p\.A', 'p\.D'"):
        messages.named("C")


def test_indexes_are_the_places_of_messages_in_their_file_and_in_each_other():
    messages = compiled_messages(registered(TWO))
    found = [messages.at(indexes) for indexes in ((), (0,), (1,), (0, 0), (0, 0, 0))]
    assert [one.full_name for one in found if one] == ["p.A", "p.A", "p.D", "p.A.B", "p.A.B.C"]
    assert [messages.at(indexes) for indexes in ((2,), (-1,), (1, 0), (0, 0, 1))] == [None] * 4


def test_no_name_is_needed_where_there_is_one_message():
    assert Messages(serialized(file("a.proto", message="A"))).only().name == "A"
    with pytest.raises(InvalidDescriptorError, match="2 messages, and none is named"):
        compiled_messages(registered(TWO)).only()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff", "not a FileDescriptorSet"),
        (b"", "no files"),
        (serialized(file("a.proto", "b.proto")), "'b.proto' is missing; use protoc's option"),
        (serialized(file("a.proto", "google/protobuf/x.proto")), "is missing"),
        (serialized(file("a.proto", "b.proto"), file("b.proto", "a.proto")), "imports itself"),
        (serialized(file("a.proto", "a.proto")), "imports itself"),
        (serialized(file("a.proto", message="no name")), "'a.proto' is invalid"),
    ],
)
def test_descriptors_that_are_invalid(data, problem):
    with pytest.raises(InvalidDescriptorError, match=problem):
        Messages(data)


def test_descriptors_that_are_too_large(monkeypatch):
    monkeypatch.setattr(schemas, "MAX_SET_BYTES", 3)
    with pytest.raises(InvalidDescriptorError, match="more than 3 bytes"):
        Messages(bytes(4))


def test_a_text_may_import_others_in_folders_too_and_protobufs_own():
    text = 'import "a/b.proto"; import "google/protobuf/any.proto"; message M { p.B b = 1; }'
    imported = ImportedSchema("a/b.proto", 'syntax = "proto3"; package p; message B {}')
    schema = Schema(SchemaType.PROTOBUF, f'syntax = "proto3"; {text}', imports=(imported,))
    messages = compiled_messages(schema)
    assert messages.at(()) is messages.named("M")
    assert compiled_messages(schema) is messages


def test_imports_of_confluents_schemas():
    """Confluent's own schemas are known: its serializers register no references to them."""
    text = """syntax = "proto3";
    import "confluent/meta.proto"; import "confluent/type/decimal.proto";
    message M { confluent.type.Decimal d = 1 [(confluent.field_meta) = { tags: ["PII"] }]; }"""
    found = compiled_messages(registered(text)).at(())
    assert found is not None
    decimal = found.fields_by_name["d"].message_type
    assert decimal is not None
    assert [field.name for field in decimal.fields] == ["value", "precision", "scale"]


def test_an_import_of_the_same_name_as_the_text():
    imported = ImportedSchema("schema.proto", 'syntax = "proto3"; message B {}')
    text = 'syntax = "proto3"; import "schema.proto"; message M { B b = 1; }'
    messages = compiled_messages(Schema(SchemaType.PROTOBUF, text, imports=(imported,)))
    found = messages.at(())
    assert found is not None
    assert found.name == "M"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("message M {", r"^schema\.proto:1:\d+: "),
        ("message " * 3, "Expected"),
        ('syntax = "proto3"; import "missing.proto"; message M {}', "missing.proto"),
        ('syntax = "proto3"; import "/etc/passwd"; message M {}', "/etc/passwd"),
        ('syntax = "proto3"; import "../../etc/passwd"; message M {}', "etc/passwd"),
        ('syntax = "proto3"; ' + "message A {" * 2_000 + "}" * 2_000, "recursion limit"),
        ('syntax = "proto3"; message M { Missing m = 1; }', "Missing"),
        ("\0", "schema.proto"),
        ("\ud800", "not Unicode"),
    ],
)
def test_texts_that_are_invalid(text, problem, folders):
    with pytest.raises(InvalidDescriptorError, match=problem) as told:
        compiled_messages(registered(text))
    assert str(folders) not in str(told.value)
    assert "root:" not in str(told.value)


@pytest.mark.parametrize(
    "name",
    ["/etc/x.proto", "../x.proto", "a/../../x.proto", "a//b.proto", "./a.proto", "", "a\\b.proto",
     "a\0b", "x" * 256, "a/./b.proto", "a b.proto", "a\n.proto"],
)  # fmt: skip
def test_names_of_imports_that_are_refused(name):
    schema = Schema(SchemaType.PROTOBUF, TWO, imports=(ImportedSchema(name, TWO),))
    with pytest.raises(InvalidDescriptorError, match="is not a file name"):
        compiled_messages(schema)


def test_a_file_where_a_folder_is():
    imports = ImportedSchema("a", TWO), ImportedSchema("a/b", TWO)
    with pytest.raises(InvalidDescriptorError, match="'a/b' cannot be used"):
        compiled_messages(Schema(SchemaType.PROTOBUF, TWO, imports=imports))


def test_texts_that_are_too_large(monkeypatch):
    monkeypatch.setattr(schemas, "MAX_TEXT_BYTES", 3_000)
    with pytest.raises(InvalidDescriptorError, match="more than 3000 bytes"):
        compiled_messages(registered("é" * 1_501))
    monkeypatch.setattr(schemas, "MAX_IMPORTS", 1)
    with pytest.raises(InvalidDescriptorError, match="more than 1 schemas"):
        compiled_messages(registered("", a="", b="", c=""))


def test_a_compiler_that_takes_too_long(monkeypatch):
    """The compiler is ended; the task fails, since the machine may be at fault."""
    monkeypatch.setattr(compiler, "WAIT_S", 0.01)
    with pytest.raises(OptionsError, match=r"not compiled in 0\.01 s"):
        compiled_messages(registered("message M {}"))


def test_bounds_of_the_compiler(monkeypatch):
    monkeypatch.setattr(compiler, "_PROTOC", compiler._PROTOC.replace("16777216", "8"))
    with pytest.raises(InvalidDescriptorError):
        compiled_messages(registered(TWO))


def test_the_compiler_is_not_installed(monkeypatch):
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[protobuf\]"):
        compiled_messages(registered(TWO))


def encoded(schema: Schema) -> str:
    """Return a file as most of Confluent's clients register it: its descriptor in base64."""
    found = compiled_messages(schema).at(())
    assert found is not None
    return base64.b64encode(found.file.serialized_pb).decode()


IMPORTED: Final = 'syntax = "proto3"; package p; message Imported { int32 a = 1; }'
IMPORTING: Final = (
    'syntax = "proto3"; import "imported.proto"; message First { p.Imported i = 1; } message M {}'
)


@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("imports_text", [True, False])
@pytest.mark.parametrize("is_beside", [True, False])
def test_a_schema_that_is_a_descriptor(is_text, imports_text, is_beside):
    """Schemas are texts or descriptors, also those that they import, and may be both."""
    imported = IMPORTED if imports_text else encoded(registered(IMPORTED))
    text = IMPORTING if is_text else encoded(registered(IMPORTING, imported=IMPORTED))
    schema = registered(text, imported=imported)
    if is_beside:
        imports = (ImportedSchema("imported.proto", "text", imported),)
        schema = Schema(SchemaType.PROTOBUF, "other text", imports=imports, serialized=text)
    messages = compiled_messages(schema)
    assert [messages.at((index,)) for index in (0, 1)] == [*map(messages.named, ("First", "M"))]
    field = messages.named("First").fields_by_name["i"]
    assert field.message_type is messages.named("p.Imported")


def test_a_descriptor_needs_no_compiler(monkeypatch):
    text, imported = (
        encoded(registered(IMPORTING, imported=IMPORTED)),
        encoded(registered(IMPORTED)),
    )
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    found = compiled_messages(registered(text, imported=imported)).at(())
    assert found is not None
    assert found.full_name == "First"


def test_descriptors_that_import_confluents_files():
    """Confluent's serializers register no references to known files, in either form."""
    text = """syntax = "proto3"; import "confluent/meta.proto"; import "google/type/money.proto";
    import "confluent/types/decimal.proto"; import "confluent/type/variant.proto";
    message M { google.type.Money m = 1 [(confluent.field_meta) = { tags: ["PII"] }];
      confluent.type.Decimal d = 2; confluent.type.Variant v = 3; }"""
    found = compiled_messages(registered(encoded(registered(text)))).at(())
    assert found is not None
    names = [one.message_type.full_name for one in found.fields if one.message_type]
    assert names == ["google.type.Money", "confluent.type.Decimal", "confluent.type.Variant"]


@pytest.mark.parametrize(
    "name",
    ["calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction",
     "interval", "latlng", "localized_text", "money", "month", "phone_number", "postal_address",
     "quaternion", "timeofday"],
)  # fmt: skip
def test_imports_of_googles_types(name):
    """Google's types are known, as Confluent's serializers assume."""
    text = f'syntax = "proto3"; import "google/type/{name}.proto"; message M {{}}'
    texts = registered(text)
    proto = file("a.proto", f"google/type/{name}.proto", message="M")
    for messages in (compiled_messages(texts), Messages(serialized(proto))):
        assert messages.named("M").name == "M"


def test_googles_types_are_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.type.money_pb2", None)
    text = 'syntax = "proto3"; import "google/type/money.proto"; message M {}'
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[protobuf\]"):
        compiled_messages(registered(text))


@pytest.mark.parametrize("text", ["AAAA", "abc", "message"])
def test_what_is_neither_a_text_nor_a_descriptor(text):
    with pytest.raises(InvalidDescriptorError):
        compiled_messages(registered(text))


MAP_ENTRY: Final = """syntax = "proto3";
package p;
message M {
  // option map_entry = true;
  repeated .p.M.FEntry f = 1;
  string s = 2 [json_name = "option map_entry = true;"];
  message FEntry {
    option map_entry = true;

    string key = 1;
    int32 value = 2;
  }
  message B { reserved 5; }
}
"""
MAP: Final = """syntax = "proto3"; package p; message M {
  map<string, int32> f = 1; string s = 2 [json_name = "option map_entry = true;"];
  message B { reserved 5; } }"""


def test_texts_with_map_entries():
    """Registries before Confluent Platform 7.8 have maps as their entries."""
    for text in (MAP_ENTRY, MAP):
        messages = compiled_messages(registered(text))
        assert is_map(messages.named("p.M").fields_by_name["f"])
        entry = DescriptorProto()
        messages.named("p.M.FEntry").CopyToProto(entry)
        assert entry.options.map_entry
        assert not entry.reserved_range
        assert not is_map_entry(messages.named("p.M.B"))
    importing = 'syntax = "proto3"; import "m.proto"; message N { p.M m = 1; }'
    found = compiled_messages(registered(importing, m=MAP_ENTRY)).named("p.M")
    assert is_map(found.fields_by_name["f"])


@pytest.mark.parametrize("text", [MAP, MAP_ENTRY])
def test_message_indexes_count_map_entries_or_not(text):
    """Confluent's Java client counts no entries, and its other clients do."""
    messages = compiled_messages(registered(text))
    nested = messages.named("p.M.B")
    assert [messages.at(indexes) for indexes in ((0, 0), (0, 1))] == [nested, nested]
    assert messages.at((0, 2)) is None


def test_the_name_decides_between_countings():
    text = "message A { map<int32, int32> m = 1; message B {} message C {} }"
    messages = compiled_messages(registered(f'syntax = "proto3"; {text}'))
    for name in ("A.B", "A.C"):
        assert messages.at((0, 1), name) is messages.named(name)
    assert messages.at((0, 1)) is messages.named("A.B")
    assert messages.at((0, 1), "other") is messages.named("A.B")


@pytest.mark.parametrize(
    ("label", "names"), [(3, ("a", "b")), (3, ("value", "key")), (1, ("key", "value"))]
)
def test_maps_that_are_invalid(label, names):
    proto = file("a.proto", message="M")
    entry = proto.message_type[0].nested_type.add(name="FEntry")
    entry.options.map_entry = True
    for number, name in enumerate(names, start=1):
        entry.field.add(name=name, number=number, type=9, label=1)
    proto.message_type[0].field.add(
        name="f", number=1, type=11, label=label, type_name=".p.M.FEntry"
    )
    with pytest.raises(InvalidDescriptorError, match=r"p\.M\.(f|FEntry)' is invalid"):
        Messages(serialized(proto))


@pytest.mark.parametrize("text", ["/*" * 500_000, '"' + '\\"' * 500_000, "option " * 200_000])
def test_texts_without_an_end_do_not_take_long(text):
    with pytest.raises(InvalidDescriptorError):
        compiled_messages(registered(text))
